/* Preloaded into the command: the k-th request for memory of a process fails, or all from the k-th on.
 *   FAIL_AT=k, FAIL_FROM=k      which, counted from 1 after the libraries are loaded
 *   FAIL_COUNT=FILE             the number of requests of the process that has most, a 64-bit number
 * Threads ask in an order of their own, so k names another request each time; every answer must be a good one. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static atomic_long requests;
static atomic_long *most; /* of all processes; NULL: not asked for */
static long fail_at, fail_from;
static atomic_bool counting;

static long number(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? atol(text) : 0;
}

/* In the file itself, for a rank may end in any way. */
static void share_count(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *most) != 0) abort();
    most = (void *)syscall(SYS_mmap, NULL, sizeof *most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static __attribute__((constructor)) void start(void) {
    const char *path = getenv("FAIL_COUNT");
    fail_at = number("FAIL_AT");
    fail_from = number("FAIL_FROM");
    if (path != NULL) share_count(path);
    counting = true;
}

static __attribute__((destructor)) void finish(void) {
    counting = false;
}

static bool fails(void) {
    if (!counting) return false;
    const long k = atomic_fetch_add(&requests, 1) + 1;
    long seen = most != NULL ? atomic_load(most) : k;
    while (seen < k && !atomic_compare_exchange_weak(most, &seen, k)) continue;
    if (k != fail_at && (fail_from == 0 || k < fail_from)) return false;
    errno = ENOMEM;
    return true;
}

#define OURS __attribute__((visibility("default")))

OURS void *malloc(size_t bytes) {
    return fails() ? NULL : __libc_malloc(bytes);
}

OURS void *calloc(size_t count, size_t bytes) {
    return fails() ? NULL : __libc_calloc(count, bytes);
}

OURS void *realloc(void *old, size_t bytes) {
    return fails() ? NULL : __libc_realloc(old, bytes);
}

OURS void *reallocarray(void *old, size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total) || fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, total);
}

OURS void *aligned_alloc(size_t align, size_t bytes) {
    return fails() ? NULL : __libc_memalign(align, bytes);
}

OURS int posix_memalign(void **out, size_t align, size_t bytes) {
    void *pointer = fails() ? NULL : __libc_memalign(align, bytes);
    if (pointer == NULL) return ENOMEM;
    *out = pointer;
    return 0;
}

OURS void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_ANONYMOUS) != 0 && fails()) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}
