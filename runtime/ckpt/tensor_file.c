/* Reading named tensors from a safetensors file. Its layout:
 *
 *   8 bytes    N, the length of the header, little-endian.
 *   N bytes    The header, JSON: {"__metadata__": {text: text, ...}, name: {"dtype": "F32", "shape": [2, 3],
 *              "data_offsets": [begin, end]}, ...}. It begins with '{' and is padded with spaces.
 *   the rest   The elements, little-endian, row-major. data_offsets count from here. Sorted by offset, the tensors
 *              follow one another without holes up to the end of the file. */
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"

enum { CHUNK = 1 << 20 }; /* bytes per read; a multiple of the size of every number */

tdm_status tdm__tensor_file_new(tdm_tensor_file **out, const tdm_host *host, const char *path) {
    tdm_tensor_file *file;
    *out = NULL;
    TDM_TRY(tdm__new(host, &file, 1, sizeof(*file), "tensor file"));
    file->host = host;
    file->fd = -1;
    tdm__zone_init(&file->zone, host);
    TDM_TRY_ELSE(tdm__zone_text(&file->zone, &file->path, path), tdm__tensor_file_close(file));
    *out = file;
    return TDM_OK;
}

tdm_status tdm__tensor_file_open_memory(tdm_tensor_file **out, const tdm_host *host, const void *bytes, size_t count,
                                        const char *name) {
    tdm_tensor_file *file;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm__tensor_file_new(&file, host, name));
    file->memory = bytes;
    file->bytes = count;
    TDM_TRY_DONE(tdm__tensor_header_read(file));
    for (int i = 0; i < file->count; i++) file->tensor[i].data = file->memory + file->tensor[i].file_offset;
    *out = file;
    return TDM_OK;
done:
    tdm__tensor_file_close(file);
    return status;
}

tdm_status tdm__tensor_file_begin(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                  const char *name) {
    tdm_tensor_file *file;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm__tensor_file_new(&file, host, name));
    if (folder != NULL) TDM_TRY_DONE(tdm__zone_printf(&file->zone, &file->path, "%s/%s", folder->path, name));
    TDM_TRY_DONE(tdm__file_open(&file->fd, &file->bytes, folder, name, TDM_E_CHECKPOINT));
    *out = file;
    return TDM_OK;
done:
    tdm__tensor_file_close(file);
    return status;
}

tdm_status tdm__tensor_file_open(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                 const char *name) {
    tdm_tensor_file *file;
    *out = NULL;
    TDM_TRY(tdm__tensor_file_begin(&file, host, folder, name));
    TDM_TRY_ELSE(tdm__tensor_header_read(file), tdm__tensor_file_close(file));
    *out = file;
    return TDM_OK;
}

const char *tdm__tensor_file_note(const tdm_tensor_file *file, tdm_note note) {
    return file->note[note];
}

const tdm_property *tdm__tensor_file_properties(const tdm_tensor_file *file, int *count) {
    *count = file->property_count;
    return file->property;
}

void tdm__tensor_file_close(tdm_tensor_file *file) {
    if (file == NULL) return;
    if (file->source != NULL) file->source->close(file);
    if (file->fd >= 0) close(file->fd);
    tdm__zone_deinit(&file->zone);
    tdm__delete(file->host, file);
}

int tdm__tensor_file_count(const tdm_tensor_file *file) {
    return file->count;
}

const tdm_tensor *tdm__tensor_file_get(const tdm_tensor_file *file, int index) {
    return index >= 0 && index < file->count ? &file->tensor[index] : NULL;
}

tdm_status tdm__tensor_file_read(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to) {
    if (file->source != NULL) return file->source->read(file, tensor, to);
    return tdm__tensor_file_take(file, to, tensor->bytes, tensor->file_offset);
}

int tdm__tensor_file_descriptor(const tdm_tensor_file *file, uint64_t *bytes) {
    *bytes = file->bytes;
    return file->fd;
}

static size_t first_negative(const float *x, size_t count) {
    size_t at = 0;
    while (at < count && !(x[at] < 0)) at++;
    return at;
}

/* A tensor of state that never holds a negative number, such as a running average of squares? */
static bool is_never_negative(const tdm_optim_def *optim, const tdm_tensor *tensor) {
    for (int i = 0; optim != NULL && tensor->dtype == TDM_ST_F32 && i < TDM_MAX_STATES && optim->state[i] != NULL;
         i++) {
        size_t length = strlen(optim->state[i]);
        if (optim->never_negative[i] && strncmp(tensor->name, optim->state[i], length) == 0 &&
            tensor->name[length] == '.')
            return true;
    }
    return false;
}

/* A part of the file: the header, or a tensor. */
typedef struct range {
    const tdm_tensor *tensor; /* NULL: the header */
    uint64_t from, bytes;
    bool never_negative;
} range;

/* `chunk` begins `before` bytes after the range. */
static void look_for_bad(const range *r, const char *chunk, size_t bytes, uint64_t before, tdm_bad_number *bad) {
    tdm_float_form form = r->tensor != NULL ? tdm__dtype_of(r->tensor)->form : TDM_NOT_FLOAT;
    if (form == TDM_NOT_FLOAT || bad->tensor != NULL) return;
    size_t each = tdm__float_bytes(form), count = bytes / each;
    size_t infinite = tdm__first_not_finite(form, chunk, count);
    size_t negative = r->never_negative ? first_negative((const float *)chunk, count) : count;
    size_t first = infinite < negative ? infinite : negative;
    if (first < count)
        *bad = (tdm_bad_number){.tensor = r->tensor, .at = before / each + first, .is_negative = negative == first};
}

static tdm_status hash_range(const tdm_tensor_file *file, const range *r, tdm_hasher *hasher, char *chunk,
                             tdm_bad_number *bad) {
    for (uint64_t at = 0; at < r->bytes; at += CHUNK) {
        size_t part = r->bytes - at < CHUNK ? (size_t)(r->bytes - at) : CHUNK;
        TDM_TRY(tdm__tensor_file_take(file, chunk, part, r->from + at));
        tdm__hash_add(hasher, chunk, part);
        look_for_bad(r, chunk, part, at, bad);
    }
    return TDM_OK;
}

tdm_status tdm__tensor_file_hash(const tdm_tensor_file *file, const tdm_optim_def *optim, tdm_hash128 *out,
                                 tdm_bad_number *bad) {
    tdm_hasher *hasher = NULL;
    char *chunk = NULL;
    tdm_status status;
    const range header = {.bytes = 8 + file->header_bytes};
    *bad = (tdm_bad_number){.tensor = NULL};
    TDM_TRY_DONE(tdm__hash_open(&hasher, file->host));
    TDM_TRY_DONE(
        tdm__new(file->host, &chunk, file->bytes < CHUNK ? (size_t)file->bytes : CHUNK, 1, "buffer for hashing"));
    TDM_TRY_DONE(hash_range(file, &header, hasher, chunk, bad));
    for (int i = 0; i < file->count; i++) { /* together they cover the data, without holes */
        const tdm_tensor *tensor = &file->tensor[i];
        const range r = {tensor, tensor->file_offset, tensor->bytes, is_never_negative(optim, tensor)};
        TDM_TRY_DONE(hash_range(file, &r, hasher, chunk, bad));
    }
    *out = tdm__hash_value(hasher);
done:
    tdm__delete(file->host, chunk);
    tdm__hash_close(hasher);
    return status;
}

tdm_status tdm__bad_number_fail(const tdm_tensor_file *file, const tdm_bad_number *bad) {
    char name[TDM_ST_PRINTABLE];
    if (bad->tensor == NULL) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' %s (element %llu is %s)", file->path,
             tdm__printable(name, bad->tensor->name), bad->is_negative ? "must not be negative" : "is not finite",
             (unsigned long long)bad->at, bad->is_negative ? "below 0" : "infinite or NaN");
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
