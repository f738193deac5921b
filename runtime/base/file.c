/* Files: the system's calls as a table, durable writing on top of it, careful reading beside it. */
#include "runtime/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

enum { CHUNK = 1 << 30 }; /* Linux transfers at most 2 GiB a call */

static int system_open(void *user, const char *path, int flags, mode_t mode) {
    (void)user;
    return open(path, flags, mode);
}

static ssize_t system_pwrite(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    (void)user;
    return pwrite(fd, bytes, count, offset);
}

static int system_allocate(void *user, int fd, off_t bytes) {
    (void)user;
    return fallocate(fd, 0, 0, bytes);
}

static int system_fsync(void *user, int fd) {
    (void)user;
    return fsync(fd);
}

static int system_close(void *user, int fd) {
    (void)user;
    return close(fd);
}

static int system_mkdir(void *user, const char *path, mode_t mode) {
    (void)user;
    return mkdir(path, mode);
}

static int system_rename(void *user, const char *from, const char *to) {
    (void)user;
    return rename(from, to);
}

static int system_exchange(void *user, const char *a, const char *b) {
    (void)user;
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static int system_unlink(void *user, const char *path) {
    (void)user;
    return unlink(path);
}

static int system_rmdir(void *user, const char *path) {
    (void)user;
    return rmdir(path);
}

const tdm_file_ops tdm__file_system = {
    .open = system_open,
    .pwrite = system_pwrite,
    .allocate = system_allocate,
    .fsync = system_fsync,
    .close = system_close,
    .mkdir = system_mkdir,
    .rename = system_rename,
    .exchange = system_exchange,
    .unlink = system_unlink,
    .rmdir = system_rmdir,
};

static const char *cure(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; free some space there or choose another place";
    case EROFS:
    case EACCES:
    case EPERM:
        return "; change its permissions or choose another place";
    case EIO:
        return "; the storage itself reports an error: check the disk or the mount";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (ulimit -n)";
    default:
        return "";
    }
}

tdm_status tdm__file_fail(const char *doing, const char *path, int error) {
    char buffer[128];
    TDM_FAIL(TDM_E_IO, "cannot %s %s: %s%s", doing, path, strerror_r(error, buffer, sizeof(buffer)), cure(error));
}

/* ---- writing ---- */

tdm_status tdm__out_open(tdm_out_file *file, const tdm_file_ops *ops, const char *path, uint64_t bytes,
                         tdm_hasher *hasher) {
    *file = (tdm_out_file){.ops = ops, .path = path, .hasher = hasher, .fd = -1};
    file->fd = ops->open(ops->user, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file->fd < 0) return tdm__file_fail("create", path, errno);
    if (bytes > INT64_MAX) {
        tdm__out_discard(file);
        return tdm__file_fail("create", path, EFBIG);
    }
    if (bytes == 0 || ops->allocate(ops->user, file->fd, (off_t)bytes) == 0) return TDM_OK;
    /* Where the file system cannot reserve, a full disk is met while writing. */
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return TDM_OK;
    int error = errno;
    tdm__out_discard(file);
    return tdm__file_fail("reserve the space of", path, error);
}

tdm_status tdm__out_write(tdm_out_file *file, const void *bytes, size_t count) {
    const char *from = bytes;
    if (file->hasher != NULL) tdm__hash_add(file->hasher, bytes, count);
    while (count > 0) {
        size_t chunk = count < CHUNK ? count : CHUNK;
        ssize_t done = file->ops->pwrite(file->ops->user, file->fd, from, chunk, file->at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return tdm__file_fail("write", file->path, done < 0 ? errno : ENOSPC);
        from += done;
        count -= (size_t)done;
        file->at += done;
    }
    return TDM_OK;
}

tdm_status tdm__out_finish(tdm_out_file *file) {
    int synced = file->ops->fsync(file->ops->user, file->fd), error = errno;
    int closed = file->ops->close(file->ops->user, file->fd);
    if (synced == 0) error = errno;
    file->fd = -1;
    if (synced == 0 && closed == 0) return TDM_OK;
    file->ops->unlink(file->ops->user, file->path);
    return tdm__file_fail("flush", file->path, error);
}

void tdm__out_discard(tdm_out_file *file) {
    if (file->fd < 0) return;
    int error = errno;
    file->ops->close(file->ops->user, file->fd);
    file->ops->unlink(file->ops->user, file->path);
    file->fd = -1;
    errno = error;
}

/* The folder that `path` lies in, into the arena. */
static tdm_status parent_of(tdm_arena *arena, const char *path, const char **out) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    while (length > 1 && path[length - 1] == '/') length--;
    if (length == 0) return tdm__arena_text(arena, out, ".");
    return tdm__arena_printf(arena, out, "%.*s", (int)length, path);
}

tdm_status tdm__file_replace(const tdm_host *host, const tdm_file_ops *ops, const char *path, const void *bytes,
                             size_t count) {
    tdm_arena arena;
    tdm_status status;
    const char *temporary, *folder;
    tdm_out_file file = {.fd = -1};
    tdm__arena_init(&arena, host);
    TDM_TRY_DONE(tdm__arena_printf(&arena, &temporary, "%s.tmp-%ld", path, (long)getpid()));
    TDM_TRY_DONE(parent_of(&arena, path, &folder));
    /* Of this name only an earlier process with our number can have left one. */
    if (ops->unlink(ops->user, temporary) != 0 && errno != ENOENT) {
        status = tdm__file_fail("remove the stale", temporary, errno);
        goto done;
    }
    TDM_TRY_DONE(tdm__out_open(&file, ops, temporary, 0, NULL));
    status = tdm__out_write(&file, bytes, count);
    if (status != TDM_OK) {
        tdm__out_discard(&file);
        goto done;
    }
    TDM_TRY_DONE(tdm__out_finish(&file));
    if (ops->rename(ops->user, temporary, path) != 0) {
        status = tdm__file_fail("replace", path, errno);
        ops->unlink(ops->user, temporary);
        goto done;
    }
    TDM_TRY_DONE(tdm__folder_sync(ops, folder));
done:
    tdm__arena_deinit(&arena);
    return status;
}

bool tdm__process_lives(long pid) {
    char path[40], text[512];
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return false;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    /* "7 (name) Z ...", and the name may hold anything. */
    const char *at = strrchr(text, ')');
    return at == NULL || at[1] != ' ' || (at[2] != 'Z' && at[2] != 'X');
}

tdm_status tdm__folder_sync(const tdm_file_ops *ops, const char *path) {
    int fd = ops->open(ops->user, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return tdm__file_fail("open the folder", path, errno);
    int synced = ops->fsync(ops->user, fd), error = errno;
    ops->close(ops->user, fd);
    /* Some network file systems cannot flush a folder and say so with EINVAL. */
    if (synced != 0 && error != EINVAL) return tdm__file_fail("flush the folder", path, error);
    return TDM_OK;
}

static tdm_status make_one(tdm_arena *arena, const tdm_file_ops *ops, const char *path) {
    const char *parent;
    if (ops->mkdir(ops->user, path, 0777) != 0) {
        int error = errno;
        if (error == EEXIST && tdm__file_is_folder(path)) return TDM_OK;
        return tdm__file_fail("make the folder", path, error == EEXIST ? ENOTDIR : error);
    }
    TDM_TRY(parent_of(arena, path, &parent));
    return tdm__folder_sync(ops, parent);
}

tdm_status tdm__folder_make(const tdm_host *host, const tdm_file_ops *ops, const char *path) {
    tdm_arena arena;
    tdm_status status = TDM_OK;
    size_t length = strlen(path);
    char *part;
    if (length == 0) TDM_FAIL(TDM_E_USAGE, "the name of a folder is empty");
    if (tdm__file_is_folder(path)) return TDM_OK;
    if (length >= PATH_MAX) return tdm__file_fail("make the folder", path, ENAMETOOLONG); /* and none of its parents */
    tdm__arena_init(&arena, host);
    TDM_TRY_DONE(tdm__arena_new(&arena, &part, length + 1, 1));
    memcpy(part, path, length);
    for (size_t i = 1; i <= length; i++) {
        if ((part[i] != '/' && part[i] != '\0') || part[i - 1] == '/') continue;
        part[i] = '\0';
        if (!tdm__file_is_folder(part)) TDM_TRY_DONE(make_one(&arena, ops, part));
        part[i] = path[i];
    }
done:
    tdm__arena_deinit(&arena);
    return status;
}

tdm_status tdm__folder_remove(const tdm_host *host, const tdm_file_ops *ops, const char *path) {
    tdm_text name;
    tdm_status status = TDM_OK;
    struct dirent *entry;
    tdm__text_init(&name, host);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        int error = errno;
        if (fd >= 0) close(fd);
        return tdm__file_fail("open the folder", path, error);
    }
    while ((entry = readdir(folder)) != NULL && status == TDM_OK) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        tdm__text_deinit(&name);
        tdm__text_printf(&name, "%s/%s", path, entry->d_name);
        if (name.failed)
            status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "folder %s: out of memory for a name", path);
        else if (ops->unlink(ops->user, name.data) != 0)
            status = tdm__file_fail("remove", name.data, errno);
    }
    closedir(folder);
    tdm__text_deinit(&name);
    TDM_TRY(status);
    if (ops->rmdir(ops->user, path) != 0) return tdm__file_fail("remove", path, errno);
    return TDM_OK;
}

/* ---- reading ---- */

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

tdm_status tdm__file_open(int *fd, uint64_t *bytes, const char *path, tdm_status missing) {
    struct stat about;
    *bytes = 0;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) {
        int error = errno;
        if (error == ENOENT || error == ENOTDIR) TDM_FAIL(missing, "%s: there is no such file", path);
        if (error == ENXIO || error == ENODEV)
            TDM_FAIL(missing, "%s: wanted a regular file, found a socket or device", path);
        return tdm__file_fail("open", path, error);
    }
    if (fstat(*fd, &about) != 0) {
        int error = errno;
        close(*fd);
        *fd = -1;
        return tdm__file_fail("look at", path, error);
    }
    if (!S_ISREG(about.st_mode)) {
        close(*fd);
        *fd = -1;
        TDM_FAIL(missing, "%s: wanted a regular file, found %s", path, kind_of(about.st_mode));
    }
    *bytes = (uint64_t)about.st_size;
    return TDM_OK;
}

tdm_status tdm__file_read(int fd, const char *path, void *to, size_t count, uint64_t offset, tdm_status cut_short) {
    char *into = to;
    while (count > 0) {
        size_t chunk = count < CHUNK ? count : CHUNK;
        ssize_t done = pread(fd, into, chunk, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return tdm__file_fail("read", path, errno);
        if (done == 0)
            TDM_FAIL(cut_short, "%s: wanted %zu more bytes at %llu, the file ends there", path, count,
                     (unsigned long long)offset);
        into += done;
        count -= (size_t)done;
        offset += (uint64_t)done;
    }
    return TDM_OK;
}

bool tdm__file_is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool tdm__file_is_regular(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}
