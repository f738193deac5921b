/* Reading named tensors from a safetensors file. Its layout:
 *
 *   8 bytes    N, the length of the header, little-endian.
 *   N bytes    The header, JSON: {"__metadata__": {text: text, ...}, name: {"dtype": "F32", "shape": [2, 3],
 *              "data_offsets": [begin, end]}, ...}. It begins with '{' and is padded with spaces.
 *   the rest   The elements, little-endian, row-major. data_offsets count from here. Sorted by offset, the tensors
 *              follow one another without holes up to the end of the file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"

enum { CHUNK = 1 << 20 }; /* bytes per read; a multiple of the size of every number */

tdm_status tdm__tensor_file_open(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                 const char *name) {
    tdm_tensor_file *file;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm__new(host, &file, 1, sizeof(*file), "tensor file"));
    file->host = host;
    file->fd = -1;
    tdm__arena_init(&file->arena, host);
    TDM_TRY_DONE(folder != NULL ? tdm__arena_printf(&file->arena, &file->path, "%s/%s", folder->path, name)
                                : tdm__arena_text(&file->arena, &file->path, name));
    TDM_TRY_DONE(tdm__file_open(&file->fd, &file->bytes, folder, name, TDM_E_CHECKPOINT));
    TDM_TRY_DONE(tdm__tensor_header_read(file));
    *out = file;
    return TDM_OK;
done:
    tdm__tensor_file_close(file);
    return status;
}

void tdm__tensor_file_close(tdm_tensor_file *file) {
    if (file == NULL) return;
    if (file->fd >= 0) close(file->fd);
    tdm__arena_deinit(&file->arena);
    tdm__delete(file->host, file);
}

int tdm__tensor_file_count(const tdm_tensor_file *file) {
    return file->count;
}

const tdm_tensor *tdm__tensor_file_get(const tdm_tensor_file *file, int index) {
    return index >= 0 && index < file->count ? &file->tensor[index] : NULL;
}

static int compare_metadata(const void *key, const void *entry) {
    const char *const *pair = entry;
    return strcmp(key, pair[0]);
}

const char *tdm__tensor_file_metadata(const tdm_tensor_file *file, const char *key) {
    if (file->metadata_count == 0) return NULL;
    const char *const *found =
        bsearch(key, file->metadata, (size_t)file->metadata_count, sizeof(*file->metadata), compare_metadata);
    return found == NULL ? NULL : found[1];
}

tdm_status tdm__tensor_file_read_part(const tdm_tensor_file *file, const tdm_tensor *tensor, uint64_t from,
                                      size_t count, void *to) {
    if (from > tensor->bytes || count > tensor->bytes - from)
        TDM_FAIL(TDM_E_INTERNAL, "%s: tensor '%s' has %zu bytes, but %zu at %llu were requested", file->path,
                 tensor->name, tensor->bytes, count, (unsigned long long)from);
    return tdm__file_read(file->fd, file->path, to, count, tensor->file_offset + from, TDM_E_CHECKPOINT);
}

tdm_status tdm__tensor_file_read(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to) {
    return tdm__tensor_file_read_part(file, tensor, 0, tensor->bytes, to);
}

/* Adds a range to the hash. *bad is the index of its first number that is not finite; UINT64_MAX: there is none. */
static tdm_status hash_range(const tdm_tensor_file *file, tdm_hasher *hasher, char *chunk, uint64_t from,
                             uint64_t bytes, tdm_float_form form, uint64_t *bad) {
    size_t each = tdm__float_bytes(form);
    *bad = UINT64_MAX;
    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        size_t part = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        TDM_TRY(tdm__file_read(file->fd, file->path, chunk, part, from + at, TDM_E_CHECKPOINT));
        tdm__hash_add(hasher, chunk, part);
        if (each == 0 || *bad != UINT64_MAX) continue;
        size_t count = part / each, first = tdm__first_not_finite(form, chunk, count);
        if (first < count) *bad = at / each + first;
    }
    return TDM_OK;
}

tdm_status tdm__tensor_file_hash(const tdm_tensor_file *file, tdm_hash128 *out, const tdm_tensor **bad, uint64_t *at) {
    tdm_hasher *hasher = NULL;
    char *chunk = NULL;
    uint64_t place;
    tdm_status status;
    *bad = NULL;
    TDM_TRY_DONE(tdm__hash_open(&hasher, file->host));
    TDM_TRY_DONE(
        tdm__new(file->host, &chunk, file->bytes < CHUNK ? (size_t)file->bytes : CHUNK, 1, "buffer for hashing"));
    TDM_TRY_DONE(hash_range(file, hasher, chunk, 0, 8 + file->header_bytes, TDM_NOT_FLOAT, &place));
    for (int i = 0; i < file->count; i++) { /* together they cover the data, without holes */
        const tdm_tensor *tensor = &file->tensor[i];
        TDM_TRY_DONE(hash_range(file, hasher, chunk, tensor->file_offset, tensor->bytes,
                                tdm__dtype_form(tensor->dtype_name), &place));
        if (*bad != NULL || place == UINT64_MAX) continue;
        *bad = tensor;
        *at = place;
    }
    *out = tdm__hash_value(hasher);
done:
    tdm__delete(file->host, chunk);
    tdm__hash_close(hasher);
    return status;
}

tdm_status tdm__tensor_not_finite(const tdm_tensor_file *file, const tdm_tensor *tensor, uint64_t at) {
    char name[TDM_ST_PRINTABLE];
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' is not finite (element %llu is infinite or NaN)", file->path,
             tdm__printable(name, tensor->name), (unsigned long long)at);
}

tdm_status tdm__tensor_file_strip(tdm_tensor_file *file, int *stripped) {
    static const char prefix[] = "module.";
    const size_t length = sizeof(prefix) - 1;
    *stripped = 0;
    for (int i = 0; i < file->count; i++) {
        const char *name = file->tensor[i].name, *bare = name;
        while (strncmp(bare, prefix, length) == 0 && bare[length] != '\0') bare += length;
        file->tensor[i].name = bare;
        *stripped += bare != name;
    }
    return *stripped > 0 ? tdm__tensor_file_index(file) : TDM_OK;
}
