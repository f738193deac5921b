/* hosts_run.c - starts a job on several hosts, and says how it ended: see hosts.h.
 *
 * Each host's process has a process group of its own, so that Ctrl-C does not end ssh before the ranks have saved. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/launch/hosts_watch.h"
#include "tools/launch/launch_word.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

/* ---- the command of a host ---- */

/* `--ssh` is a command for a shell, as git's GIT_SSH_COMMAND is. Its own options come first, and so win. BatchMode: ssh
 * must not ask for a password, of each host, in the middle of the output. The remote shell reads the last word. */
static void add_ssh(text_list *words, const hosts_job *job, const launch_host *host) {
    static const char *const options[] = {"BatchMode=yes", "ConnectTimeout=20", "ServerAliveInterval=5",
                                          "ServerAliveCountMax=3"};
    FREED char *program = text_quoted(job->program);
    text_add(words, "/bin/sh");
    text_add(words, "-c");
    text_add(words, "exec %s \"$@\"", job->ssh);
    text_add(words, "sh");
    text_add(words, "-T");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        text_add(words, "-o");
        text_add(words, "%s", options[i]);
    }
    text_add(words, "%s", host->target);
    text_add(words, "exec %s --hosted --greet", program);
}

/* ---- starting ---- */

typedef struct start_plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
} start_plan;

/* Ends of pipes that become the standard streams; -1: this process's own stream. */
static int plan(start_plan *p, const int stream[3]) {
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE); /* main.c ignores them */
    sigaddset(&defaults, SIGXFSZ);
    int error = posix_spawn_file_actions_init(&p->actions);
    if (error == 0) error = posix_spawnattr_init(&p->attributes);
    for (int i = 0; i < 3 && error == 0; i++) {
        if (stream[i] >= 0) error = posix_spawn_file_actions_adddup2(&p->actions, stream[i], i);
    }
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (error == 0) error = posix_spawnattr_setflags(&p->attributes, flags);
    if (error == 0) error = posix_spawnattr_setsigmask(&p->attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&p->attributes, &defaults);
    return error;
}

static int spawn(hosted *h, const text_list *words, const int stream[3]) {
    FREED char *self = files_self();
    start_plan p;
    int error = self ? plan(&p, stream) : ENOENT;
    if (error == 0)
        error = posix_spawn(&h->pid, h->host->is_here ? self : words->text[0], &p.actions, &p.attributes, words->text,
                            environ);
    if (self) posix_spawn_file_actions_destroy(&p.actions);
    if (self) posix_spawnattr_destroy(&p.attributes);
    if (error != 0) h->pid = 0;
    return error;
}

/* A pipe: *near is this process's end, which never blocks; *far is the host's. */
static int open_pipe(int *near, int *far, bool near_writes) {
    int end[2];
    if (pipe2(end, O_CLOEXEC) != 0) return errno;
    *near = end[near_writes ? 1 : 0];
    *far = end[near_writes ? 0 : 1];
    return fcntl(*near, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

static int start_host(fleet *f, hosted *h) {
    FREED_BY(text_list_free) text_list words = {0};
    int stream[3] = {-1, -1, -1};
    /* Host 0 on this machine has the terminal itself. */
    const bool has_own = h != f->host || !h->host->is_here;
    int error = open_pipe(&h->control, &stream[0], true);
    for (int s = 0; s < 2 && has_own && error == 0; s++) error = open_pipe(&h->output[s].fd, &stream[1 + s], false);
    if (h->host->is_here) {
        text_add(&words, "tandem");
        text_add(&words, "--hosted");
    } else {
        add_ssh(&words, f->job, h->host);
    }
    if (error == 0) error = spawn(h, &words, stream);
    for (int i = 0; i < 3; i++) {
        if (stream[i] >= 0) close(stream[i]);
    }
    if (error == 0) f->alive++;
    if (error != 0) term_error("host %s: cannot start %s: %s", h->host->name, words.text[0], strerror(error));
    return error == 0 ? TDM_OK : error == ENOMEM || error == EAGAIN || error == EMFILE ? TDM_E_MEMORY : TDM_E_INTERNAL;
}

static int start_all(fleet *f) {
    for (int i = 0; i < f->count; i++) {
        hosted *h = &f->host[i];
        launch_orders orders = *f->job->orders;
        orders.host = i;
        h->orders = orders_text(&orders, &h->bytes);
        const int code = start_host(f, h);
        if (code != TDM_OK) return code;
    }
    return TDM_OK;
}

/* From here on signals come through a descriptor. */
static int hold_signals(fleet *f) {
    sigset_t watched;
    stop_signals(&watched);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    f->signal_fd = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
    if (f->signal_fd >= 0) return TDM_OK;
    term_error("cannot watch signals: %s", strerror(errno));
    return TDM_E_INTERNAL;
}

/* ---- the whole ---- */

static void clean_up(fleet *f) {
    for (int i = 0; i < f->count; i++) {
        hosted *h = &f->host[i];
        if (h->control >= 0) close(h->control);
        for (int s = 0; s < 2; s++) {
            if (h->output[s].fd >= 0) close(h->output[s].fd);
            free(h->output[s].text);
        }
        free(h->orders);
        free(h->version);
    }
    free(f->host);
    if (f->signal_fd >= 0) close(f->signal_fd);
}

int hosts_run(const hosts_job *job) {
    unsetenv(PARENT_VARIABLE); /* who started this process, as compare does, is not their parent */
    fleet f = {.job = job, .count = job->hosts->count};
    f.host = memory_new((size_t)f.count, sizeof *f.host);
    for (int i = 0; i < f.count; i++)
        f.host[i] = (hosted){.host = &job->hosts->host[i], .control = -1, .output = {{.fd = -1}, {.fd = -1}}};
    int code = hold_signals(&f);
    if (code == TDM_OK) code = start_all(&f);
    if (code != TDM_OK) f.next_phase_at = 1e-9; /* one that could not be started: the others end */
    fleet_watch(&f);
    if (code == TDM_OK) code = fleet_verdict(&f);
    clean_up(&f);
    return code;
}
