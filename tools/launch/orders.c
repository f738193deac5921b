/* orders.c - see orders.h. On the way the orders are their length, and then fields that end with a NUL each. */
#include "tools/launch/orders.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/system/thread.h"
#include "tools/launch/launch_word.h"
#include "tools/terminal/term.h"

/* Raise the number when the fields change. */
static const char magic[] = "tandem orders 1";
enum { LENGTH_BYTES = 9, BYTES_MAX = 16 << 20, HOSTS_MAX = 256, ARGUMENTS_MAX = 100000 };

/* ---- writing ---- */

static void put(FILE *to, const char *field) {
    fwrite(field, 1, strlen(field) + 1, to);
}

static void put_int(FILE *to, int number) {
    fprintf(to, "%d%c", number, 0);
}

char *orders_text(const launch_orders *o, size_t *bytes) {
    char *fields, *out;
    size_t count;
    FILE *to = text_open(&fields, &count);
    put(to, magic);
    put(to, tdm_version());
    put_int(to, o->host);
    put_int(to, o->hosts);
    for (int i = 0; i < o->hosts; i++) put_int(to, o->ranks[i]);
    const char *const texts[] = {o->secret, o->master, o->cwd, o->folder, o->run_dir, o->config};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) put(to, texts[i]);
    put_int(to, o->port);
    put_int(to, o->argc);
    for (int i = 0; i < o->argc; i++) put(to, o->argv[i]);
    text_close(to);
    to = text_open(&out, bytes);
    fprintf(to, "%08zx\n", count);
    fwrite(fields, 1, count, to);
    text_close(to);
    free(fields);
    return out;
}

/* ---- reading ---- */

typedef struct reader {
    char *at, *end;
    bool failed; /* a field is missing, or is no number in its range */
} reader;

static char *take(reader *r) {
    char *field = r->at;
    if (field >= r->end) {
        r->failed = true;
        return r->end - 1; /* "" */
    }
    r->at += strlen(field) + 1;
    return field;
}

static int take_int(reader *r, int min, int max) {
    const char *field = take(r);
    char *end;
    errno = 0;
    const long value = strtol(field, &end, 10);
    r->failed = r->failed || end == field || *end || errno || value < min || value > max;
    return r->failed ? min : (int)value;
}

/* Fills `o` from its text, which ends with a NUL. False: these are no orders. */
static bool parse(launch_orders *o, size_t bytes) {
    reader r = {.at = o->text, .end = o->text + bytes};
    if (strcmp(take(&r), magic) != 0) return false;
    const char *version = take(&r);
    r.failed = r.failed || strcmp(version, tdm_version()) != 0;
    o->host = take_int(&r, 0, HOSTS_MAX - 1);
    o->hosts = take_int(&r, 1, HOSTS_MAX);
    int *ranks = memory_new((size_t)o->hosts, sizeof *ranks);
    o->ranks = ranks;
    for (int i = 0; i < o->hosts; i++) ranks[i] = take_int(&r, 1, INT32_MAX);
    const char **const texts[] = {&o->secret, &o->master, &o->cwd, &o->folder, &o->run_dir, &o->config};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) *texts[i] = take(&r);
    o->port = take_int(&r, 1, UINT16_MAX);
    o->argc = take_int(&r, 2, ARGUMENTS_MAX);
    o->argv = memory_new((size_t)o->argc + 1, sizeof *o->argv);
    for (int i = 0; i < o->argc; i++) o->argv[i] = take(&r);
    return !r.failed && o->host < o->hosts;
}

/* -1: the input ended or failed. */
static ssize_t read_whole(int fd, char *to, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t n = read(fd, to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* A file in memory that only its owner may open, as secrets must be. False with errno set. */
static bool put_in_memory_file(int *fd, const char *text, size_t bytes) {
    *fd = memfd_create("tandem", MFD_CLOEXEC);
    return *fd >= 0 && fchmod(*fd, S_IRUSR | S_IWUSR) == 0 && write(*fd, text, bytes) == (ssize_t)bytes;
}

static int refuse(const char *what) {
    term_error("%s; `tandem launch --hosts` starts `tandem --hosted`, and must be of the same version, %s", what,
               tdm_version());
    return TDM_E_USAGE;
}

int orders_receive(launch_orders **out) {
    char digits[LENGTH_BYTES + 1] = "", *end;
    if (read_whole(STDIN_FILENO, digits, LENGTH_BYTES) < 0) return refuse("standard input has no orders");
    const unsigned long bytes = strtoul(digits, &end, 16);
    if (*end != '\n' || bytes == 0 || bytes > BYTES_MAX) return refuse("standard input has no orders");
    launch_orders *o = *out = memory_new(1, sizeof *o);
    o->text = memory_new(bytes, 1);
    o->fd = o->secret_fd = -1;
    if (read_whole(STDIN_FILENO, o->text, bytes) < 0) return refuse("the orders on standard input are incomplete");
    FREED char *copy = memory_take(bytes);
    memcpy(copy, o->text, bytes);
    if (o->text[bytes - 1] != 0 || !parse(o, bytes))
        return refuse("the orders on standard input come from another version of tandem");
    if (put_in_memory_file(&o->fd, copy, bytes) && put_in_memory_file(&o->secret_fd, o->secret, strlen(o->secret)))
        return TDM_OK;
    term_error("the orders cannot be kept in memory for the ranks: %s", strerror(errno));
    return TDM_E_INTERNAL;
}

int orders_inherit(launch_orders **out) {
    const char *variable = getenv(ORDERS_VARIABLE);
    struct stat about;
    if (!variable || !launch_is_watched()) return TDM_OK;
    const int fd = atoi(variable);
    if (fstat(fd, &about) != 0 || about.st_size <= 0 || about.st_size > BYTES_MAX) return refuse("there are no orders");
    launch_orders *o = *out = memory_new(1, sizeof *o);
    const size_t bytes = (size_t)about.st_size;
    o->text = memory_new(bytes, 1);
    o->fd = o->secret_fd = -1;
    const bool is_whole = pread(fd, o->text, bytes, 0) == (ssize_t)bytes && o->text[bytes - 1] == 0;
    return is_whole && parse(o, bytes) ? TDM_OK : refuse("the orders come from another version of tandem");
}

void orders_free(launch_orders *o) {
    if (!o) return;
    if (o->fd >= 0) close(o->fd);
    if (o->secret_fd >= 0) close(o->secret_fd);
    free((void *)(uintptr_t)o->ranks);
    free(o->argv);
    free(o->text);
    free(o);
}

/* ---- obeying ---- */

typedef struct {
    tdm_thread thread;
    double silence;
} follower;

static void follow(void *argument) {
    const double seconds = ((follower *)argument)->silence;
    for (;;) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        char word;
        const int ready = poll(&in, 1, seconds > 0 ? (int)(seconds * 1000) : -1);
        if (ready == 0) {
            term_error("nothing has come from the launching host for %.4g s: this host's ranks are ended", seconds);
            _exit(TDM_E_COMM);
        }
        const ssize_t got = ready > 0 ? read(STDIN_FILENO, &word, 1) : -1;
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(128 + SIGKILL);
        if (word == ORDERS_STOP) kill(getpid(), SIGTERM);
    }
}

void orders_follow(double silence) {
    follower *f = memory_new(1, sizeof *f);
    f->silence = silence;
    if (tdm__thread_start(&f->thread, tdm_host_default(), TDM_THREAD_HUB, 0, -1, follow, f) != 0) memory_missing();
}
