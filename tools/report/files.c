/* files.c - the file operations of the command. */
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/terminal/term.h"

bool files_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

bool files_is_missing(const char *path) {
    struct stat info;
    return stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool files_is_link(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
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

const char *files_refusal(const char *path, int error) {
    struct stat info;
    bool is_taken = error == ELOOP || error == ENOTDIR || error == EISDIR || error == ENXIO;
    if (!is_taken) return strerror(error);
    mode_t mode = lstat(path, &info) == 0 ? info.st_mode : 0;
    return S_ISLNK(mode)    ? "expected a regular file, found a symbolic link, which is not followed; move it away"
           : S_ISFIFO(mode) ? "expected a regular file, found a FIFO; move it away"
           : S_ISDIR(mode)  ? "expected a regular file, found a folder; move it away"
           : S_ISSOCK(mode) ? "expected a regular file, found a socket; move it away"
                            : "expected a regular file, found something else, or a symbolic link, which is not "
                              "followed; move it away";
}

FILE *files_stream(const char *dir, const char *name) {
    int folder = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
    int fd = folder >= 0 || !dir ? files_open_in(folder, name, O_RDONLY) : -1;
    int reason = errno;
    if (folder >= 0) close(folder);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!file) {
        if (errno == ENOMEM) memory_missing();
        if (fd >= 0) close(fd);
        errno = reason;
    }
    return file;
}

char *files_text(const char *dir, const char *name) {
    FILE *file = files_stream(dir, name);
    if (!file) return NULL;
    char *out = NULL;
    size_t used = 0, capacity = 0, got;
    do {
        out = memory_grow(out, &capacity, used + 65536 + 1, 1);
        got = fread(out + used, 1, 65536, file);
        used += got;
    } while (got > 0);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        free(out);
        errno = EIO;
        return NULL;
    }
    out[used] = 0;
    return out;
}

/* Opens the folder of `path`. The whole file goes into this folder, even if the folder is renamed meanwhile. */
static int open_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    FREED char *dir = slash ? text_format("%.*s", (int)(slash - path) + 1, path) : text_copy(".");
    return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

const char *files_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* True for /dev/null, /dev/stdout, or a shell's >(command): a file must not replace it. */
static bool is_stream(const char *path) {
    static const char *const folders[] = {"/dev/", "/dev/fd/", "/proc/self/fd/"};
    size_t length = (size_t)(files_name(path) - path);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (length == strlen(folders[i]) && memcmp(path, folders[i], length) == 0) return true;
    }
    return false;
}

bool files_begin(files_draft *out, const char *path) {
    *out = (files_draft){.fd = -1, .folder = -1, .path = path};
    if (is_stream(path)) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else if ((out->folder = open_folder_of(path)) >= 0) {
        out->sibling = text_format("%s.tmp-%ld", files_name(path), (long)getpid());
        unlinkat(out->folder, out->sibling, 0); /* may be left from an earlier process with the same pid */
        out->fd = openat(out->folder, out->sibling, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0664);
    }
    if (out->fd >= 0) return true;
    int reason = errno;
    if (out->folder >= 0) close(out->folder);
    free(out->sibling);
    errno = reason;
    return false;
}

bool files_end(files_draft *draft, bool good) {
    int reason = errno;
    if (draft->fd >= 0 && close(draft->fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (draft->sibling && good &&
        renameat(draft->folder, draft->sibling, draft->folder, files_name(draft->path)) != 0) {
        good = false;
        reason = errno;
    }
    if (draft->sibling && !good) unlinkat(draft->folder, draft->sibling, 0);
    if (draft->folder >= 0) close(draft->folder);
    free(draft->sibling);
    errno = reason;
    return good;
}

static bool write_all(int fd, const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(write(fd, text, bytes));
        if (n <= 0) return false;
        text += n;
        bytes -= (size_t)n;
    }
    return true;
}

static int write_or_report(const char *level, const char *path, const char *text, size_t bytes) {
    files_draft draft;
    bool good = files_begin(&draft, path) && files_end(&draft, write_all(draft.fd, text, bytes));
    if (!good) term_line("tandem: %s: %s cannot be written: %s", level, path, files_refusal(path, errno));
    return good ? TDM_OK : TDM_E_IO;
}

int files_write(const char *path, const char *text, size_t bytes) {
    return write_or_report("error", path, text, bytes);
}

void files_try(const char *path, const char *text, size_t bytes) {
    write_or_report("warning", path, text, bytes);
}

int files_deliver(const tool *t, const char *text) {
    const char *path = args_flag(t, "--out");
    if (path) return files_write(path, text, strlen(text));
    text_print(text);
    return TDM_OK;
}

char *files_self(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return NULL;
    path[n] = 0;
    return text_copy(path);
}
