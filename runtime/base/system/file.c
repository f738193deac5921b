/* Files: the table of system calls, durable writing through it, and checked reading. */
#include "runtime/base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

enum { CHUNK = 1 << 30 }; /* Linux transfers at most 2 GiB a call */

/* For "%s%s%s" in messages: folder, slash, name. */
#define PATH_OF(folder, name) (folder) != NULL ? (folder)->path : "", (folder) != NULL ? "/" : "", (name)

static int fd_of(const tdm_folder *folder) {
    return folder != NULL ? folder->fd : AT_FDCWD;
}

/* A member of the table that makes one system call. */
#define SYSTEM(result, name, call, ...)                    \
    static result system_##name(void *user, __VA_ARGS__) { \
        (void)user;                                        \
        return call;                                       \
    }
SYSTEM(int, open, openat(folder, name, flags, mode), int folder, const char *name, int flags, mode_t mode)
SYSTEM(ssize_t, pwrite, pwrite(fd, bytes, count, offset), int fd, const void *bytes, size_t count, off_t offset)
SYSTEM(int, allocate, fallocate(fd, 0, 0, bytes), int fd, off_t bytes)
SYSTEM(int, truncate, ftruncate(fd, bytes), int fd, off_t bytes)
SYSTEM(int, fsync, fsync(fd), int fd)
SYSTEM(int, close, close(fd), int fd)
SYSTEM(int, mkdir, mkdirat(folder, name, mode), int folder, const char *name, mode_t mode)
SYSTEM(int, rename, renameat(folder, from, to_folder, to), int folder, const char *from, int to_folder, const char *to)
SYSTEM(int, exchange, renameat2(folder, a, folder, b, RENAME_EXCHANGE), int folder, const char *a, const char *b)
SYSTEM(int, unlink, unlinkat(folder, name, 0), int folder, const char *name)
SYSTEM(int, rmdir, unlinkat(folder, name, AT_REMOVEDIR), int folder, const char *name)

const tdm_file_ops tdm__file_system = {
    .open = system_open,
    .pwrite = system_pwrite,
    .allocate = system_allocate,
    .truncate = system_truncate,
    .fsync = system_fsync,
    .close = system_close,
    .mkdir = system_mkdir,
    .rename = system_rename,
    .exchange = system_exchange,
    .unlink = system_unlink,
    .rmdir = system_rmdir,
};

static const char *remedy(int error) {
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
        return "; raise the limit on open files (ulimit -n)";
    default:
        return "";
    }
}

tdm_status tdm__file_fail(const char *doing, const tdm_folder *folder, const char *name, int error) {
    char buffer[128];
    TDM_FAIL(error == ENOMEM ? TDM_E_MEMORY : TDM_E_IO, "cannot %s %s%s%s: %s%s", doing, PATH_OF(folder, name),
             strerror_r(error, buffer, sizeof(buffer)), remedy(error));
}

/* 0: something is there, but stat, which follows links, finds nothing. */
static const char *kind_of(mode_t mode) {
    if (S_ISREG(mode)) return "a file";
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISLNK(mode)) return "a symbolic link, which is not followed";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return mode == 0 ? "a symbolic link to nothing" : "a device";
}

/* 0, with errno set, if stat fails. */
static mode_t mode_of(const tdm_folder *folder, const char *name) {
    struct stat about;
    int found = fstatat(fd_of(folder), name, &about, folder != NULL ? AT_SYMLINK_NOFOLLOW : 0);
    return found == 0 ? about.st_mode : 0;
}

static tdm_status wrong_kind(tdm_status code, mode_t kind, const tdm_folder *folder, const char *name, mode_t found) {
    TDM_FAIL(code, "%s%s%s: expected %s, found %s%s", PATH_OF(folder, name),
             kind == S_IFDIR ? "a folder" : "a regular file", kind_of(found), folder != NULL ? "; move it away" : "");
}

/* Reports why `name` could not be opened as a `kind` of file. */
static tdm_status not_opened(tdm_status missing, mode_t kind, const tdm_folder *folder, const char *name, int error) {
    mode_t found = mode_of(folder, name);
    if (found != 0 && (found & S_IFMT) != kind) return wrong_kind(missing, kind, folder, name, found);
    if (error == ENOENT || error == ENOTDIR)
        TDM_FAIL(missing, "%s%s%s: there is no such %s", PATH_OF(folder, name), kind == S_IFDIR ? "folder" : "file");
    return tdm__file_fail(kind == S_IFDIR ? "open the folder" : "open", folder, name, error);
}

static tdm_status check_regular(int fd, uint64_t *bytes, tdm_status code, const tdm_folder *folder, const char *name) {
    struct stat about;
    if (fstat(fd, &about) != 0) return tdm__file_fail("stat", folder, name, errno);
    *bytes = (uint64_t)about.st_size;
    return S_ISREG(about.st_mode) ? TDM_OK : wrong_kind(code, S_IFREG, folder, name, about.st_mode);
}

/* ---- writing ---- */

tdm_status tdm__out_open(tdm_out_file *file, const tdm_file_ops *ops, const tdm_folder *folder, const char *name,
                         uint64_t bytes, tdm_hasher *hasher) {
    *file = (tdm_out_file){.ops = ops, .folder = folder, .name = name, .hasher = hasher, .fd = -1};
    file->fd =
        ops->open(ops->user, fd_of(folder), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, TDM_FILE_MODE);
    if (file->fd < 0) return tdm__file_fail("create", folder, name, errno);
    if (bytes > INT64_MAX) {
        tdm__out_discard(file);
        return tdm__file_fail("create", folder, name, EFBIG);
    }
    if (bytes == 0 || ops->allocate(ops->user, file->fd, (off_t)bytes) == 0) return TDM_OK;
    /* If the file system cannot reserve space, a full disk is found while writing. */
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return TDM_OK;
    int error = errno;
    tdm__out_discard(file);
    return tdm__file_fail("reserve space for", folder, name, error);
}

tdm_status tdm__out_write(tdm_out_file *file, const void *bytes, size_t count) {
    const char *from = bytes;
    if (file->hasher != NULL) tdm__hash_add(file->hasher, bytes, count);
    while (count > 0) {
        size_t chunk = count < CHUNK ? count : CHUNK;
        ssize_t done = file->ops->pwrite(file->ops->user, file->fd, from, chunk, file->at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return tdm__file_fail("write", file->folder, file->name, done < 0 ? errno : ENOSPC);
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
    file->ops->unlink(file->ops->user, fd_of(file->folder), file->name);
    return tdm__file_fail("flush", file->folder, file->name, error);
}

void tdm__out_discard(tdm_out_file *file) {
    if (file->fd < 0) return;
    int error = errno;
    file->ops->close(file->ops->user, file->fd);
    file->ops->unlink(file->ops->user, fd_of(file->folder), file->name);
    file->fd = -1;
    errno = error;
}

tdm_status tdm__out_open_beside(tdm_out_file *file, char sibling[TDM_FILE_SIBLING], const tdm_file_ops *ops,
                                const tdm_folder *folder, const char *name) {
    *file = (tdm_out_file){.fd = -1};
    snprintf(sibling, TDM_FILE_SIBLING, "%.64s.tmp-%ld", name, (long)getpid());
    /* Only an earlier process with this pid can have left a file of this name. */
    if (ops->unlink(ops->user, folder->fd, sibling) != 0 && errno != ENOENT)
        return tdm__file_fail("remove the stale", folder, sibling, errno);
    return tdm__out_open(file, ops, folder, sibling, 0, NULL);
}

tdm_status tdm__out_replace(tdm_out_file *file, const char *name) {
    const tdm_file_ops *ops = file->ops;
    int folder = file->folder->fd;
    TDM_TRY(tdm__out_finish(file));
    if (ops->rename(ops->user, folder, file->name, folder, name) == 0) return tdm__folder_sync(ops, file->folder);
    tdm_status status = tdm__file_fail("replace", file->folder, name, errno);
    ops->unlink(ops->user, folder, file->name);
    return status;
}

tdm_status tdm__file_replace(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                             size_t count) {
    char sibling[TDM_FILE_SIBLING];
    tdm_out_file file;
    TDM_TRY(tdm__out_open_beside(&file, sibling, ops, folder, name));
    tdm_status status = tdm__out_write(&file, bytes, count);
    if (status == TDM_OK) return tdm__out_replace(&file, name);
    tdm__out_discard(&file);
    return status;
}

static bool write_into(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                       size_t count) {
    int fd = ops->open(ops->user, folder->fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return false;
    struct stat about;
    bool has_room = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
                    ((uint64_t)about.st_size >= count || (uint64_t)about.st_blocks * 512 >= count);
    bool good = has_room && ops->pwrite(ops->user, fd, bytes, count, 0) == (ssize_t)count &&
                ops->truncate(ops->user, fd, (off_t)count) == 0 && ops->fsync(ops->user, fd) == 0;
    return ops->close(ops->user, fd) == 0 && good;
}

tdm_status tdm__file_update(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                            size_t count) {
    tdm_status status = tdm__file_replace(ops, folder, name, bytes, count);
    return status == TDM_E_IO && write_into(ops, folder, name, bytes, count) ? TDM_OK : status;
}

/* O_NONBLOCK: does not wait for the other end of a FIFO. */
tdm_status tdm__file_keep(int *fd, const tdm_file_ops *ops, const tdm_folder *folder, const char *name) {
    uint64_t bytes;
    *fd = ops->open(ops->user, folder->fd, name,
                    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, TDM_FILE_MODE);
    if (*fd < 0) return not_opened(TDM_E_IO, S_IFREG, folder, name, errno);
    tdm_status status = check_regular(*fd, &bytes, TDM_E_IO, folder, name);
    if (status == TDM_OK) return TDM_OK;
    ops->close(ops->user, *fd);
    *fd = -1;
    return status;
}

/* ---- folders ---- */

/* The folder that contains `path`, in the zone. */
static tdm_status parent_of(tdm_zone *zone, const char *path, const char **out) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    while (length > 1 && path[length - 1] == '/') length--;
    if (length == 0) return tdm__zone_text(zone, out, ".");
    return tdm__zone_printf(zone, out, "%.*s", (int)length, path);
}

tdm_status tdm__folder_sync(const tdm_file_ops *ops, const tdm_folder *folder) {
    /* Some network file systems cannot flush a folder; fsync then fails with EINVAL. */
    if (ops->fsync(ops->user, folder->fd) == 0 || errno == EINVAL) return TDM_OK;
    return tdm__file_fail("flush the folder", NULL, folder->path, errno);
}

static tdm_status make_one(tdm_zone *zone, const tdm_file_ops *ops, const char *path) {
    const char *above;
    tdm_folder parent;
    if (ops->mkdir(ops->user, AT_FDCWD, path, TDM_FOLDER_MODE) != 0) {
        if (errno != EEXIST) return tdm__file_fail("make the folder", NULL, path, errno);
        const mode_t found = mode_of(NULL, path);
        return S_ISDIR(found) ? TDM_OK : wrong_kind(TDM_E_IO, S_IFDIR, NULL, path, found);
    }
    TDM_TRY(parent_of(zone, path, &above));
    TDM_TRY(tdm__folder_open(&parent, zone, NULL, above, TDM_E_IO));
    tdm_status status = tdm__folder_sync(ops, &parent);
    tdm__folder_close(&parent);
    return status;
}

tdm_status tdm__folder_make(const tdm_host *host, const tdm_file_ops *ops, const char *path) {
    tdm_zone zone;
    tdm_status status = TDM_OK;
    size_t length = strlen(path);
    char *part;
    if (length == 0) TDM_FAIL(TDM_E_USAGE, "the name of a folder is empty");
    if (tdm__file_is_folder(NULL, path)) return TDM_OK;
    if (length >= PATH_MAX) /* checked before any parent is made */
        return tdm__file_fail("make the folder", NULL, path, ENAMETOOLONG);
    tdm__zone_init(&zone, host);
    TDM_TRY_DONE(tdm__zone_new(&zone, &part, length + 1, 1));
    memcpy(part, path, length);
    for (size_t i = 1; i <= length; i++) {
        if ((part[i] != '/' && part[i] != '\0') || part[i - 1] == '/') continue;
        part[i] = '\0';
        if (!tdm__file_is_folder(NULL, part)) TDM_TRY_DONE(make_one(&zone, ops, part));
        part[i] = path[i];
    }
done:
    tdm__zone_deinit(&zone);
    return status;
}

tdm_status tdm__folder_open(tdm_folder *out, tdm_zone *zone, const tdm_folder *parent, const char *name,
                            tdm_status missing) {
    *out = (tdm_folder){.fd = -1};
    if (parent != NULL) {
        TDM_TRY(tdm__zone_printf(zone, &out->path, "%s/%s", parent->path, name));
    } else {
        size_t length = strlen(name);
        while (length > 1 && name[length - 1] == '/') length--;
        TDM_TRY(tdm__zone_printf(zone, &out->path, "%.*s", (int)length, name));
    }
    out->fd = openat(fd_of(parent), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (parent != NULL ? O_NOFOLLOW : 0));
    return out->fd >= 0 ? TDM_OK : not_opened(missing, S_IFDIR, parent, name, errno);
}

tdm_status tdm__folder_enter(tdm_folder *out, tdm_zone *zone, const tdm_file_ops *ops, const tdm_folder *parent,
                             const char *name) {
    *out = (tdm_folder){.fd = -1};
    if (ops->mkdir(ops->user, parent->fd, name, TDM_FOLDER_MODE) == 0) {
        TDM_TRY(tdm__folder_sync(ops, parent));
    } else if (errno != EEXIST) {
        return tdm__file_fail("make the folder", parent, name, errno);
    }
    return tdm__folder_open(out, zone, parent, name, TDM_E_IO);
}

void tdm__folder_close(tdm_folder *folder) {
    if (folder->fd >= 0) close(folder->fd);
    folder->fd = -1;
}

tdm_status tdm__folder_list(DIR **out, const tdm_folder *folder) {
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *out = fd < 0 ? NULL : fdopendir(fd);
    if (*out != NULL) return TDM_OK;
    int error = errno;
    if (fd >= 0) close(fd);
    return tdm__file_fail("list", NULL, folder->path, error);
}

tdm_status tdm__folder_next(DIR *list, const tdm_folder *folder, const char **name) {
    struct dirent *entry;
    *name = NULL;
    do {
        errno = 0;
        entry = readdir(list);
        if (entry == NULL) return errno == 0 ? TDM_OK : tdm__file_fail("list", NULL, folder->path, errno);
    } while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    *name = entry->d_name;
    return TDM_OK;
}

static tdm_status empty(const tdm_file_ops *ops, const tdm_folder *parent, const tdm_folder *inside) {
    const char *name;
    DIR *list;
    TDM_TRY(tdm__folder_list(&list, inside));
    tdm_status status = tdm__folder_next(list, inside, &name);
    while (status == TDM_OK && name != NULL) {
        status = ops->unlink(ops->user, inside->fd, name) == 0
                     ? tdm__folder_next(list, inside, &name)
                     : tdm__file_fail("empty the folder", parent, inside->path, errno);
    }
    closedir(list);
    return status;
}

tdm_status tdm__folder_remove(const tdm_file_ops *ops, const tdm_folder *parent, const char *name) {
    tdm_folder inside = {.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .path = name};
    if (inside.fd < 0) return not_opened(TDM_E_IO, S_IFDIR, parent, name, errno);
    tdm_status status = empty(ops, parent, &inside);
    tdm__folder_close(&inside);
    TDM_TRY(status);
    if (ops->rmdir(ops->user, parent->fd, name) != 0) return tdm__file_fail("remove", parent, name, errno);
    return TDM_OK;
}

/* ---- reading ---- */

tdm_status tdm__file_open(int *fd, uint64_t *bytes, const tdm_folder *folder, const char *name, tdm_status missing) {
    *bytes = 0;
    *fd = openat(fd_of(folder), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (folder != NULL ? O_NOFOLLOW : 0));
    if (*fd < 0) return not_opened(missing, S_IFREG, folder, name, errno);
    tdm_status status = check_regular(*fd, bytes, missing, folder, name);
    if (status == TDM_OK) return TDM_OK;
    close(*fd);
    *fd = -1;
    return status;
}

tdm_status tdm__file_read(int fd, const char *path, void *to, size_t count, uint64_t offset, tdm_status cut_short) {
    char *into = to;
    while (count > 0) {
        size_t chunk = count < CHUNK ? count : CHUNK;
        ssize_t done = pread(fd, into, chunk, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return tdm__file_fail("read", NULL, path, errno);
        if (done == 0)
            TDM_FAIL(cut_short, "%s: expected %zu more bytes at %llu, but the file ends there", path, count,
                     (unsigned long long)offset);
        into += done;
        count -= (size_t)done;
        offset += (uint64_t)done;
    }
    return TDM_OK;
}

bool tdm__file_is_folder(const tdm_folder *folder, const char *name) {
    return S_ISDIR(mode_of(folder, name));
}

bool tdm__file_is_there(const tdm_folder *folder, const char *name) {
    return mode_of(folder, name) != 0 || (errno != ENOENT && errno != ENOTDIR);
}
