/* launch.c - the parent of local ranks, and the rank's side of that.
 *
 * The ranks share one anonymous descriptor (tdm_launch_create), so that nothing with a name can be left behind. They
 * get SIGKILL when the parent dies. Signals sent to the parent are passed on once, as SIGTERM; ranks ignore Ctrl-C,
 * which the terminal sends to everybody. Errors come back over a pipe, one fixed-size record per rank, because the
 * order in which ranks end is not the order in which they failed. */
#include "tools/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/log.h"
#include "tools/progress.h"
#include "tools/stop.h"
#include "tools/term.h"

#define PARENT_VARIABLE "TANDEM_PARENT"    /* pid of the process that started the ranks */
#define REPORT_VARIABLE "TANDEM_REPORT_FD" /* where a rank's last error goes */

static const double grace_seconds = 1;

/* What travels over the pipe: below PIPE_BUF, so that a write is whole. */
typedef struct rank_report {
    int rank;
    tdm_error error;
} rank_report;
_Static_assert(sizeof(rank_report) <= 4096, "a report must be one atomic write");

typedef struct rank {
    pid_t pid; /* 0: not started */
    bool ended, killed_by_us, reported;
    int order; /* in which the parent learned of its end, from 1 */
    int report_order;
    int wait_status;
    tdm_error error;
} rank;

typedef struct launch {
    const tool *t;
    int world, alive, fd;
    int pipe[2];
    rank *ranks;
    int ends, reports; /* so far */
    bool failed;
    double kill_at; /* 0: not yet decided */
    int signals, first_signal;
    double signalled; /* when the first came */
    sigset_t watched, before;
} launch;

/* ---- the rank's side ---- */

bool launch_is_rank(const tdm_launch_facts *facts) {
    return facts->source == TDM_LAUNCH_TANDEM && facts->world > 1 && getenv(REPORT_VARIABLE) != NULL;
}

/* Digits alone, and a value of int; -1: anything else. */
static int whole_number(const char *text) {
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end || errno || value > INT_MAX ? -1 : (int)value;
}

static int wrong_variable(const char *name, const char *wanted) {
    term_line("tandem: error: %s wants %s, it is '%.40s'; tandem sets it for the ranks that it starts, nobody else: "
              "unset it",
              name, wanted, getenv(name));
    return TDM_E_USAGE;
}

int launch_join(const tdm_launch_facts *facts) {
    const char *parent = getenv(PARENT_VARIABLE);
    if (launch_is_rank(facts)) {
        int fd = whole_number(getenv(REPORT_VARIABLE));
        if (fd < 0 || fcntl(fd, F_GETFD) < 0) return wrong_variable(REPORT_VARIABLE, "an open descriptor");
    }
    if (!parent) return TDM_OK;
    int pid = whole_number(parent);
    if (pid <= 0) return wrong_variable(PARENT_VARIABLE, "a process id");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)pid) _exit(128 + SIGKILL); /* it died before the line above */
    if (launch_is_rank(facts)) signal(SIGINT, SIG_IGN);
    return TDM_OK;
}

int launch_report(const tool *t, const tdm_launch_facts *facts, tdm_status status) {
    if (!launch_is_rank(facts)) return tell_error(status);
    rank_report report;
    memset(&report, 0, sizeof report);
    report.rank = facts->rank;
    report.error = *tdm_error_last();
    report.error.status = status;
    log_note("error: %s", report.error.message);
    ssize_t written = write(whole_number(getenv(REPORT_VARIABLE)), &report, sizeof report);
    if (t->verbose || written != (ssize_t)sizeof report) tell_error(status);
    return (int)status;
}

/* ---- the parent's side ---- */

static bool is_ours(const char *variable) {
    static const char *const names[] = {"TANDEM_RANK=", "TANDEM_WORLD=", "TANDEM_LAUNCH_FD=", PARENT_VARIABLE "=",
                                        REPORT_VARIABLE "="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
    }
    return false;
}

/* Ours without the variables of a launch, and with this process as the parent; there is room for `more` behind it. */
static char **child_environment(size_t more, size_t *used) {
    size_t count = 0;
    while (environ[count]) count++;
    char **out = memory_new(count + 2 + more, sizeof *out);
    *used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) out[(*used)++] = text_copy(environ[i]);
    }
    out[(*used)++] = text_format(PARENT_VARIABLE "=%ld", (long)getpid());
    return out;
}

static char **rank_environment(const launch *l, int index) {
    size_t used;
    char **out = child_environment(4, &used);
    out[used++] = text_format("TANDEM_RANK=%d", index);
    out[used++] = text_format("TANDEM_WORLD=%d", l->world);
    out[used++] = text_format("TANDEM_LAUNCH_FD=%d", l->fd);
    out[used++] = text_format(REPORT_VARIABLE "=%d", l->pipe[1]);
    return out;
}

static void free_texts(char **texts) {
    for (char **text = texts; *text; text++) free(*text);
    free(texts);
}

/* Duplicating a descriptor onto itself is posix_spawn's way of letting it through. */
static int start_rank(launch *l, int index, const char *self, char *const *argv) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = rank_environment(l, index);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, l->fd, l->fd);
    posix_spawn_file_actions_adddup2(&actions, l->pipe[1], l->pipe[1]);
    posix_spawnattr_setsigmask(&attributes, &l->before);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawn(&l->ranks[index].pid, self, &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free_texts(environment);
    if (error != 0) {
        l->ranks[index].pid = 0;
        term_line("tandem: error: rank %d cannot be started: %s", index, strerror(error));
        return error == ENOMEM || error == EAGAIN ? TDM_E_MEMORY : TDM_E_INTERNAL;
    }
    l->alive++;
    return TDM_OK;
}

static void signal_all(launch *l, int number) {
    for (int i = 0; i < l->world; i++) {
        rank *r = &l->ranks[i];
        if (r->pid == 0 || r->ended) continue;
        if (number == SIGKILL) r->killed_by_us = true;
        kill(r->pid, number);
    }
}

static void describe_end(const rank *r, int index, char *out, size_t bytes) {
    if (WIFSIGNALED(r->wait_status)) {
        int number = WTERMSIG(r->wait_status);
        const char *name = sigabbrev_np(number);
        snprintf(out, bytes, "rank %d (pid %ld) was killed by signal %d (SIG%s)%s", index, (long)r->pid, number,
                 name ? name : "?",
                 number == SIGKILL ? "; if nobody did that, memory may have run out: see `dmesg`" : "");
    } else {
        snprintf(out, bytes, "rank %d (pid %ld) ended with code %d", index, (long)r->pid, WEXITSTATUS(r->wait_status));
    }
}

static void read_reports(launch *l) {
    rank_report report;
    while (read(l->pipe[0], &report, sizeof report) == (ssize_t)sizeof report) {
        if (report.rank < 0 || report.rank >= l->world) continue;
        rank *r = &l->ranks[report.rank];
        r->reported = true;
        r->report_order = ++l->reports;
        r->error = report.error;
    }
}

static bool ended_badly(const rank *r) {
    if (WIFSIGNALED(r->wait_status)) return true;
    int code = WEXITSTATUS(r->wait_status);
    return code != TDM_OK && code != TDM_E_STOPPED;
}

static void on_end(launch *l, int index) {
    rank *r = &l->ranks[index];
    r->ended = true;
    r->order = ++l->ends;
    l->alive--;
    read_reports(l);
    if (l->failed || !ended_badly(r)) return;
    char why[400];
    l->failed = true;
    describe_end(r, index, why, sizeof why);
    tdm_launch_abort(l->fd, index, WIFSIGNALED(r->wait_status) ? why : r->reported ? r->error.message : why);
    l->kill_at = progress_now() + grace_seconds;
}

static void reap(launch *l) {
    for (int i = 0; i < l->world; i++) {
        rank *r = &l->ranks[i];
        if (r->pid == 0 || r->ended) continue;
        if (waitpid(r->pid, &r->wait_status, WNOHANG) == r->pid) on_end(l, i);
    }
}

static void on_signal(launch *l, int number) {
    double now = progress_now();
    if (l->signals > 0 && now - l->signalled < STOP_SAME_EVENT_MS * 1e-3) return;
    if (l->signals++ == 0) {
        l->signalled = now;
        l->first_signal = number;
        if (!l->t->quiet) term_line("tandem: stopping after this step and saving; a second signal leaves at once");
        signal_all(l, SIGTERM);
    } else {
        signal_all(l, SIGKILL);
    }
}

static void watch(launch *l) {
    while (l->alive > 0) {
        double wait = l->kill_at > 0 ? l->kill_at - progress_now() : 1;
        if (wait < 0) wait = 0;
        struct timespec limit = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
        int number = sigtimedwait(&l->watched, NULL, &limit);
        if (number == SIGTERM || number == SIGINT) on_signal(l, number);
        reap(l);
        if (l->kill_at > 0 && progress_now() >= l->kill_at) {
            signal_all(l, SIGKILL);
            l->kill_at = progress_now() + grace_seconds;
        }
    }
    read_reports(l);
}

/* The rank whose failure explains the others': one that died of a signal that was not ours, else the first error that
 * is no lost peer, else the first error. -1: all went well. */
static int first_cause(const launch *l) {
    int best = -1, best_rank = 0;
    for (int i = 0; i < l->world; i++) {
        const rank *r = &l->ranks[i];
        if (r->pid == 0 || !ended_badly(r) || r->killed_by_us) continue;
        bool lost_peer = r->reported && r->error.status == TDM_E_COMM;
        int class = WIFSIGNALED(r->wait_status) ? 0 : lost_peer ? 2 : 1;
        int value = class * 100000 + (r->reported ? r->report_order : r->order);
        if (best < 0 || value < best_rank) {
            best = i;
            best_rank = value;
        }
    }
    return best;
}

static int verdict(const launch *l) {
    if (l->signals > 1) return 128 + l->first_signal;
    int cause = first_cause(l);
    if (cause < 0) {
        int code = TDM_OK;
        for (int i = 0; i < l->world; i++) {
            if (WEXITSTATUS(l->ranks[i].wait_status) == TDM_E_STOPPED) code = TDM_E_STOPPED;
            if (l->ranks[i].killed_by_us) return TDM_E_INTERNAL;
        }
        return code;
    }
    const rank *r = &l->ranks[cause];
    char end[400];
    describe_end(r, cause, end, sizeof end);
    if (WIFSIGNALED(r->wait_status)) {
        int number = WTERMSIG(r->wait_status);
        if (l->signals == 0 || number != SIGTERM) {
            term_line("%standem: error:%s %s", term_on(stderr, TERM_RED), term_off(stderr), end);
        }
        return 128 + number;
    }
    if (r->reported) {
        tdm_error error = r->error;
        snprintf(error.message, sizeof error.message, "[rank %d] %.2000s", cause, r->error.message);
        return tell_error_of(&error);
    }
    term_line("%standem: error:%s %s", term_on(stderr, TERM_RED), term_off(stderr), end);
    return WEXITSTATUS(r->wait_status);
}

static int start_all(launch *l, const char *extra) {
    char *self = files_self();
    if (!self) {
        term_line("tandem: error: /proc/self/exe cannot be read, so ranks cannot be started");
        return TDM_E_INTERNAL;
    }
    char **argv = memory_new((size_t)l->t->argc + 2, sizeof *argv);
    for (int i = 0; i < l->t->argc; i++) argv[i] = text_copy(l->t->argv[i]);
    if (extra) argv[l->t->argc] = text_copy(extra);
    int code = TDM_OK;
    for (int i = 0; i < l->world && code == TDM_OK; i++) code = start_rank(l, i, self, argv);
    if (code != TDM_OK) signal_all(l, SIGKILL);
    free_texts(argv);
    free(self);
    return code;
}

int launch_ranks(const tool *t, int world, const char *extra) {
    launch l = {.t = t, .world = world, .fd = -1, .pipe = {-1, -1}};
    tdm_status status = tdm_launch_create(&l.fd, world);
    if (status != TDM_OK) return tell_error(status);
    int code = TDM_E_INTERNAL;
    if (pipe2(l.pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        code = errno == EMFILE || errno == ENFILE ? TDM_E_MEMORY : TDM_E_INTERNAL;
        term_line("tandem: error: a pipe is refused: %s%s", strerror(errno),
                  code == TDM_E_MEMORY ? "; raise the limit of open files (ulimit -n)" : "");
    } else {
        l.ranks = memory_new((size_t)world, sizeof *l.ranks);
        sigemptyset(&l.watched);
        sigaddset(&l.watched, SIGCHLD);
        sigaddset(&l.watched, SIGTERM);
        sigaddset(&l.watched, SIGINT);
        sigprocmask(SIG_BLOCK, &l.watched, &l.before);
        code = start_all(&l, extra);
        watch(&l);
        if (code == TDM_OK) code = verdict(&l);
        /* The signals stay blocked: this process ends now, and one that comes late must not change how. */
        free(l.ranks);
        close(l.pipe[0]);
        close(l.pipe[1]);
    }
    close(l.fd);
    return code;
}

/* ---- a run of its own ---- */

static int exit_code(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Signals go on to the child, which takes them as a standalone command would. */
static int wait_for(pid_t child, const sigset_t *watched) {
    int wait_status = 0;
    const struct timespec limit = {1, 0};
    while (waitpid(child, &wait_status, WNOHANG) == 0) {
        int number = sigtimedwait(watched, NULL, &limit);
        if (number == SIGTERM || number == SIGINT) kill(child, SIGTERM);
    }
    return exit_code(wait_status);
}

int launch_command(char *const *argv) {
    sigset_t watched, before;
    posix_spawnattr_t attributes;
    size_t used;
    pid_t child;
    char *self = files_self();
    char **environment = child_environment(0, &used);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigprocmask(SIG_BLOCK, &watched, &before);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &before);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = self ? posix_spawn(&child, self, NULL, &attributes, argv, environment) : ENOENT;
    int code = TDM_E_INTERNAL;
    if (error) {
        term_line("tandem: error: `tandem %s` cannot be started: %s", argv[1], strerror(error));
    } else {
        code = wait_for(child, &watched);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawnattr_destroy(&attributes);
    free_texts(environment);
    free(self);
    return code;
}
