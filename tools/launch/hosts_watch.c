/* hosts_watch.c - see hosts_watch.h. One loop serves all hosts, and waits for none of them. */
#include "tools/launch/hosts_watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/stop.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/term.h"

/* Seconds. */
static const double beat_every = 1;  /* between two beats */
static const double peer_grace = 5;  /* from a failure to the stop: ranks that lost a peer say so */
static const double stop_grace = 15; /* from the stop, or the end of `grace`, until standard input is closed */
static const double at_once = 2;     /* the same from a second signal */
static const double greeting_takes = 30;
static const double end_grace = 10; /* from then until SIGKILL, and from SIGKILL until this process gives up */
enum { LINE_MAX_BYTES = 1 << 16 };  /* a longer one is shown in parts */

/* ---- what hosts write ---- */

/* Results of host 0 are results of the job. */
static void show(const fleet *f, const hosted *h, int stream, const char *line) {
    if (h != f->host)
        term_line("[%s] %s", h->host->name, line);
    else if (stream == 0)
        term_print("%s", line);
    else
        term_line("%s", line);
}

static void show_lines(const fleet *f, hosted *h, int stream, hosted_output *o, bool is_last) {
    char *line = o->text, *end = o->text + o->bytes, *next;
    for (; (next = memchr(line, '\n', (size_t)(end - line))) != NULL; line = next + 1) {
        *next = 0;
        if (next > line && next[-1] == '\r') next[-1] = 0; /* ssh ends its own lines so */
        if (!hosted_notes(h, line)) show(f, h, stream, line);
    }
    o->bytes = (size_t)(end - line);
    if (o->bytes > 0 && (is_last || o->bytes >= LINE_MAX_BYTES)) {
        *end = 0; /* there is always room */
        show(f, h, stream, line);
        o->bytes = 0;
    }
    if (o->bytes > 0) memmove(o->text, line, o->bytes);
}

static void hear(const fleet *f, hosted *h, int stream, hosted_output *o) {
    ssize_t got;
    do {
        o->text = memory_grow(o->text, &o->room, o->bytes + 4096 + 1, 1);
        got = read(o->fd, o->text + o->bytes, o->room - o->bytes - 1);
        if (got > 0) o->bytes += (size_t)got;
        if (got > 0) show_lines(f, h, stream, o, false);
    } while (got > 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(o->fd);
    o->fd = -1;
    show_lines(f, h, stream, o, true);
}

/* A process that outlives its ssh, as that of a shared connection, may still have the streams open. */
static void hear_last(const fleet *f, hosted *h) {
    for (int s = 0; s < 2; s++) {
        hosted_output *o = &h->output[s];
        if (o->fd < 0) continue;
        hear(f, h, s, o);
        if (o->fd >= 0) close(o->fd);
        o->fd = -1;
        show_lines(f, h, s, o, true);
    }
}

/* ---- what hosts are told ---- */

static void let_go(hosted *h) {
    if (h->control >= 0) close(h->control);
    h->control = -1;
}

static bool has_more(const hosted *h) {
    return h->control >= 0 && (h->sent < h->bytes || h->stops > 0);
}

/* Writes what fits. */
static void tell(hosted *h) {
    static const char stop[] = {ORDERS_STOP};
    while (has_more(h)) {
        const bool is_stop = h->sent == h->bytes;
        const ssize_t n = write(h->control, is_stop ? stop : h->orders + h->sent, is_stop ? 1 : h->bytes - h->sent);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) let_go(h); /* nobody is there; how it ended says the rest */
        if (n > 0 && is_stop) h->stops--;
        if (n > 0 && !is_stop) h->sent += (size_t)n;
    }
}

static void beat(fleet *f, double now) {
    static const char word[] = {ORDERS_BEAT};
    if (now < f->beat_at) return;
    f->beat_at = now + beat_every;
    for (int i = 0; i < f->count; i++) {
        const hosted *h = &f->host[i];
        /* One that does not fit is not needed: others wait to be read. */
        if (h->control >= 0 && !has_more(h) && write(h->control, word, 1) < 0) continue;
    }
}

static void stop_all(fleet *f) {
    for (int i = 0; i < f->count; i++) {
        f->host[i].stops++;
        tell(&f->host[i]);
    }
}

/* ---- the end ---- */

static void end_within(fleet *f, double seconds) {
    const double at = progress_now() + seconds;
    if (f->next_phase_at == 0 || at < f->next_phase_at) f->next_phase_at = at;
}

static void kill_rest(const fleet *f) {
    for (int i = 0; i < f->count; i++) {
        if (f->host[i].pid > 0 && !f->host[i].ended) kill(-f->host[i].pid, SIGKILL);
    }
}

static void enter_next_phase(fleet *f) {
    f->phase++;
    f->next_phase_at = 0;
    end_within(f, f->phase == FLEET_STOPS ? stop_grace : end_grace);
    if (f->phase == FLEET_STOPS) stop_all(f);
    for (int i = 0; f->phase == FLEET_LETS_GO && i < f->count; i++) let_go(&f->host[i]);
    if (f->phase == FLEET_KILLS) kill_rest(f);
    if (f->phase == FLEET_LEAVES) f->alive = 0;
}

bool fleet_has_stopped(const hosted *h) {
    sigset_t signals;
    const int number = h->code - 128;
    stop_signals(&signals);
    return h->code == TDM_E_STOPPED || (number > 0 && number < NSIG && sigismember(&signals, number) == 1);
}

static void on_end(fleet *f, hosted *h, int status) {
    h->ended = true;
    h->order = ++f->ends;
    h->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    f->alive--;
    hear_last(f, h);
    let_go(h);
    h->is_stranger = !h->host->is_here && !h->version && f->phase == FLEET_RUNS;
    if ((h->code == TDM_OK || fleet_has_stopped(h)) && !h->is_stranger) return;
    /* Ranks that have met learn of a failed one from each other. Of one that was not started only this process knows. */
    const bool is_unknown = h->code == SSH_FAILED || hosted_is_foreign(h);
    if (f->phase == FLEET_RUNS) end_within(f, is_unknown ? 0 : peer_grace);
    if (f->phase == FLEET_STOPS) end_within(f, stop_grace);
}

static void reap(fleet *f) {
    for (int i = 0; i < f->count; i++) {
        hosted *h = &f->host[i];
        int status;
        if (h->pid > 0 && !h->ended && waitpid(h->pid, &status, WNOHANG) == h->pid) on_end(f, h, status);
    }
}

/* As for a single host: the first signal stops, the second ends at once. */
static void on_signal(fleet *f, int number) {
    const double now = progress_now();
    if (f->signals > 0 && (stop_repeats(number) || now - f->signalled < STOP_SAME_EVENT_MS * 1e-3)) return;
    if (f->signals++ == 0) {
        f->signalled = now;
        f->first_signal = number;
    }
    if (f->signals == 1 && f->phase == FLEET_RUNS) {
        enter_next_phase(f);
        f->next_phase_at += f->job->grace;
    } else {
        stop_all(f);
        end_within(f, at_once);
    }
}

/* A login may wait for something that nobody sees: a file of the shell that asks, a disk that does not answer. */
static void remind(fleet *f, double now) {
    if (f->remind_at == 0) f->remind_at = now + greeting_takes;
    if (now < f->remind_at || f->phase != FLEET_RUNS) return;
    f->remind_at = INFINITY;
    for (int i = 0; i < f->count; i++) {
        const hosted *h = &f->host[i];
        if (!h->host->is_here && !h->version && !h->ended)
            term_line("tandem: warning: host %s: tandem has not begun there for %.0f s; does `%s %s true` come back?",
                      h->host->name, greeting_takes, f->job->ssh, h->host->target);
    }
}

/* ---- the loop ---- */

static int fill(const fleet *f, struct pollfd *entry) {
    int count = 0;
    entry[count++] = (struct pollfd){.fd = f->signal_fd, .events = POLLIN};
    for (int i = 0; i < f->count; i++) {
        const hosted *h = &f->host[i];
        entry[count++] = (struct pollfd){.fd = h->control, .events = has_more(h) ? POLLOUT : 0};
        for (int s = 0; s < 2; s++) entry[count++] = (struct pollfd){.fd = h->output[s].fd, .events = POLLIN};
    }
    return count;
}

static void serve(fleet *f, const struct pollfd *entry) {
    struct signalfd_siginfo info;
    while (entry[0].revents && read(f->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) on_signal(f, (int)info.ssi_signo);
    }
    for (int i = 0; i < f->count; i++) {
        const struct pollfd *own = &entry[1 + 3 * i];
        hosted *h = &f->host[i];
        if (own[0].revents & POLLOUT) tell(h);
        if (own[0].revents & POLLERR) let_go(h); /* its reader is gone */
        for (int s = 0; s < 2; s++) {
            if (own[1 + s].revents && h->output[s].fd >= 0) hear(f, h, s, &h->output[s]);
        }
    }
}

void fleet_watch(fleet *f) {
    struct pollfd *entry = memory_new(1 + 3 * (size_t)f->count, sizeof *entry);
    while (f->alive > 0) {
        double now = progress_now(), wait = beat_every;
        if (f->next_phase_at > 0 && f->next_phase_at - now < wait) wait = f->next_phase_at - now;
        const int ready = poll(entry, (nfds_t)fill(f, entry), wait > 0 ? (int)(wait * 1000) + 1 : 0);
        if (ready > 0) serve(f, entry);
        reap(f);
        now = progress_now();
        beat(f, now);
        remind(f, now);
        if (f->alive > 0 && f->next_phase_at > 0 && now >= f->next_phase_at) enter_next_phase(f);
    }
    free(entry);
}
