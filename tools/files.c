/* files.c - the few things that the command does with files. */
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/term.h"

bool files_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

char *files_unused(const char *path) {
    char *out = text_copy(path);
    for (int i = 2; files_exists(out); i++) {
        free(out);
        out = text_format("%s-%d", path, i);
    }
    return out;
}

int files_open_in(int folder, const char *name, int flags) {
    struct stat info;
    int follow = folder == AT_FDCWD ? 0 : O_NOFOLLOW;
    int fd = openat(folder, name, flags | follow | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0664);
    if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

const char *files_refusal(int error) {
    bool taken = error == ELOOP || error == ENOTDIR || error == EISDIR || error == ENXIO;
    return taken ? "something else is in its place, or a symbolic link, which is not followed; move it away"
                 : strerror(error);
}

static bool write_all(int fd, const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text += n;
        bytes -= (size_t)n;
    }
    return true;
}

static int write_or_tell(const char *level, const char *path, const char *text, size_t bytes) {
    char *sibling = text_format("%s.tmp-%ld", path, (long)getpid());
    unlink(sibling); /* only an earlier process with our number can have left one */
    int fd = open(sibling, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0664);
    bool good = fd >= 0 && write_all(fd, text, bytes);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good && rename(sibling, path) != 0) {
        good = false;
        reason = errno;
    }
    if (!good) {
        if (fd >= 0) unlink(sibling);
        term_line("tandem: %s: %s cannot be written: %s", level, path, files_refusal(reason));
    }
    free(sibling);
    return good ? TDM_OK : TDM_E_IO;
}

int files_write(const char *path, const char *text, size_t bytes) {
    return write_or_tell("error", path, text, bytes);
}

void files_try(const char *path, const char *text, size_t bytes) {
    write_or_tell("warning", path, text, bytes);
}

char *files_self(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return NULL;
    path[n] = 0;
    return text_copy(path);
}
