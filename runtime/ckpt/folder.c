/* Names in a checkpoints directory, the files of a checkpoint, their hashes, and what killed processes have left. */
#include "runtime/ckpt/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/system/process.h"

enum { HASH_CHUNK = 1 << 20 };

const char *const tdm__ckpt_file_names[TDM_CKPT_FILES] = {
    [TDM_CKPT_MODEL] = "model.safetensors",     [TDM_CKPT_OPTIMIZER] = "optimizer.safetensors",
    [TDM_CKPT_AVERAGE] = "ema.safetensors",     [TDM_CKPT_STATE] = "state.json",
    [TDM_CKPT_CONFIG] = "config.resolved.yaml", [TDM_CKPT_COMPRESSION] = "compression.safetensors",
};

tdm_status tdm__path_join(tdm_zone *zone, const char **out, const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return tdm__zone_printf(zone, out, "%s%s%s", folder, slash, name);
}

bool tdm__hash_equal(tdm_hash128 a, tdm_hash128 b) {
    return a.low == b.low && a.high == b.high;
}

tdm_status tdm__file_hash(const tdm_host *host, int fd, const char *path, uint64_t from, uint64_t count,
                          tdm_hash128 *out) {
    tdm_hasher *hasher = NULL;
    char *chunk = NULL;
    tdm_status status;
    size_t room = count < HASH_CHUNK ? (size_t)count : HASH_CHUNK;
    TDM_TRY_DONE(tdm__hash_open(&hasher, host));
    TDM_TRY_DONE(tdm__new(host, &chunk, room, 1, "buffer for hashing"));
    while (count > 0) {
        size_t part = count < room ? (size_t)count : room;
        TDM_TRY_DONE(tdm__file_read(fd, path, chunk, part, from, TDM_E_CHECKPOINT));
        tdm__hash_add(hasher, chunk, part);
        from += part;
        count -= part;
    }
    *out = tdm__hash_value(hasher);
done:
    tdm__delete(host, chunk);
    tdm__hash_close(hasher);
    return status;
}

void tdm__step_name(char out[32], int64_t step) {
    snprintf(out, 32, "step-%08lld", (long long)step);
}

bool tdm__step_of(const char *name, int64_t *step) {
    char again[32];
    size_t digits = strncmp(name, "step-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    if (digits < 8 || digits > 18 || name[5 + digits] != '\0') return false;
    *step = strtoll(name + 5, NULL, 10);
    tdm__step_name(again, *step);
    return strcmp(name, again) == 0;
}

/* Is the last part of `path` exactly such a name? */
static bool step_of_path(const char *path, int64_t *step) {
    char name[32];
    size_t end = strlen(path), begin;
    while (end > 0 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    if (end - begin >= sizeof(name)) return false;
    snprintf(name, sizeof(name), "%.*s", (int)(end - begin), path + begin);
    return tdm__step_of(name, step);
}

static int newest_first(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return *x > *y ? -1 : *x < *y;
}

tdm_status tdm__steps_list(tdm_zone *zone, const tdm_folder *dir, int64_t **steps, size_t *count) {
    int64_t *found = NULL, step;
    size_t capacity = 0, used = 0;
    tdm_status status;
    const char *name;
    DIR *list;
    *steps = NULL;
    *count = 0;
    TDM_TRY(tdm__folder_list(&list, dir));
    for (;;) {
        TDM_TRY_DONE(tdm__folder_next(list, dir, &name));
        if (name == NULL) break;
        if (!tdm__step_of(name, &step)) continue;
        TDM_TRY_DONE(tdm__grow(zone->host, &found, &capacity, used + 1, sizeof(*found), "list of checkpoints"));
        found[used++] = step;
    }
    TDM_TRY_DONE(tdm__zone_new(zone, steps, used, sizeof(*found)));
    if (used > 0) {
        memcpy(*steps, found, used * sizeof(*found));
        qsort(*steps, used, sizeof(*found), newest_first);
    }
    *count = used;
done:
    closedir(list);
    tdm__delete(zone->host, found);
    return status;
}

/* The pid in a temporary name "<base>.tmp-<pid>" or "<base>.tmp-<pid>-<n>". 0 unless printing the parts gives exactly
 * the same name. */
static long pid_of(const char *name, char base[64], bool *numbered) {
    const char *mark = strstr(name, ".tmp-");
    char again[48];
    long pid;
    int n, length = mark != NULL ? (int)(mark - name) : 64;
    if (length >= 64) return 0;
    snprintf(base, 64, "%.*s", length, name);
    int parts = sscanf(mark, ".tmp-%9ld-%9d", &pid, &n);
    *numbered = parts == 2;
    if (*numbered)
        snprintf(again, sizeof(again), ".tmp-%ld-%d", pid, n);
    else if (parts == 1)
        snprintf(again, sizeof(again), ".tmp-%ld", pid);
    return parts >= 1 && pid > 0 && strcmp(mark, again) == 0 ? pid : 0;
}

/* Was it left by a process that is gone? A held lock proves that the process lives, even if its pid looks dead from
 * here, as from another container. */
static bool is_stale(const tdm_folder *dir, const char *name, long pid) {
    if (pid != (long)getpid() && tdm__process_lives(pid)) return false;
    int fd = openat(dir->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno != ENOENT;
    bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return !held;
}

/* Only numbered names are given to folders. */
static tdm_status remove_any(const tdm_file_ops *ops, const tdm_folder *dir, const char *name, bool numbered) {
    if (numbered && tdm__file_is_folder(dir, name)) return tdm__folder_remove(ops, dir, name);
    return ops->unlink(ops->user, dir->fd, name) == 0 ? TDM_OK : tdm__file_fail("remove", dir, name, errno);
}

tdm_status tdm__leftovers_remove(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *dir,
                                 const char *subsystem, bool (*is_ours)(const char *base, bool numbered)) {
    tdm_status status;
    const char *name;
    DIR *list;
    TDM_TRY(tdm__folder_list(&list, dir));
    for (;;) {
        char base[64];
        bool numbered;
        TDM_TRY_DONE(tdm__folder_next(list, dir, &name));
        if (name == NULL) break;
        long pid = pid_of(name, base, &numbered);
        if (pid == 0 || !is_ours(base, numbered) || !is_stale(dir, name, pid)) continue;
        if (remove_any(ops, dir, name, numbered) != TDM_OK)
            TDM_WARN(host, subsystem, "%s, left by process %ld, cannot be removed: %s", name, pid, tdm_error_message());
        else
            TDM_INFO(host, subsystem, "removed %s, left by process %ld", name, pid);
    }
done:
    closedir(list);
    return status;
}

tdm_status tdm__is_step(tdm_zone *zone, const char *path, bool *out) {
    const char *manifest;
    int64_t step;
    TDM_TRY(tdm__path_join(zone, &manifest, path, TDM_CKPT_MANIFEST));
    *out = tdm__file_is_folder(NULL, path) && (step_of_path(path, &step) || tdm__file_is_there(NULL, manifest));
    return TDM_OK;
}

tdm_status tdm__steps_open(tdm_folder *out, tdm_zone *zone, const char *path) {
    tdm_folder given;
    TDM_TRY(tdm__folder_open(out, zone, NULL, path, TDM_E_CHECKPOINT));
    given = *out;
    if (!tdm__file_is_there(&given, "checkpoints")) return TDM_OK;
    tdm_status status = tdm__folder_open(out, zone, &given, "checkpoints", TDM_E_CHECKPOINT);
    tdm__folder_close(&given);
    return status;
}

/* ---- one file, wherever it is ---- */

tdm_status tdm__ckpt_file_open(tdm_ckpt_file *out, tdm_ckpt *ckpt, int part) {
    const char *name = part < TDM_CKPT_FILES ? tdm__ckpt_file_names[part] : TDM_CKPT_MANIFEST;
    *out = (tdm_ckpt_file){.host = ckpt->host, .fd = -1};
    TDM_TRY(tdm__path_join(&ckpt->zone, &out->path, ckpt->path, name));
    if (ckpt->memory == NULL) return tdm__file_open(&out->fd, &out->bytes, &ckpt->folder, name, TDM_E_CHECKPOINT);
    out->memory = ckpt->memory->file[part].bytes;
    out->bytes = ckpt->memory->file[part].count;
    if (out->memory == NULL) TDM_FAIL(TDM_E_CHECKPOINT, "%s: the archive does not have it", out->path);
    return TDM_OK;
}

tdm_status tdm__ckpt_file_read(const tdm_ckpt_file *file, void *to, size_t count, uint64_t offset) {
    if (file->memory == NULL) return tdm__file_read(file->fd, file->path, to, count, offset, TDM_E_CHECKPOINT);
    memcpy(to, file->memory + offset, count);
    return TDM_OK;
}

tdm_status tdm__ckpt_file_hash(const tdm_ckpt_file *file, uint64_t from, uint64_t count, tdm_hash128 *out) {
    if (file->memory == NULL) return tdm__file_hash(file->host, file->fd, file->path, from, count, out);
    *out = tdm__hash(file->memory + from, (size_t)count);
    return TDM_OK;
}

void tdm__ckpt_file_close(tdm_ckpt_file *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}
