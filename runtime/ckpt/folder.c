/* Names in a checkpoints directory, and hashes of files. */
#include "runtime/ckpt/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"

enum { HASH_CHUNK = 1 << 20 };

tdm_status tdm__path_join(tdm_arena *arena, const char **out, const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return tdm__arena_printf(arena, out, "%s%s%s", folder, slash, name);
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

/* Reads the step from a name. False unless the name is exactly what tdm__step_name makes of that step. */
static bool step_of(const char *name, int64_t *step) {
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
    return step_of(name, step);
}

static int newest_first(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return *x > *y ? -1 : *x < *y;
}

tdm_status tdm__steps_list(tdm_arena *arena, const tdm_folder *dir, int64_t **steps, size_t *count) {
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
        if (!step_of(name, &step)) continue;
        TDM_TRY_DONE(tdm__grow(arena->host, &found, &capacity, used + 1, sizeof(*found), "list of checkpoints"));
        found[used++] = step;
    }
    TDM_TRY_DONE(tdm__arena_new(arena, steps, used, sizeof(*found)));
    if (used > 0) {
        memcpy(*steps, found, used * sizeof(*found));
        qsort(*steps, used, sizeof(*found), newest_first);
    }
    *count = used;
done:
    closedir(list);
    tdm__delete(arena->host, found);
    return status;
}

tdm_status tdm__is_step(tdm_arena *arena, const char *path, bool *out) {
    const char *manifest;
    int64_t step;
    TDM_TRY(tdm__path_join(arena, &manifest, path, TDM_CKPT_MANIFEST));
    *out = tdm__file_is_folder(NULL, path) && (step_of_path(path, &step) || tdm__file_is_there(NULL, manifest));
    return TDM_OK;
}

tdm_status tdm__steps_open(tdm_folder *out, tdm_arena *arena, const char *path) {
    tdm_folder given;
    TDM_TRY(tdm__folder_open(out, arena, NULL, path, TDM_E_CHECKPOINT));
    given = *out;
    if (!tdm__file_is_there(&given, "checkpoints")) return TDM_OK;
    tdm_status status = tdm__folder_open(out, arena, &given, "checkpoints", TDM_E_CHECKPOINT);
    tdm__folder_close(&given);
    return status;
}
