/* log.c - see log.h. Lines may come from any thread. They wait in memory until the file is open and has space on disk.
 */
#include "tools/terminal/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/terminal/term.h"

enum { WAITING_BYTES = 65536 }; /* lines beyond this are dropped */

static struct {
    int fd; /* -1: none yet */
    int rank, world;
    bool quiet, verbose;
    char *path;           /* for messages */
    pthread_mutex_t lock; /* of the fields below */
    bool failing;
    long left_out; /* dropped lines */
    size_t used;
    char waiting[WAITING_BYTES]; /* a part of the first line may be in the file already */
} sink = {.fd = -1, .world = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Writes what waits. Returns why not all of it is written, or 0. */
static int put_waiting(void) {
    size_t done = 0;
    ssize_t n = 1;
    while (done < sink.used && n > 0) {
        n = TEMP_FAILURE_RETRY(write(sink.fd, sink.waiting + done, sink.used - done));
        if (n > 0) done += (size_t)n;
    }
    int reason = n < 0 ? errno : ENOSPC;
    memmove(sink.waiting, sink.waiting + done, sink.used - done);
    sink.used -= done;
    return sink.used > 0 ? reason : 0;
}

/* A log that cannot be written must not end the run. Its lines wait; if too many wait, the log says how many are
 * missing. */
static void write_waiting(void) {
    int reason = put_waiting();
    if (reason == 0 && sink.left_out > 0) {
        sink.used = (size_t)snprintf(sink.waiting, WAITING_BYTES, "%ld lines are missing here\n", sink.left_out);
        sink.left_out = 0;
        reason = put_waiting();
    }
    if (reason != 0 && !sink.failing) {
        term_line("tandem: warning: %s cannot be written: %s; up to %d KiB of its lines wait until that is possible",
                  sink.path, strerror(reason), WAITING_BYTES / 1024);
    }
    sink.failing = reason != 0;
}

static void add_text(const char *text, size_t bytes) {
    pthread_mutex_lock(&sink.lock);
    if (bytes <= WAITING_BYTES - sink.used) {
        memcpy(sink.waiting + sink.used, text, bytes);
        sink.used += bytes;
    } else {
        sink.left_out++;
    }
    if (sink.fd >= 0) write_waiting();
    pthread_mutex_unlock(&sink.lock);
}

static void add_line(const char *level, const char *subsystem, const char *line) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char stamp[40];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    FREED char *text = text_format("%s.%03ldZ %-7s %s: %s\n", stamp, now.tv_nsec / 1000000, level, subsystem, line);
    add_text(text, strlen(text));
}

static const char *const levels[] = {"error", "warning", "info", "debug"};

static void on_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)user;
    add_line(levels[level], subsystem, line);
    if (level > TDM_LOG_WARNING && !sink.verbose) return;
    if (level > TDM_LOG_ERROR && sink.quiet) return;
    char who[24] = "";
    if (sink.world > 1) snprintf(who, sizeof who, "[rank %d] ", sink.rank);
    term_style style = level == TDM_LOG_ERROR ? TERM_RED : level == TDM_LOG_WARNING ? TERM_YELLOW : TERM_DIM;
    FREED char *mark = text_format("tandem: %s:", levels[level]);
    term_mark(style, who, mark, "%s: %s", subsystem, line);
}

/* TANDEM_LOG sets the most detailed level that is logged. */
static tdm_log_level log_level(const tool *t) {
    const char *text = getenv("TANDEM_LOG");
    for (int i = 0; text && i < 4; i++) {
        if (strcmp(text, levels[i]) == 0) return (tdm_log_level)i;
    }
    return t->verbose ? TDM_LOG_DEBUG : TDM_LOG_INFO;
}

void log_init(tool *t) {
    sink.quiet = t->quiet;
    sink.verbose = t->verbose;
    t->host = *tdm_host_default(); /* keep its memory functions and `user`, use our log */
    t->host.log = on_line;
    t->host.log_level = log_level(t);
}

void log_set_rank(int rank, int world) {
    sink.rank = rank;
    sink.world = world;
}

/* The run directory is rank 0's. On another host it may be missing; there the ranks have their logs in one of the same
 * name. */
static int open_run(const char *run_dir) {
    FREED char *path = text_copy(run_dir);
    int run = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run >= 0 || errno != ENOENT) return run;
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0775);
        *slash = '/';
    }
    (void)mkdir(path, 0775); /* one that could not be made cannot be opened either */
    return open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens relative to descriptors, so that a symbolic link inside the run directory cannot lead out of it. */
static int open_in(const char *run_dir, const char *name, bool *has_folder) {
    int run = open_run(run_dir);
    *has_folder = false;
    if (run < 0) return -1;
    bool there = mkdirat(run, "logs", 0775) == 0 || errno == EEXIST;
    int logs = there ? openat(run, "logs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    int fd = logs >= 0 ? files_open_in(logs, name, O_WRONLY | O_CREAT | O_APPEND) : -1;
    int reason = errno;
    *has_folder = logs >= 0;
    if (logs >= 0) close(logs);
    close(run);
    errno = reason;
    return fd;
}

void log_open(const char *run_dir, int rank) {
    FREED char *name = text_format("rank-%d.log", rank);
    bool has_folder;
    int fd = open_in(run_dir, name, &has_folder);
    int reason = errno;
    sink.path = text_format("%s/logs/%s", run_dir, name);
    if (fd >= 0) {
        pthread_mutex_lock(&sink.lock);
        sink.fd = fd;
        write_waiting();
        pthread_mutex_unlock(&sink.lock);
    } else {
        FREED char *folder = text_format("%s/logs", run_dir);
        const char *refused = has_folder ? sink.path : folder;
        term_line("tandem: warning: %s cannot be written: %s", refused, files_refusal(refused, reason));
    }
}

void log_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    FREED char *text = text_format_printable(format, args);
    va_end(args);
    add_line("info", "tandem", text);
}

void log_close(void) {
    if (sink.fd >= 0) {
        write_waiting();
        close(sink.fd);
    }
    sink.fd = -1;
    free(sink.path);
    sink.path = NULL;
}
