/* launch_rank.c - the started process's side of a launch: see launch_word.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/launch/launch_word.h"
#include "tools/terminal/log.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

bool launch_is_watched(void) {
    return getenv(PARENT_VARIABLE) != NULL && getenv(REPORT_VARIABLE) != NULL;
}

bool launch_is_rank(const tdm_launch_facts *facts) {
    return facts->source == TDM_LAUNCH_TANDEM && facts->world > 1 && getenv(REPORT_VARIABLE) != NULL;
}

const char *launch_lost(void) {
    return launch_is_watched() ? getenv(LOST_VARIABLE) : NULL;
}

int launch_pid(void) {
    return (int)(launch_is_watched() ? getppid() : getpid());
}

/* The value of a text of digits that fits an int; -1 for anything else. */
static int whole_number(const char *text) {
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end || errno || value > INT_MAX ? -1 : (int)value;
}

int launch_restarts(void) {
    int count = launch_is_watched() ? whole_number(getenv(RESTARTS_VARIABLE)) : 0;
    return count > 0 ? count : 0;
}

bool launch_goes_on(void) {
    const char *resume = launch_is_watched() ? getenv(RESUME_VARIABLE) : NULL;
    return resume && strcmp(resume, "auto") == 0;
}

static int wrong_variable(const char *name, const char *expected) {
    term_line(
        "tandem: error: %s must be %s, got '%.40s'; only tandem sets this variable, for the processes that it starts: "
        "unset it",
        name, expected, getenv(name));
    return TDM_E_USAGE;
}

int launch_join(const tdm_launch_facts *facts) {
    const char *parent = getenv(PARENT_VARIABLE);
    sigset_t held;
    if (launch_is_rank(facts) || launch_is_watched()) {
        int fd = whole_number(getenv(REPORT_VARIABLE));
        if (fd < 0 || fcntl(fd, F_GETFD) < 0) return wrong_variable(REPORT_VARIABLE, "an open descriptor");
    }
    if (!parent) return TDM_OK;
    int pid = whole_number(parent);
    if (pid <= 0) return wrong_variable(PARENT_VARIABLE, "a process id");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)pid) _exit(128 + SIGKILL); /* it died before the line above */
    if (launch_is_watched()) signal(SIGINT, SIG_IGN);
    stop_signals(&held); /* blocked by the parent until the handlers are installed */
    sigaddset(&held, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &held, NULL);
    return TDM_OK;
}

static bool send_word(const launch_word *word) {
    return write(whole_number(getenv(REPORT_VARIABLE)), word, sizeof *word) == (ssize_t)sizeof *word;
}

int launch_report(const tool *t, const tdm_launch_facts *facts, tdm_status status) {
    if (!launch_is_watched()) return tell_error(status);
    launch_word word;
    memset(&word, 0, sizeof word);
    word.rank = facts->rank;
    word.error = *tdm_error_last();
    word.error.status = status;
    log_note("error: %s", word.error.message);
    if (!send_word(&word) || t->verbose) tell_error(status);
    return (int)status;
}

static void send_news(const tdm_launch_facts *facts, launch_news news, int64_t step) {
    if (!launch_is_watched()) return;
    launch_word word;
    memset(&word, 0, sizeof word);
    word.rank = facts->rank;
    word.news = news;
    word.step = step;
    (void)send_word(&word);
}

void launch_met(const tdm_launch_facts *facts) {
    send_news(facts, LAUNCH_MET, 0);
}

void launch_began(const tdm_launch_facts *facts, int64_t step) {
    send_news(facts, LAUNCH_BEGAN, step);
}
