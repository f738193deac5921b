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

/* The folder that `path` lies in, only to reach names in it: all of the file goes into the one that is there now. */
static int open_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *dir = slash ? text_format("%.*s", (int)(slash - path) + 1, path) : text_copy(".");
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int reason = errno;
    free(dir);
    errno = reason;
    return fd;
}

static int write_or_tell(const char *level, const char *path, const char *text, size_t bytes) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *sibling = text_format("%s.tmp-%ld", name, (long)getpid());
    int folder = open_folder_of(path), fd = -1;
    if (folder >= 0) {
        unlinkat(folder, sibling, 0); /* only an earlier process with our number can have left one */
        fd = openat(folder, sibling, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0664);
    }
    bool good = fd >= 0 && write_all(fd, text, bytes);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good && renameat(folder, sibling, folder, name) != 0) {
        good = false;
        reason = errno;
    }
    if (!good) {
        if (fd >= 0) unlinkat(folder, sibling, 0);
        term_line("tandem: %s: %s cannot be written: %s", level, path, files_refusal(reason));
    }
    if (folder >= 0) close(folder);
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
