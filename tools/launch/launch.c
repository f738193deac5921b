/* launch.c - see launch.h.
 *
 * Ranks share one anonymous descriptor (tdm_launch_create), so that no named object can be left behind. A child gets
 * SIGKILL when this process dies, and reports to it over a pipe. Signals are blocked in this process, and in each child
 * until it has its handlers, so that no signal is lost or comes too early. */
#include "tools/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/launch/launch_watch.h"
#include "tools/launch/launch_word.h"
#include "tools/launch/orders.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

/* ---- the environment of a child ---- */

static bool is_ours(const char *variable) {
    static const char *const names[] = {"TANDEM_RANK=",        "TANDEM_WORLD=",       "TANDEM_LOCAL_RANK=",
                                        "TANDEM_LOCAL_WORLD=", "TANDEM_LAUNCH_FD=",   PARENT_VARIABLE "=",
                                        REPORT_VARIABLE "=",   RESTARTS_VARIABLE "=", RESUME_VARIABLE "=",
                                        ORDERS_VARIABLE "=",   LOST_VARIABLE "="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
    }
    return false;
}

static bool is_address(const char *variable) {
    return strncmp(variable, "MASTER_ADDR=", 12) == 0 || strncmp(variable, "MASTER_PORT=", 12) == 0;
}

static bool is_secret(const char *variable) {
    return strncmp(variable, "TANDEM_SECRET=", 14) == 0 || strncmp(variable, "TANDEM_SECRET_FILE=", 19) == 0;
}

/* Our environment without the variables of a launch, with this process as the parent. has_address, has_secret: the
 * child is told where to meet, and with which secret, whatever our environment says. */
static text_list child_environment(bool has_address, bool has_secret) {
    text_list out = {0};
    for (char **variable = environ; *variable; variable++) {
        const bool is_replaced = (has_address && is_address(*variable)) || (has_secret && is_secret(*variable));
        if (!is_ours(*variable) && !is_replaced) text_add(&out, "%s", *variable);
    }
    text_add(&out, PARENT_VARIABLE "=%ld", (long)getpid());
    return out;
}

static text_list process_environment(const launch *l, int index) {
    const launch_orders *orders = l->job->t->orders;
    text_list out = child_environment(l->job->nodes.count > 0, orders != NULL);
    text_add(&out, REPORT_VARIABLE "=%d", l->pipe[1]);
    text_add(&out, RESTARTS_VARIABLE "=%d", l->job->restarts);
    if (l->job->goes_on) text_add(&out, RESUME_VARIABLE "=auto");
    if (orders) text_add(&out, ORDERS_VARIABLE "=%d", orders->fd);
    if (orders) text_add(&out, "TANDEM_SECRET_FILE=/proc/self/fd/%d", orders->secret_fd);
    if (l->job->world == 0) return out;
    const launch_nodes *nodes = &l->job->nodes;
    const int hosts = nodes->count > 0 ? nodes->count : 1;
    text_add(&out, "TANDEM_RANK=%d", launch_first_rank(l->job) + index);
    text_add(&out, "TANDEM_WORLD=%d", launch_ranks_before(nodes, hosts, l->job->world));
    text_add(&out, "TANDEM_LOCAL_RANK=%d", index);
    text_add(&out, "TANDEM_LOCAL_WORLD=%d", l->job->world);
    text_add(&out, "TANDEM_LAUNCH_FD=%d", l->fd);
    if (nodes->count == 0) return out;
    text_add(&out, "MASTER_ADDR=%s", nodes->master);
    text_add(&out, "MASTER_PORT=%d", nodes->port);
    return out;
}

/* ---- starting ---- */

/* `pass`: descriptors that the child inherits, ends with -1. posix_spawn clears close-on-exec when a descriptor is
 * duplicated onto itself. */
static int start(pid_t *pid, char *const *argv, text_list environment, const int *pass) {
    posix_spawn_file_actions_t actions;
    FREED char *self = files_self();
    int error = self ? posix_spawn_file_actions_init(&actions) : ENOENT;
    if (error == 0) {
        for (; *pass >= 0 && error == 0; pass++) error = posix_spawn_file_actions_adddup2(&actions, *pass, *pass);
        if (error == 0) error = posix_spawn(pid, self, &actions, NULL, argv, environment.text);
        posix_spawn_file_actions_destroy(&actions);
    }
    text_list_free(&environment);
    return error;
}

static int code_of(int error) {
    return error == ENOMEM || error == EAGAIN ? TDM_E_MEMORY : TDM_E_INTERNAL;
}

/* This command line as process `index`, or, with a reason, as one that only tells how it was lost. */
static int start_process(const launch *l, int index, const char *lost, pid_t *pid) {
    const tool *t = l->job->t;
    const launch_orders *orders = t->orders;
    const int pass[] = {l->pipe[1], l->fd, orders ? orders->fd : -1, orders ? orders->secret_fd : -1, -1};
    FREED_BY(text_list_free) text_list argv = {0};
    for (int i = 0; i < t->argc; i++) text_add(&argv, "%s", t->argv[i]);
    if (l->job->extra) text_add(&argv, "%s", l->job->extra);
    text_list environment = process_environment(l, index);
    if (lost) text_add(&environment, LOST_VARIABLE "=%s", lost);
    return start(pid, argv.text, environment, pass);
}

static int start_one(launch *l, int index) {
    launch_process *p = &l->process[index];
    int error = start_process(l, index, NULL, &p->pid);
    if (error != 0) {
        p->pid = 0;
        term_line("tandem: error: cannot start rank %d: %s", launch_first_rank(l->job) + index, strerror(error));
        return code_of(error);
    }
    l->alive++;
    if (l->job->world > 0)
        snprintf(p->name, sizeof p->name, "rank %d (pid %ld)", launch_first_rank(l->job) + index, (long)p->pid);
    else
        snprintf(p->name, sizeof p->name, "the run (pid %ld)", (long)p->pid);
    return TDM_OK;
}

static int start_all(launch *l) {
    int code = TDM_OK;
    for (int i = 0; i < l->count && code == TDM_OK; i++) code = start_one(l, i);
    if (code != TDM_OK) launch_signal_all(l, SIGKILL);
    return code;
}

static pid_t start_teller(const launch *l, int index, const char *why) {
    pid_t pid;
    return start_process(l, index, why, &pid) == 0 ? pid : 0;
}

/* Blocks signals: from here on sigtimedwait takes them. Returns a signal that has already come, or 0. */
static int hold_signals(sigset_t *watched) {
    const struct timespec now = {0, 0};
    stop_signals(watched);
    sigprocmask(SIG_BLOCK, watched, NULL);
    int number = sigtimedwait(watched, NULL, &now);
    if (number > 0) stop_note(number);
    sigaddset(watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, watched, NULL);
    return stop_signal();
}

static int open_pipe(launch *l) {
    if (pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) == 0) return TDM_OK;
    int code = errno == EMFILE || errno == ENFILE ? TDM_E_MEMORY : TDM_E_INTERNAL;
    term_line("tandem: error: cannot create a pipe: %s%s", strerror(errno),
              code == TDM_E_MEMORY ? "; raise the limit of open files (ulimit -n)" : "");
    return code;
}

static int start_and_watch(launch *l) {
    if (l->job->world > 0) {
        tdm_status status = tdm_launch_create(&l->fd, l->job->world);
        if (status != TDM_OK) return tell_error(status);
    }
    int code = open_pipe(l);
    if (code == TDM_OK) code = start_all(l);
    launch_watch(l);
    return code;
}

void launch_run(const launch_job *job, launch_end *end) {
    launch l = {.job = job,
                .count = job->world > 0 ? job->world : 1,
                .fd = -1,
                .pipe = {-1, -1},
                .began_at = -1,
                .start_teller = start_teller};
    *end = (launch_end){.began_at = -1};
    int number = hold_signals(&l.watched);
    if (number != 0) {
        end->code = job->stop_code != 0 ? job->stop_code : 128 + number;
        return;
    }
    l.process = memory_new((size_t)l.count, sizeof *l.process);
    end->code = start_and_watch(&l);
    if (end->code == TDM_OK) launch_verdict(&l, end);
    free(l.process);
    for (int i = 0; i < 2 && l.pipe[i] >= 0; i++) close(l.pipe[i]);
    if (l.fd >= 0) close(l.fd);
}

int launch_tell(const launch_end *end) {
    if (end->error.status != TDM_OK) {
        tell_error_of(&end->error);
    } else if (end->error.message[0]) {
        term_error("%s", end->error.message);
    }
    return end->code;
}

int launch_ranks(const tool *t, int world) {
    const launch_job job = {.t = t, .world = world, .grace = 30};
    launch_end end;
    launch_run(&job, &end);
    return launch_tell(&end);
}

/* ---- a child that is not a rank ---- */

/* Waits for the child. Passes stop signals on to it as SIGTERM. */
static int wait_for(pid_t child, const sigset_t *watched) {
    int wait_status = 0;
    const struct timespec limit = {1, 0};
    while (waitpid(child, &wait_status, WNOHANG) == 0) {
        int number = sigtimedwait(watched, NULL, &limit);
        if (number <= 0 || number == SIGCHLD) continue;
        stop_note(number);
        kill(child, SIGTERM);
    }
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int launch_command(char *const *argv) {
    static const int none[] = {-1};
    sigset_t watched;
    pid_t child;
    int code = 128 + hold_signals(&watched);
    if (code == 128) {
        int error = start(&child, argv, child_environment(false, false), none);
        code = error == 0 ? wait_for(child, &watched) : code_of(error);
        if (error != 0) term_line("tandem: error: cannot start `tandem %s`: %s", argv[1], strerror(error));
    }
    sigprocmask(SIG_UNBLOCK, &watched, NULL);
    return code;
}
