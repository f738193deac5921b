/* log.c - see log.h. Lines may come from any thread: each is one write, and the file is opened to append. */
#include "tools/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/term.h"

enum { EARLY_BYTES = 32768 }; /* of lines that come before there is a file */

static struct {
    int fd; /* -1: none yet */
    int rank, world;
    bool quiet, verbose;
    pthread_mutex_t lock; /* of early */
    size_t early_used;
    char early[EARLY_BYTES];
} sink = {.fd = -1, .world = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A full disk must not end the run because of its log. */
static void write_text(const char *text, size_t bytes) {
    ssize_t written = write(sink.fd, text, bytes);
    (void)written;
}

/* Lines of a run that has no file yet; what finds no room is left out. */
static void keep_early(const char *text, size_t bytes) {
    pthread_mutex_lock(&sink.lock);
    if (bytes <= EARLY_BYTES - sink.early_used) {
        memcpy(sink.early + sink.early_used, text, bytes);
        sink.early_used += bytes;
    }
    pthread_mutex_unlock(&sink.lock);
}

static void keep(const char *level, const char *subsystem, const char *line) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char stamp[40];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    char *text = text_format("%s.%03ldZ %-7s %s: %s\n", stamp, now.tv_nsec / 1000000, level, subsystem, line);
    if (sink.fd >= 0) {
        write_text(text, strlen(text));
    } else {
        keep_early(text, strlen(text));
    }
    free(text);
}

static void on_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)user;
    keep(names[level], subsystem, line);
    if (level > TDM_LOG_WARNING && !sink.verbose) return;
    if (level > TDM_LOG_ERROR && sink.quiet) return;
    char who[24] = "";
    if (sink.world > 1) snprintf(who, sizeof who, "[rank %d] ", sink.rank);
    term_style style = level == TDM_LOG_ERROR ? TERM_RED : level == TDM_LOG_WARNING ? TERM_YELLOW : TERM_DIM;
    term_line("%s%standem: %s:%s %s: %s", who, term_on(stderr, style), names[level], term_off(stderr), subsystem, line);
}

/* TANDEM_LOG names the least important level that is built at all. */
static tdm_log_level wanted_level(const tool *t) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const char *text = getenv("TANDEM_LOG");
    for (int i = 0; text && i < 4; i++) {
        if (strcmp(text, names[i]) == 0) return (tdm_log_level)i;
    }
    return t->verbose ? TDM_LOG_DEBUG : TDM_LOG_INFO;
}

void log_init(tool *t) {
    sink.quiet = t->quiet;
    sink.verbose = t->verbose;
    t->host = *tdm_host_default(); /* its memory, our log; `user` is its own */
    t->host.log = on_line;
    t->host.log_level = wanted_level(t);
}

void log_set_rank(int rank, int world) {
    sink.rank = rank;
    sink.world = world;
}

void log_open(const char *run_dir, int rank) {
    char *folder = text_format("%s/logs", run_dir);
    char *path = text_format("%s/rank-%d.log", folder, rank);
    if (files_make_folder(folder)) sink.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (sink.fd >= 0) {
        write_text(sink.early, sink.early_used);
        sink.early_used = 0;
    } else {
        term_line("tandem: warning: %s cannot be written: %s", path, strerror(errno));
    }
    free(path);
    free(folder);
}

void log_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text;
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) return;
    keep("info", "tandem", text);
    free(text);
}

void log_close(void) {
    if (sink.fd >= 0) close(sink.fd);
    sink.fd = -1;
}
