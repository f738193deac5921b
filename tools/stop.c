/* stop.c - see stop.h. The only signal handler of tandem; what it touches is static because handlers have no argument.
 */
#include "tools/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static _Atomic(tdm_run *) running;
static atomic_int signals_seen;
static atomic_llong first_ms; /* when the first signal came; 0: none yet */
static bool is_watched, is_quiet;

/* One event may come as several signals: `timeout`, a shell or a control group send to the process and to its group. */
static bool is_repeat(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    long long first = 0;
    return !atomic_compare_exchange_strong(&first_ms, &first, ms) && ms - first < STOP_SAME_EVENT_MS;
}

static void on_signal(int number) {
    static const char text[] = "\ntandem: stopping after this step and saving; a second signal leaves at once\n";
    int saved = errno;
    if (is_repeat()) return;
    if (atomic_fetch_add(&signals_seen, 1) > 0 && !is_watched) _exit(128 + number);
    tdm_run *run = atomic_load(&running);
    if (run) tdm_run_request_stop(run);
    if (run && !is_watched && !is_quiet && atomic_load(&signals_seen) == 1) {
        ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
    }
    errno = saved;
}

void stop_install(tdm_run *run, bool watched_rank, bool quiet) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    is_watched = watched_rank;
    is_quiet = quiet;
    atomic_store(&signals_seen, 0);
    atomic_store(&first_ms, 0);
    atomic_store(&running, run);
    sigaction(SIGTERM, &action, NULL);
    if (!watched_rank) sigaction(SIGINT, &action, NULL);
}

void stop_done(void) {
    atomic_store(&running, NULL);
}
