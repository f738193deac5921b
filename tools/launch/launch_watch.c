/* launch_watch.c - see launch_watch.h. Processes may end in another order than they failed. So the first cause is
 * determined when all have ended. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/launch/launch_watch.h"
#include "tools/launch/launch_word.h"
#include "tools/terminal/progress.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

/* Seconds: from a failure, or from the abort of the job, to SIGKILL; the same if the first process to end only lost a
 * peer, which may still be about to say why it failed; from SIGKILL until the parent stops waiting; between two checks
 * for paused processes. */
static const double failed_grace = 1, peer_grace = 5, kill_grace = 10, poll_every = 0.2;

void launch_signal_all(launch *l, int number) {
    if (number == SIGKILL && l->killed_at == 0) l->killed_at = progress_now();
    for (int i = 0; i < l->count; i++) {
        launch_process *p = &l->process[i];
        if (p->pid == 0 || p->ended) continue;
        if (number == SIGKILL) p->killed_by_us = true;
        kill(p->pid, number);
    }
    if (l->teller != 0 && number == SIGKILL) kill(l->teller, number);
}

static void describe_end(const launch_process *p, const char *name, char *out, size_t bytes) {
    if (WIFSIGNALED(p->wait_status)) {
        int number = WTERMSIG(p->wait_status);
        const char *signal = sigabbrev_np(number);
        snprintf(out, bytes, "%s was killed by signal %d (SIG%s)%s", name, number, signal ? signal : "?",
                 number == SIGKILL ? "; if nobody sent it, memory may have run out: see `dmesg`" : "");
    } else {
        snprintf(out, bytes, "%s ended with code %d", name, WEXITSTATUS(p->wait_status));
    }
}

static void read_words(launch *l) {
    launch_word word;
    while (read(l->pipe[0], &word, sizeof word) == (ssize_t)sizeof word) {
        const int index = word.rank - launch_first_rank(l->job);
        if (index < 0 || index >= l->count) continue;
        launch_process *p = &l->process[index];
        p->met = p->met || word.news == LAUNCH_MET;
        if (word.news == LAUNCH_BEGAN) l->began_at = word.step;
        if (word.news != LAUNCH_FAILED) continue;
        p->reported = true;
        p->report_order = ++l->reports;
        p->error = word.error;
    }
}

/* True if it ended because it was asked to: with a checkpoint, or with nothing to save. */
static bool has_stopped(const launch *l, const launch_process *p) {
    int status = p->wait_status;
    if (WIFSIGNALED(status)) return l->signals > 0 && WTERMSIG(status) == SIGTERM;
    int code = WEXITSTATUS(status);
    const int number = code - 128;
    return code == TDM_E_STOPPED || (number > 0 && number != SIGCHLD && sigismember(&l->watched, number) == 1);
}

static bool ended_badly(const launch *l, const launch_process *p) {
    return !has_stopped(l, p) && (WIFSIGNALED(p->wait_status) || WEXITSTATUS(p->wait_status) != TDM_OK);
}

/* The rest is killed by then; an earlier deadline stays. */
static void kill_within(launch *l, double seconds) {
    const double at = progress_now() + seconds;
    if (l->kill_at == 0 || at < l->kill_at) l->kill_at = at;
}

/* It ended before the other hosts knew it, so that they would wait for it, and has not told them why. If it was alone
 * here and will be started again, they may wait. */
static bool must_be_told(const launch *l, const launch_process *p) {
    const bool comes_again = l->job->may_restart && l->alive == 0;
    return l->job->nodes.count > 1 && !comes_again && !p->met && !p->reported && !p->killed_by_us;
}

static void tell_hosts(launch *l, const launch_process *p) {
    char host[65] = "?", name[120], why[300];
    (void)gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "its process (host %s, pid %ld)", host, (long)p->pid);
    describe_end(p, name, why, sizeof why);
    l->teller = l->start_teller(l, (int)(p - l->process), why);
}

static void on_end(launch *l, launch_process *p) {
    p->ended = true;
    p->order = ++l->ends;
    l->alive--;
    read_words(l);
    if (l->is_overdue || !ended_badly(l, p)) return;
    const bool lost_peer = !WIFSIGNALED(p->wait_status) && WEXITSTATUS(p->wait_status) == TDM_E_COMM;
    const bool tells = !l->failed && must_be_told(l, p);
    kill_within(l, lost_peer || tells ? peer_grace : failed_grace);
    if (l->failed) return;
    char why[400];
    l->failed = true;
    l->abort_at = 0;
    if (tells) tell_hosts(l, p);
    describe_end(p, p->name, why, sizeof why);
    bool has_message = p->reported && !WIFSIGNALED(p->wait_status);
    if (l->fd >= 0) tdm_launch_abort(l->fd, (int)(p - l->process), has_message ? p->error.message : why);
}

/* What it has to tell is of this start: it must not meet the next one. */
static void reap_teller(launch *l) {
    if (l->teller == 0) return;
    if (l->alive == 0 && l->job->may_restart) kill(l->teller, SIGKILL);
    if (waitpid(l->teller, NULL, WNOHANG) == l->teller) l->teller = 0;
}

static void reap(launch *l) {
    for (int i = 0; i < l->count; i++) {
        launch_process *p = &l->process[i];
        int status;
        if (p->pid == 0) continue;
        while (!p->ended && waitpid(p->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == p->pid) {
            if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) {
                p->wait_status = status;
                on_end(l, p);
                break;
            }
            p->paused = WIFSTOPPED(status);
            p->silent = 0;
        }
    }
    reap_teller(l);
}

/* Ranks notice a silent rank themselves, except one that has not joined yet, and except if all are paused. */
static void on_silence(launch *l, launch_process *p) {
    char why[100];
    snprintf(why, sizeof why, "%s is stopped or frozen", p->name);
    p->frozen = true;
    l->failed = true;
    l->abort_at = 0;
    l->kill_at = progress_now() + failed_grace;
    if (l->fd >= 0) tdm_launch_abort(l->fd, -1, why);
}

/* Counts only time in which this process runs, so that a job paused as a whole goes on. True if a process is paused.
 * When a job has failed, and all that are left have been paused for so long, they have nothing to say any more. */
static bool look_for_paused(launch *l, double since) {
    int paused = 0, silent = 0;
    for (int i = 0; i < l->count; i++) {
        launch_process *p = &l->process[i];
        if (p->ended || !p->paused) continue;
        paused++;
        p->silent += since < poll_every ? since : poll_every;
        const bool is_silent = l->job->heartbeat > 0 && p->silent >= l->job->heartbeat;
        silent += is_silent;
        if (is_silent && !l->failed) on_silence(l, p);
    }
    if (l->failed && silent > 0 && silent == l->alive && l->teller == 0) kill_within(l, 0);
    return paused > 0;
}

static void on_signal(launch *l, int number) {
    double now = progress_now(), grace = l->job->grace;
    if (l->signals > 0 && (stop_repeats(number) || now - l->signalled < STOP_SAME_EVENT_MS * 1e-3)) return;
    if (l->signals++ > 0) {
        launch_signal_all(l, SIGKILL);
        return;
    }
    l->signalled = now;
    l->first_signal = number;
    launch_signal_all(l, SIGTERM);
    if (!l->job->t->quiet) term_line("tandem: stopping after this step and saving; a second signal exits at once");
    if (l->failed) return;
    l->kill_at = now + grace;
    l->abort_at = now + (grace > 2 * peer_grace ? grace - peer_grace : grace / 2);
}

/* Before `grace` is over: aborts the job, so that ranks that wait for another rank exit. Then kills the rest. */
static void on_deadline(launch *l, double now) {
    if (l->abort_at > 0 && now >= l->abort_at) {
        char why[100];
        l->abort_at = 0;
        l->is_overdue = true;
        snprintf(why, sizeof why, "the job was asked to stop, but did not stop within %.4g s", l->job->grace);
        if (l->fd >= 0) tdm_launch_abort(l->fd, -1, why);
    }
    if (l->kill_at == 0 || now < l->kill_at) return;
    for (int i = 0; i < l->count; i++) {
        launch_process *p = &l->process[i];
        p->stuck = p->stuck || (l->is_overdue && !p->ended);
    }
    launch_signal_all(l, SIGKILL);
    l->kill_at = now + failed_grace;
}

/* Not even SIGKILL ends a process that is stuck in the kernel. */
static void leave_behind(launch *l) {
    for (int i = 0; i < l->count; i++) {
        const launch_process *p = &l->process[i];
        if (p->pid == 0 || p->ended) continue;
        term_line(
            "tandem: warning: %s is still there %.4g s after SIGKILL and is left behind; look for a frozen control "
            "group, a debugger, or a file system that does not answer",
            p->name, kill_grace);
    }
    l->left_behind = true;
    l->alive = 0;
    l->teller = 0;
}

void launch_watch(launch *l) {
    double before = progress_now();
    bool any_paused = false;
    while (l->alive > 0 || l->teller != 0) {
        double now = progress_now(), next = l->abort_at > 0 ? l->abort_at : l->kill_at;
        double wait = next > 0 ? next - now : 1;
        if (any_paused && wait > poll_every) wait = poll_every;
        if (wait < 0) wait = 0;
        struct timespec limit = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
        int number = sigtimedwait(&l->watched, NULL, &limit);
        if (number > 0 && number != SIGCHLD) on_signal(l, number);
        reap(l);
        now = progress_now();
        any_paused = look_for_paused(l, now - before);
        before = now;
        on_deadline(l, now);
        if (l->killed_at > 0 && now - l->killed_at >= kill_grace) leave_behind(l);
    }
    read_words(l);
}

/* ---- the verdict ---- */

/* True if this process only repeats another rank's failure: "rank 0: ..." */
static bool is_relayed(const launch_process *p) {
    int rank, length = 0;
    return p->reported && sscanf(p->error.message, "rank %d: %n", &rank, &length) == 1 && length > 0;
}

/* The process whose failure caused the others': one killed by a signal that we did not send; else the first that
 * reported an error of its own, not a lost peer; else the first with an error. NULL: no failure. */
static const launch_process *first_cause(const launch *l) {
    const launch_process *best = NULL;
    int best_rank = 0;
    for (int i = 0; i < l->count; i++) {
        const launch_process *p = &l->process[i];
        if (p->pid == 0 || !ended_badly(l, p) || p->killed_by_us) continue;
        bool lost_peer = p->reported && p->error.status == TDM_E_COMM;
        int class = WIFSIGNALED(p->wait_status) ? 0 : lost_peer || is_relayed(p) ? 2 : 1;
        int value = class * 100000 + (p->reported ? p->report_order : p->order);
        if (!best || value < best_rank) {
            best = p;
            best_rank = value;
        }
    }
    return best;
}

static void blame(const launch *l, const launch_process *p, launch_end *end) {
    bool died = WIFSIGNALED(p->wait_status);
    if (!died && p->reported) {
        end->error = p->error;
        if (l->job->world > 0 && !is_relayed(p)) {
            snprintf(end->error.message, sizeof end->error.message, "[rank %d] %.2000s",
                     launch_first_rank(l->job) + (int)(p - l->process), p->error.message);
        }
    } else {
        describe_end(p, p->name, end->error.message, sizeof end->error.message);
    }
    end->code = died ? 128 + WTERMSIG(p->wait_status) : WEXITSTATUS(p->wait_status);
    bool device_failed = end->code == TDM_E_DEVICE && l->began_at >= 0;
    end->was_lost = died || end->code == TDM_E_COMM || device_failed;
}

static void blame_stuck(const launch *l, launch_end *end) {
    char *to = end->error.message;
    size_t bytes = sizeof end->error.message, used = 0;
    int count = 0, named = 0;
    for (int i = 0; i < l->count; i++) {
        const launch_process *p = &l->process[i];
        if (!p->stuck) continue;
        count++;
        if (used + sizeof p->name + 250 > bytes) continue;
        used += (size_t)snprintf(to + used, bytes - used, "%s%s", named++ ? ", " : "", p->name);
    }
    if (count > named) used += (size_t)snprintf(to + used, bytes - used, " and %d more", count - named);
    end->code = 128 + SIGKILL;
    snprintf(to + used, bytes - used,
             " did not stop within %.4g s and %s killed; a larger parallel.ddp.grace gives more time", l->job->grace,
             count > 1 ? "were" : "was");
}

static void blame_frozen(const launch_process *p, launch_end *end) {
    end->code = TDM_E_COMM;
    end->was_lost = true;
    snprintf(end->error.message, sizeof end->error.message,
             "%s was paused for %.1f s; it is stopped or frozen (see parallel.ddp.heartbeat)", p->name, p->silent);
}

/* The exit code if all processes finished or stopped. A rank that only learned of another rank's signal reports
 * SIGTERM. */
static int good_code(const launch *l) {
    int code = TDM_OK;
    for (int i = 0; i < l->count; i++) {
        const launch_process *p = &l->process[i];
        if (p->killed_by_us) return TDM_E_INTERNAL;
        if (!has_stopped(l, p)) continue;
        int own = WIFEXITED(p->wait_status) ? WEXITSTATUS(p->wait_status) : 128 + SIGTERM;
        if (own != TDM_E_STOPPED && l->first_signal != 0) own = 128 + l->first_signal;
        if (code == TDM_OK || code == 128 + SIGTERM) code = own;
    }
    return code;
}

void launch_verdict(const launch *l, launch_end *end) {
    *end = (launch_end){.began_at = l->began_at, .was_asked = l->signals > 0};
    const launch_process *cause = first_cause(l), *frozen = NULL;
    bool any_stuck = false;
    for (int i = l->count; i-- > 0;) {
        any_stuck = any_stuck || l->process[i].stuck;
        if (l->process[i].frozen) frozen = &l->process[i];
    }
    if (l->signals > 1) {
        end->code = 128 + l->first_signal;
        end->left_at_once = true;
    } else if (any_stuck) {
        blame_stuck(l, end);
    } else if (frozen) {
        blame_frozen(frozen, end);
    } else if (cause) {
        blame(l, cause, end);
    } else {
        end->code = good_code(l);
    }
    end->was_lost = end->was_lost && !l->left_behind;
}
