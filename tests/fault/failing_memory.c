/* Preloaded into the command: the k-th request for memory of a process fails, or all from the k-th on.
 *   FAIL_AT=k, FAIL_FROM=k      which, counted from 1 after the libraries are loaded
 *   FAIL_COUNT=FILE             the number of requests of the process that has most, a 64-bit number
 * Threads ask in an order of their own, so k names another request each time; every answer must be a good one. */
#include <errno.h>

#include "counted.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static atomic_bool counting;

static __attribute__((constructor)) void start(void) {
    counted_start("FAIL_AT", "FAIL_FROM", "FAIL_COUNT");
    counting = true;
}

static __attribute__((destructor)) void finish(void) {
    counting = false;
}

static bool fails(void) {
    if (!counting || !counted_fails()) return false;
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
