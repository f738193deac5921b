#include "tests/ckpt/fault_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void tear_file(const char *path, int how, off_t durable) {
    struct stat about;
    static const char zeroes[4096];
    if (stat(path, &about) != 0 || about.st_size < durable) return;
    if (how == TEAR_GONE) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "r+be");
    if (file == NULL) return;
    int failed = 0;
    if (how == TEAR_EMPTY) failed = ftruncate(fileno(file), durable);
    if (how == TEAR_HALF) failed = ftruncate(fileno(file), durable + (about.st_size - durable) / 2);
    if (fseeko(file, durable, SEEK_SET) != 0) abort();
    for (off_t at = durable; how == TEAR_ZEROES && at < about.st_size; at += 4096)
        fwrite(zeroes, 1, about.st_size - at < 4096 ? (size_t)(about.st_size - at) : 4096, file);
    if (fclose(file) != 0 || failed != 0) abort();
}

static void lose_power(fault_ops *f) {
    f->dead = true;
    for (int i = 0; i < f->count && f->tear != TEAR_NONE; i++) {
        bool lost = f->file[i].unlinked && (!f->file[i].dirty || f->tear == TEAR_GONE);
        int how = lost ? TEAR_GONE : f->tear == TEAR_GONE ? TEAR_EMPTY : f->tear;
        if (lost || f->file[i].dirty) tear_file(f->file[i].path, how, f->file[i].durable);
    }
}

/* Counts the call; true if it is not to be done. */
static bool fails(fault_ops *f, const char *call) {
    if (f->dead) {
        errno = EIO;
        return true;
    }
    if (++f->calls != f->fail_at) return false;
    f->failed = true;
    f->failed_call = call;
    if (f->error == 0) lose_power(f);
    errno = f->error == 0 ? EIO : f->error;
    return true;
}

static int find_fd(const fault_ops *f, int fd) {
    for (int i = f->count - 1; i >= 0; i--) {
        if (f->file[i].fd == fd) return i;
    }
    return -1;
}

/* Where an open folder lies now. */
static void path_of(int folder, char out[512]) {
    char link[40];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, out, 511);
    if (length < 0) abort();
    out[length] = '\0';
}

/* The path of a name in a folder; names are paths where there is none. */
static const char *join(char out[512], int folder, const char *name) {
    char path[512];
    if (folder == AT_FDCWD) {
        snprintf(out, 512, "%s", name);
    } else {
        path_of(folder, path);
        snprintf(out, 512, "%.350s/%.150s", path, name);
    }
    return out;
}

static int fault_open(void *user, int folder, const char *name, int flags, mode_t mode) {
    fault_ops *f = user;
    struct stat about;
    if (fails(f, "open")) return -1;
    bool is_new = fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0;
    int fd = tdm__file_system.open(NULL, folder, name, flags, mode);
    if (fd < 0) return fd;
    if (f->count == FAULT_FILES) abort();
    join(f->file[f->count].path, folder, name);
    f->file[f->count].fd = fd;
    f->file[f->count].dirty = false;
    f->file[f->count].durable = is_new ? 0 : about.st_size;
    f->file[f->count].unlinked = is_new;
    f->count++;
    return fd;
}

static ssize_t fault_pwrite(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    fault_ops *f = user;
    if (fails(f, "pwrite")) return -1;
    f->file[find_fd(f, fd)].dirty = true;
    /* At most 1000 bytes a call, as a system may do, and so more places to fail at. */
    return tdm__file_system.pwrite(NULL, fd, bytes, count < 1000 ? count : 1000, offset);
}

static int fault_allocate(void *user, int fd, off_t bytes) {
    fault_ops *f = user;
    if (fails(f, "allocate")) return -1;
    f->file[find_fd(f, fd)].dirty = true;
    return ftruncate(fd, bytes);
}

static int fault_truncate(void *user, int fd, off_t bytes) {
    fault_ops *f = user;
    if (fails(f, "truncate")) return -1;
    f->file[find_fd(f, fd)].dirty = true;
    return ftruncate(fd, bytes);
}

static bool lies_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' && strchr(path + length + 1, '/') == NULL;
}

static int sync_folder(fault_ops *f, int fd) {
    char path[512];
    path_of(fd, path);
    if (strcmp(f->pending, path) == 0) f->pending[0] = '\0';
    for (int i = 0; i < f->count; i++) {
        if (lies_in(f->file[i].path, path)) f->file[i].unlinked = false;
    }
    return 0;
}

static int fault_fsync(void *user, int fd) {
    fault_ops *f = user;
    struct stat about;
    if (fails(f, "fsync")) return -1;
    if (fstat(fd, &about) != 0) abort();
    if (S_ISDIR(about.st_mode)) return sync_folder(f, fd);
    f->file[find_fd(f, fd)].dirty = false;
    f->file[find_fd(f, fd)].durable = about.st_size;
    return 0;
}

static int fault_close(void *user, int fd) {
    fault_ops *f = user;
    bool failed = fails(f, "close");
    int error = errno;
    f->file[find_fd(f, fd)].fd = -1;
    close(fd); /* whatever happens: a process that ends closes too */
    errno = error;
    return failed ? -1 : 0;
}

static int fault_mkdir(void *user, int folder, const char *name, mode_t mode) {
    return fails(user, "mkdir") ? -1 : tdm__file_system.mkdir(NULL, folder, name, mode);
}

static bool is_final(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && strncmp(slash, "/step-", 6) == 0;
}

/* A final name has come into its folder: durable once that is fsynced. */
static void note_final(fault_ops *f, const char *path) {
    if (is_final(path)) snprintf(f->pending, sizeof(f->pending), "%.*s", (int)(strrchr(path, '/') - path), path);
}

static void note_removal(fault_ops *f) {
    f->early += f->pending[0] != '\0';
}

/* What was under `from` is under `to` from now on. */
static void move_names(fault_ops *f, const char *from, const char *to) {
    size_t length = strlen(from);
    for (int i = 0; i < f->count; i++) {
        char *path = f->file[i].path, moved[512];
        bool inside = strncmp(path, from, length) == 0 && (path[length] == '/' || path[length] == '\0');
        if (!inside) continue;
        f->early += is_final(to) && (f->file[i].dirty || f->file[i].unlinked);
        snprintf(moved, sizeof(moved), "%.200s%.300s", to, path + length);
        snprintf(path, sizeof(f->file[i].path), "%s", moved);
        if (path[strlen(to)] == '\0') f->file[i].unlinked = true; /* the new name itself */
    }
}

static int fault_rename(void *user, int from_folder, const char *from, int to_folder, const char *to) {
    fault_ops *f = user;
    char old[512], new[512];
    if (fails(f, "rename")) return -1;
    join(old, from_folder, from);
    join(new, to_folder, to);
    if (is_final(old)) note_removal(f);
    int done = tdm__file_system.rename(NULL, from_folder, from, to_folder, to);
    /* A name that is replaced stays durable: the old content or the new one is found under it. */
    if (done == 0) {
        move_names(f, old, new);
        note_final(f, new);
    }
    for (int i = 0; i < f->count && done == 0; i++) {
        if (strcmp(f->file[i].path, new) == 0) f->file[i].unlinked = false;
    }
    return done;
}

static int fault_exchange(void *user, int folder, const char *a, const char *b) {
    fault_ops *f = user;
    char first[512], second[512];
    if (f->no_exchange && !f->dead) {
        errno = EINVAL;
        return -1;
    }
    if (fails(f, "exchange")) return -1;
    int done = tdm__file_system.exchange(NULL, folder, a, b);
    if (done != 0) return done;
    join(first, folder, a);
    join(second, folder, b);
    move_names(f, second, "/exchange");
    move_names(f, first, second);
    move_names(f, "/exchange", first);
    note_final(f, second);
    return done;
}

static int fault_unlink(void *user, int folder, const char *name) {
    fault_ops *f = user;
    char path[512];
    if (fails(f, "unlink")) return -1;
    note_removal(f);
    join(path, folder, name);
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->file[i].path, path) == 0) f->file[i].path[0] = '\0';
    }
    return tdm__file_system.unlink(NULL, folder, name);
}

static int fault_rmdir(void *user, int folder, const char *name) {
    return fails(user, "rmdir") ? -1 : tdm__file_system.rmdir(NULL, folder, name);
}

void fault_ops_init(fault_ops *f, long fail_at, int error) {
    memset(f, 0, sizeof(*f));
    f->fail_at = fail_at;
    f->error = error;
    f->ops = (tdm_file_ops){
        .open = fault_open,
        .pwrite = fault_pwrite,
        .allocate = fault_allocate,
        .truncate = fault_truncate,
        .fsync = fault_fsync,
        .close = fault_close,
        .mkdir = fault_mkdir,
        .rename = fault_rename,
        .exchange = fault_exchange,
        .unlink = fault_unlink,
        .rmdir = fault_rmdir,
        .user = f,
    };
}
