/* outlet.c - see outlet.h. A write to a full pipe, or to a terminal that is stopped with Ctrl-S, blocks, even in a
 * signal handler. O_NONBLOCK would affect every process that shares the descriptor, such as a shell. So pipes and
 * terminals are opened once more. If that fails, poll is called before each write, and a write is at most PIPE_BUF
 * bytes. */
#include "tools/terminal/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELD_BYTES = 65536, MOST_LOOKS = 10 };
#define LOOK_S 0.1 /* seconds that one look waits for space */

static int own[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}; /* indexed by the standard descriptor */
static bool may_block[sizeof own / sizeof *own], has_stalled[sizeof own / sizeof *own];
static bool waits_for_reader = true; /* held output: until a stop signal comes */
static int (*asked_to_stop)(void);   /* see outlet_hold */
static int held_error;               /* why held output could not be written; 0: none */
static char held[HELD_BYTES];

/* Opening the master side of a terminal again gives another terminal. */
static bool is_same(int fd, const struct stat *expected) {
    struct stat about;
    return fstat(fd, &about) == 0 && about.st_dev == expected->st_dev && about.st_ino == expected->st_ino &&
           about.st_rdev == expected->st_rdev;
}

void outlet_open(void) {
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat about;
        char path[32];
        if (fstat(fd, &about) != 0 || (!S_ISFIFO(about.st_mode) && !isatty(fd))) continue;
        may_block[fd] = true;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int opened = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (opened >= 0 && is_same(opened, &about))
            own[fd] = opened;
        else if (opened >= 0)
            close(opened);
    }
}

static bool has_room(int fd, double seconds) {
    struct pollfd out = {.fd = own[fd], .events = POLLOUT};
    return poll(&out, 1, (int)(seconds * 1000)) > 0;
}

/* Returns the bytes written; 0: no space now; -1: an error. */
static ssize_t put_some(int fd, const char *text, size_t bytes) {
    if (may_block[fd] && own[fd] == fd && !has_room(fd, 0)) return 0;
    ssize_t n = write(own[fd], text, may_block[fd] && bytes > PIPE_BUF ? PIPE_BUF : bytes);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

/* `until_signal`: wait until a stop signal comes, without another limit. */
static size_t put(int fd, const char *text, size_t bytes, bool until_signal) {
    size_t done = 0;
    int looks = 0; /* without success; counted instead of timed, so that a suspended machine uses none of them up */
    while (done < bytes) {
        ssize_t n = put_some(fd, text + done, bytes - done);
        if (n < 0) return done;
        if (n > 0) {
            done += (size_t)n;
            looks = 0;
            has_stalled[fd] = false;
            continue;
        }
        const bool waits = until_signal && asked_to_stop() == 0;
        if (!waits && (has_stalled[fd] || looks == MOST_LOOKS)) {
            has_stalled[fd] = true;
            errno = ETIMEDOUT;
            return done;
        }
        looks = waits ? 0 : looks + 1;
        has_room(fd, LOOK_S);
    }
    return done;
}

size_t outlet_put(int fd, const char *text, size_t bytes) {
    return put(fd, text, bytes, false);
}

void outlet_try(int fd, const char *text) {
    (void)put_some(fd, text, strlen(text));
}

static ssize_t put_held(void *cookie, const char *text, size_t bytes) {
    (void)cookie;
    size_t done = put(STDOUT_FILENO, text, bytes, waits_for_reader);
    if (done < bytes && held_error == 0) held_error = errno;
    return (ssize_t)done;
}

/* More than fits the buffer goes through put_held, too: stdio's own write would wait for the reader for ever. */
void outlet_hold(int (*is_asked_to_stop)(void)) {
    asked_to_stop = is_asked_to_stop;
    FILE *to = fopencookie(NULL, "w", (cookie_io_functions_t){.write = put_held});
    if (to && setvbuf(to, held, _IOFBF, sizeof held) == 0) stdout = to;
}

bool outlet_flush(bool is_kept) {
    waits_for_reader = !is_kept;
    bool good = fflush(stdout) == 0 && !ferror(stdout);
    __fpurge(stdout); /* or else it would be tried again at exit */
    if (held_error != 0) errno = held_error;
    return good;
}
