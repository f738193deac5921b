/* Which calls of a process fail: the k-th, or all from the k-th on. Both preloaded libraries count with it. */
#ifndef TDM_TESTS_COUNTED_H
#define TDM_TESTS_COUNTED_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long counted_calls;
static atomic_long *counted_most; /* of all processes; NULL: not asked for */
static long counted_at, counted_from;

static long counted_number(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? atol(text) : 0;
}

/* The three are names of environment variables. The count is kept in the file itself, for a rank may end in any way;
 * mmap is called directly because one of the libraries replaces the function. */
static void counted_start(const char *at, const char *from, const char *count) {
    const char *path = getenv(count);
    counted_at = counted_number(at);
    counted_from = counted_number(from);
    if (path == NULL) return;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *counted_most) != 0) abort();
    counted_most = (void *)syscall(SYS_mmap, NULL, sizeof *counted_most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

/* Counts a call, and says whether it is one that fails. */
static bool counted_fails(void) {
    const long k = atomic_fetch_add(&counted_calls, 1) + 1;
    long seen = counted_most != NULL ? atomic_load(counted_most) : k;
    while (seen < k && !atomic_compare_exchange_weak(counted_most, &seen, k)) continue;
    return k == counted_at || (counted_from != 0 && k >= counted_from);
}

#endif
