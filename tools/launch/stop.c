/* stop.c - see stop.h. The only signal handler of tandem. Its state is static because handlers take no argument.
 *
 * A process that exits at once may be in the middle of anything, with the run directory locked. execve ends all of that
 * in one async-signal-safe call. The new program only records how the run ended. */
#include "tools/launch/stop.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/terminal/outlet.h"

static _Atomic(tdm_run *) running;
static atomic_int signals_seen, first_signal, joining_code; /* joining_code -1: no ranks are joining */
static atomic_llong first_ms;                               /* when the first signal came; 0: none yet */
static atomic_bool is_over;
static bool is_watched, is_quiet;
static char exit_text[4], *self, *ended[6]; /* the arguments of `tandem --ended`; ended[0] NULL: no end to record */

void stop_signals(sigset_t *out) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU};
    struct sigaction hangup;
    sigemptyset(out);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(out, numbers[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(out, SIGHUP);
}

bool stop_repeats(int number) {
    return number == SIGXCPU;
}

/* One event may send several signals: `timeout`, a shell or a control group signals the process and its group. */
static bool is_repeat(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    long long first = 0;
    return !atomic_compare_exchange_strong(&first_ms, &first, ms) && ms - first < STOP_SAME_EVENT_MS;
}

static void leave(int code) {
    if (ended[0]) {
        for (int i = 0, unit = 100; i < 3; i++, unit /= 10) exit_text[i] = (char)('0' + code / unit % 10);
        execve(self, ended, environ);
    }
    _exit(code);
}

static void on_signal(int number) {
    int saved = errno, code = atomic_load(&joining_code);
    if (is_repeat() || (stop_signal() != 0 && stop_repeats(number))) return;
    if (code >= 0) leave(code > 0 ? code : 128 + number);
    if (atomic_fetch_add(&signals_seen, 1) > 0) {
        if (!is_watched) leave(128 + number);
        return;
    }
    atomic_store(&first_signal, number);
    tdm_run *run = atomic_load(&running);
    if (run) tdm_run_request_stop(run);
    if (!is_watched && !is_quiet && !atomic_load(&is_over)) {
        outlet_try(STDERR_FILENO,
                   run ? "\ntandem: stopping after this step and saving; a second signal exits at once\n"
                       : "\ntandem: stopping as soon as the run is open; a second signal exits at once\n");
    }
    errno = saved;
}

void stop_begin(bool watched_rank, bool quiet) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigset_t signals;
    stop_signals(&signals);
    action.sa_mask = signals;
    is_watched = watched_rank;
    is_quiet = quiet;
    atomic_store(&joining_code, -1);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&signals, number) == 1) sigaction(number, &action, NULL);
    }
    if (watched_rank) signal(SIGINT, SIG_IGN);
}

void stop_in(const char *run_dir, int restarts) {
    self = run_dir ? files_self() : NULL;
    if (!self) return;
    ended[4] = text_format("%d", restarts);
    ended[3] = exit_text;
    ended[2] = text_copy(run_dir);
    ended[1] = text_copy("--ended");
    ended[0] = text_copy("tandem");
    memory_at_end(leave);
}

void stop_joining(bool joins, int code) {
    atomic_store(&joining_code, joins ? code : -1);
    if (joins && stop_signal() != 0) leave(code > 0 ? code : 128 + stop_signal());
}

void stop_run(tdm_run *run) {
    atomic_store(&is_over, run == NULL);
    atomic_store(&running, run);
    if (run && stop_signal() != 0) tdm_run_request_stop(run);
}

int stop_signal(void) {
    return atomic_load(&first_signal);
}

void stop_note(int number) {
    int none = 0;
    atomic_compare_exchange_strong(&first_signal, &none, number);
}

char *stop_reason(int code) {
    if (code == TDM_E_STOPPED) return text_copy("stopped on request");
    if (code == TDM_E_MEMORY) return text_copy("out of memory");
    return text_format("exited at once, by signal %d", code - 128);
}

int stop_ended(int argc, char **argv) {
    int code = argc == 5 ? atoi(argv[3]) : 0;
    if (code <= 0) return TDM_E_USAGE;
    FREED char *reason = stop_reason(code);
    (void)tdm_launch_ended(argv[2], code, atoi(argv[4]), reason); /* a full disk does not change the exit code */
    return code;
}
