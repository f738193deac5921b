/* Preloaded into the command: the k-th call of a process about a file below one path fails, or all from the k-th on.
 *   CALL_UNDER=PATH             which files: the path itself and all below it
 *   CALL_AT=k, CALL_FROM=k      which call, counted from 1
 *   CALL_ERROR=n                the errno that it fails with
 *   CALL_COUNT=FILE             the number of calls of the process that has most, a 64-bit number */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "counted.h"

static long call_error;
static const char *under;
static struct dirent *(*next_entry)(DIR *list);

static __attribute__((constructor)) void start(void) {
    counted_start("CALL_AT", "CALL_FROM", "CALL_COUNT");
    call_error = counted_number("CALL_ERROR");
    under = getenv("CALL_UNDER");
}

static bool is_under(const char *path) {
    size_t length = strlen(under);
    return strncmp(path, under, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool fails(const char *path) {
    if (!is_under(path) || !counted_fails()) return false;
    errno = (int)call_error;
    return true;
}

static bool fails_fd(int fd) {
    char link[40], path[PATH_MAX];
    if (under == NULL || fd < 0) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long length = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (length <= 0) return false;
    path[length] = '\0';
    return fails(path);
}

/* The one name of a call; of relative ones only those in an open folder matter. */
static bool fails_at(int folder, const char *name) {
    char link[40], path[2 * PATH_MAX];
    if (under == NULL) return false;
    if (name[0] == '/') return fails(name);
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const long length = folder >= 0 ? syscall(SYS_readlink, link, path, PATH_MAX - 1) : 0;
    if (length <= 0) return false;
    snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
    return fails(path);
}

#define OURS __attribute__((visibility("default")))

OURS int openat(int folder, const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return fails_at(folder, name) ? -1 : (int)syscall(SYS_openat, folder, name, flags, mode);
}

OURS int open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return fails_at(AT_FDCWD, name) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

/* What openat becomes where the compiler does not know the flags. */
int __openat_2(int folder, const char *name, int flags);
OURS int __openat_2(int folder, const char *name, int flags) {
    return openat(folder, name, flags, 0);
}

OURS ssize_t read(int fd, void *to, size_t bytes) {
    return fails_fd(fd) ? -1 : syscall(SYS_read, fd, to, bytes);
}

OURS ssize_t pread(int fd, void *to, size_t bytes, off_t at) {
    return fails_fd(fd) ? -1 : syscall(SYS_pread64, fd, to, bytes, at);
}

OURS ssize_t write(int fd, const void *from, size_t bytes) {
    return fails_fd(fd) ? -1 : syscall(SYS_write, fd, from, bytes);
}

OURS ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
    return fails_fd(fd) ? -1 : syscall(SYS_pwrite64, fd, from, bytes, at);
}

OURS off_t lseek(int fd, off_t at, int whence) {
    return fails_fd(fd) ? -1 : syscall(SYS_lseek, fd, at, whence);
}

OURS int close(int fd) {
    const bool failed = fails_fd(fd);
    const int error = errno, result = (int)syscall(SYS_close, fd);
    if (!failed) return result;
    errno = error;
    return -1;
}

OURS int fsync(int fd) {
    return fails_fd(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

OURS int ftruncate(int fd, off_t bytes) {
    return fails_fd(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

OURS int fallocate(int fd, int mode, off_t at, off_t bytes) {
    return fails_fd(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

OURS int flock(int fd, int operation) {
    return fails_fd(fd) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

OURS int fstat(int fd, struct stat *out) {
    return fails_fd(fd) ? -1 : (int)syscall(SYS_fstat, fd, out);
}

OURS int fstatat(int folder, const char *restrict name, struct stat *restrict out, int flags) {
    return fails_at(folder, name) ? -1 : (int)syscall(SYS_newfstatat, folder, name, out, flags);
}

OURS int stat(const char *restrict name, struct stat *restrict out) {
    return fails_at(AT_FDCWD, name) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, name, out, 0);
}

OURS int mkdirat(int folder, const char *name, mode_t mode) {
    return fails_at(folder, name) ? -1 : (int)syscall(SYS_mkdirat, folder, name, mode);
}

OURS int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return fails_at(from, old) ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

OURS int renameat(int from, const char *old, int to, const char *new) {
    return renameat2(from, old, to, new, 0);
}

OURS int rename(const char *old, const char *new) {
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

OURS int unlinkat(int folder, const char *name, int flags) {
    return fails_at(folder, name) ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}

OURS int unlink(const char *name) {
    return unlinkat(AT_FDCWD, name, 0);
}

OURS struct dirent *readdir(DIR *list) {
    if (next_entry == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "readdir");
        memcpy(&next_entry, &symbol, sizeof next_entry);
    }
    return fails_fd(dirfd(list)) ? NULL : next_entry(list);
}
