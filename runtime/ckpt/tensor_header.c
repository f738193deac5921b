/* The header of a safetensors file, read in two passes through a small window. The first checks everything that can be
 * checked without remembering the tensors, so that a hostile header costs no memory; the second keeps them, and checks
 * that names are unique and that the data is covered without holes or overlaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"

enum { RECENT = 8192 }; /* a power of two */

typedef struct header_scan {
    tdm_tensor_file *file;
    tdm_json json;
    uint64_t data_bytes;
    bool keeping; /* second pass: into file->tensor, names, file->metadata, with room for what the first one counted */
    int64_t count, room;
    size_t name_bytes, name_room;
    char *names;
    bool has_metadata;
    int64_t metadata_count, metadata_room;
    size_t metadata_bytes, metadata_text_room;
    char *metadata_text;
    uint64_t covered, last_end;       /* bytes of all tensors so far; where the last one ends */
    char misplaced[TDM_ST_PRINTABLE]; /* the first that does not begin where the one before it in the header ends */
    uint64_t misplaced_begin, misplaced_after;
    char subject[TDM_ST_PRINTABLE]; /* the tensor being read, for messages */
    char name[TDM_ST_MAX_NAME + 1];
    /* Hashes of the names seen lately: the same name over and over is refused before memory is taken for tensors. The
     * second pass finds every duplicate. */
    uint64_t recent[RECENT];
    unsigned char window[TDM_JSON_WINDOW];
} header_scan;

static bool seen_lately(header_scan *scan, const char *name, size_t length, uint64_t seed) {
    uint64_t hash = tdm__hash64(name, length, seed);
    uint64_t *slot = &scan->recent[hash & (RECENT - 1)];
    if (*slot == hash) return true;
    *slot = hash;
    return false;
}

static bool read_shape(header_scan *scan, tdm_tensor *tensor) {
    uint64_t dim;
    tensor->ndim = 0;
    if (!tdm__json_array(&scan->json)) return false;
    while (tdm__json_item(&scan->json)) {
        if (tensor->ndim == TDM_ST_MAX_RANK)
            return tdm__json_fail(&scan->json, "shape has more than %d dimensions", TDM_ST_MAX_RANK);
        if (!tdm__json_natural(&scan->json, &dim)) return false;
        if (dim > INT64_MAX) return tdm__json_fail(&scan->json, "shape has a dimension beyond 64 bits");
        tensor->dim[tensor->ndim++] = (int64_t)dim;
    }
    return !scan->json.failed;
}

static bool read_offsets(header_scan *scan, uint64_t range[2]) {
    int given = 0;
    if (!tdm__json_array(&scan->json)) return false;
    while (tdm__json_item(&scan->json)) {
        if (given == 2) return tdm__json_fail(&scan->json, "data_offsets has more than two numbers");
        if (!tdm__json_natural(&scan->json, &range[given++])) return false;
    }
    if (scan->json.failed) return false;
    return given == 2 || tdm__json_fail(&scan->json, "data_offsets wants two numbers, has %d", given);
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, each once and nothing else. *bits is of one element. */
static bool read_fields(header_scan *scan, tdm_tensor *tensor, uint64_t range[2], int *bits) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    char key[16];
    size_t length;
    bool seen[3] = {false, false, false};
    tdm_json *json = &scan->json;
    if (!tdm__json_object(json)) return false;
    while (tdm__json_key(json, key, sizeof(key), &length)) {
        int which = 0;
        while (which < 3 && strcmp(keys[which], key) != 0) which++;
        if (which == 3) return tdm__json_fail(json, "unknown key '%s', wants dtype, shape, data_offsets", key);
        if (seen[which]) return tdm__json_fail(json, "key '%s' is there twice", key);
        seen[which] = true;
        if (which == 0) {
            if (!tdm__json_string(json, tensor->dtype_name, sizeof(tensor->dtype_name), &length)) return false;
            *bits = tdm__dtype_bits(tensor->dtype_name, &tensor->dtype);
            if (*bits == 0) return tdm__json_fail(json, "unknown dtype '%s'", tensor->dtype_name);
        } else if (which == 1 ? !read_shape(scan, tensor) : !read_offsets(scan, range)) {
            return false;
        }
    }
    for (int i = 0; i < 3 && !json->failed; i++) {
        if (!seen[i]) return tdm__json_fail(json, "key '%s' is missing", keys[i]);
    }
    return !json->failed;
}

/* The size that dtype and shape make, against the range that the header gives. */
static bool check_size(header_scan *scan, tdm_tensor *tensor, const uint64_t range[2], int bits) {
    uint64_t total = (uint64_t)bits;
    unsigned long long begin = range[0], end = range[1], data = scan->data_bytes;
    for (int i = 0; i < tensor->ndim; i++) {
        if (__builtin_mul_overflow(total, (uint64_t)tensor->dim[i], &total))
            return tdm__json_fail(&scan->json, "the product of its shape overflows 64 bits");
    }
    if (total % 8 != 0)
        return tdm__json_fail(&scan->json, "%llu bits of %s are no whole bytes", (unsigned long long)total,
                              tensor->dtype_name);
    if (begin > end) return tdm__json_fail(&scan->json, "data_offsets [%llu, %llu] end before they begin", begin, end);
    if (total / 8 != end - begin)
        return tdm__json_fail(&scan->json, "dtype and shape make %llu bytes, data_offsets [%llu, %llu] give %llu",
                              (unsigned long long)total / 8, begin, end, end - begin);
    if (end > data)
        return tdm__json_fail(&scan->json, "data_offsets [%llu, %llu] reach beyond the %llu bytes of data", begin, end,
                              data);
    if (__builtin_add_overflow(scan->covered, end - begin, &scan->covered) || scan->covered > scan->data_bytes)
        return tdm__json_fail(&scan->json, "overlap: the tensors up to here take %llu bytes, the file has %llu of data",
                              (unsigned long long)scan->covered, data);
    if (begin != scan->last_end && scan->misplaced[0] == '\0') {
        memcpy(scan->misplaced, scan->subject, sizeof(scan->misplaced));
        scan->misplaced_begin = begin;
        scan->misplaced_after = scan->last_end;
    }
    scan->last_end = end;
    tensor->bytes = (size_t)(end - begin);
    tensor->file_offset = 8 + scan->file->header_bytes + begin;
    return true;
}

static bool read_tensor(header_scan *scan, size_t name_length) {
    tdm_tensor tensor = {.dtype = TDM_ST_OTHER};
    uint64_t range[2] = {0, 0};
    int bits = 0;
    tdm__printable(scan->subject, scan->name);
    if (name_length == 0) return tdm__json_fail(&scan->json, "a tensor without a name");
    if (!scan->keeping && seen_lately(scan, scan->name, name_length, 1))
        return tdm__json_fail(&scan->json, "the name is there twice");
    if (scan->count == scan->room)
        return tdm__json_fail(&scan->json,
                              scan->keeping ? "the file changed while it was read" : "more than %lld tensors",
                              (long long)scan->room);
    if (!read_fields(scan, &tensor, range, &bits) || !check_size(scan, &tensor, range, bits)) return false;
    if (scan->keeping) {
        if (name_length + 1 > scan->name_room - scan->name_bytes)
            return tdm__json_fail(&scan->json, "the file changed while it was read");
        tensor.name = memcpy(scan->names + scan->name_bytes, scan->name, name_length + 1);
        scan->file->tensor[scan->count] = tensor;
    }
    scan->name_bytes += name_length + 1;
    scan->count++;
    scan->subject[0] = '\0';
    return true;
}

/* The next key or value of __metadata__; kept in the second pass. */
static bool metadata_text(header_scan *scan, bool key, const char **out, bool *more) {
    size_t length, room = scan->metadata_text_room - scan->metadata_bytes;
    char *to = scan->keeping ? scan->metadata_text + scan->metadata_bytes : NULL;
    bool ok = key ? tdm__json_key(&scan->json, to, room, &length) : tdm__json_string(&scan->json, to, room, &length);
    *more = ok;
    if (!ok) return !scan->json.failed;
    scan->metadata_bytes += length + 1;
    if (scan->metadata_bytes >= scan->metadata_text_room && !scan->keeping)
        return tdm__json_fail(&scan->json, "__metadata__ has more than %d bytes", TDM_ST_MAX_METADATA);
    *out = to;
    return true;
}

static bool read_metadata(header_scan *scan) {
    if (scan->has_metadata) return tdm__json_fail(&scan->json, "__metadata__ is there twice");
    scan->has_metadata = true;
    if (!tdm__json_object(&scan->json)) return false;
    for (;;) {
        const char *pair[2] = {NULL, NULL};
        bool more;
        if (!metadata_text(scan, true, &pair[0], &more)) return false;
        if (!more) return true;
        if (!metadata_text(scan, false, &pair[1], &more)) return false;
        if (scan->keeping) {
            if (scan->metadata_count == scan->metadata_room)
                return tdm__json_fail(&scan->json, "the file changed while it was read");
            memcpy(scan->file->metadata[scan->metadata_count], pair, sizeof(pair));
        }
        scan->metadata_count++;
    }
}

static tdm_status scan_fault(const header_scan *scan) {
    const char *path = scan->file->path;
    if (scan->json.error != 0) return tdm__file_fail("read", path, scan->json.error);
    if (scan->subject[0] != '\0')
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s': %s", path, scan->subject, scan->json.why);
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: header: %s", path, scan->json.why);
}

static tdm_status scan_pass(header_scan *scan) {
    size_t length;
    scan->count = scan->metadata_count = 0;
    scan->name_bytes = scan->metadata_bytes = 0;
    scan->covered = scan->last_end = 0;
    scan->misplaced[0] = scan->subject[0] = '\0';
    scan->has_metadata = false;
    tdm_json *json = &scan->json;
    tdm__json_open_file(json, scan->file->fd, 8, scan->file->header_bytes, scan->window, TDM_ST_DEPTH);
    bool good = tdm__json_object(json);
    while (good && tdm__json_key(json, scan->name, sizeof(scan->name), &length))
        good = strcmp(scan->name, "__metadata__") == 0 ? read_metadata(scan) : read_tensor(scan, length);
    if (json->failed || !good || !tdm__json_end(json)) return scan_fault(scan);
    return TDM_OK;
}

static tdm_status check_covered(const header_scan *scan) {
    const char *path = scan->file->path;
    unsigned long long covered = scan->covered, data = scan->data_bytes;
    if (covered == data) return TDM_OK;
    if (scan->misplaced[0] != '\0')
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: a hole: the tensors take %llu of the %llu bytes of data; tensor '%s' begins at "
                 "%llu, the one before it ends at %llu",
                 path, covered, data, scan->misplaced, (unsigned long long)scan->misplaced_begin,
                 (unsigned long long)scan->misplaced_after);
    TDM_FAIL(TDM_E_CHECKPOINT,
             "%s: the tensors end at byte %llu of the data, the file has %llu: %llu bytes at its end "
             "belong to none",
             path, covered, data, data - covered);
}

static int order_offset(const void *a, const void *b) {
    const tdm_tensor *x = a, *y = b;
    if (x->file_offset != y->file_offset) return x->file_offset < y->file_offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int order_name(const void *a, const void *b) {
    const tdm_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int order_metadata(const void *a, const void *b) {
    const char *const *x = a, *const *y = b;
    return strcmp(x[0], y[0]);
}

tdm_status tdm__tensor_file_index(tdm_tensor_file *file) {
    char name[TDM_ST_PRINTABLE];
    for (int i = 0; i < file->count; i++) file->by_name[i] = &file->tensor[i];
    if (file->count > 1) qsort(file->by_name, (size_t)file->count, sizeof(*file->by_name), order_name);
    for (int i = 1; i < file->count; i++) {
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s': the name is there twice", file->path,
                     tdm__printable(name, file->by_name[i]->name));
    }
    return TDM_OK;
}

static tdm_status check_order(tdm_tensor_file *file) {
    char name[TDM_ST_PRINTABLE], before[TDM_ST_PRINTABLE];
    uint64_t data = 8 + file->header_bytes, end = data;
    if (file->count > 1) qsort(file->tensor, (size_t)file->count, sizeof(*file->tensor), order_offset);
    for (int i = 0; i < file->count; i++) {
        const tdm_tensor *tensor = &file->tensor[i];
        if (tensor->file_offset != end)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s: tensor '%s' begins at %llu, '%s' before it ends at %llu", file->path,
                     tensor->file_offset < end ? "overlap" : "a hole", tdm__printable(name, tensor->name),
                     (unsigned long long)(tensor->file_offset - data),
                     i == 0 ? "" : tdm__printable(before, tensor[-1].name), (unsigned long long)(end - data));
        end += tensor->bytes;
    }
    return TDM_OK;
}

static tdm_status check_metadata(const tdm_tensor_file *file) {
    char key[TDM_ST_PRINTABLE];
    if (file->metadata_count > 1)
        qsort(file->metadata, (size_t)file->metadata_count, sizeof(*file->metadata), order_metadata);
    for (int i = 1; i < file->metadata_count; i++) {
        if (strcmp(file->metadata[i - 1][0], file->metadata[i][0]) == 0)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: __metadata__: key '%s' is there twice", file->path,
                     tdm__printable(key, file->metadata[i][0]));
    }
    return TDM_OK;
}

/* Room for exactly what the first pass counted. */
static tdm_status make_room(header_scan *scan) {
    tdm_tensor_file *file = scan->file;
    TDM_TRY(tdm__arena_new(&file->arena, &file->tensor, (size_t)scan->count, sizeof(*file->tensor)));
    TDM_TRY(tdm__arena_new(&file->arena, &file->by_name, (size_t)scan->count, sizeof(*file->by_name)));
    TDM_TRY(tdm__arena_new(&file->arena, &scan->names, scan->name_bytes, 1));
    TDM_TRY(tdm__arena_new(&file->arena, &file->metadata, (size_t)scan->metadata_count, sizeof(*file->metadata)));
    TDM_TRY(tdm__arena_new(&file->arena, &scan->metadata_text, scan->metadata_bytes, 1));
    scan->room = scan->count;
    scan->name_room = scan->name_bytes;
    scan->metadata_room = scan->metadata_count;
    scan->metadata_text_room = scan->metadata_bytes;
    scan->keeping = true;
    return TDM_OK;
}

/* The length in front of the JSON, against the size of the file. */
static tdm_status read_length(tdm_tensor_file *file) {
    unsigned char head[9];
    const char *path = file->path;
    unsigned long long bytes = file->bytes, wanted = 0;
    if (bytes < 10)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: wanted a safetensors file of at least 10 bytes, found %llu bytes", path, bytes);
    TDM_TRY(tdm__file_read(file->fd, path, head, sizeof(head), 0, TDM_E_CHECKPOINT));
    if (memcmp(head, "PK\3\4", 4) == 0)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: wanted a safetensors file, found a zip archive (a PyTorch .pt?); save it with "
                 "safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")",
                 path);
    for (int i = 7; i >= 0; i--) wanted = wanted << 8 | head[i];
    if (wanted > TDM_ST_MAX_HEADER)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: no safetensors file: wanted a header of at most %d bytes, it announces %llu",
                 path, TDM_ST_MAX_HEADER, wanted);
    if (wanted > bytes - 8)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: cut short: its header announces %llu bytes, %llu are there", path, wanted,
                 bytes - 8);
    if (head[8] != '{' || wanted < 2)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: no safetensors file: wanted a header that starts with '{', found byte 0x%02x "
                 "and a length of %llu",
                 path, head[8], wanted);
    file->header_bytes = wanted;
    return TDM_OK;
}

tdm_status tdm__tensor_header_read(tdm_tensor_file *file) {
    header_scan *scan;
    tdm_status status;
    TDM_TRY(read_length(file));
    TDM_TRY(tdm__new(file->host, &scan, 1, sizeof(*scan), "safetensors header"));
    scan->file = file;
    scan->data_bytes = file->bytes - 8 - file->header_bytes;
    scan->room = TDM_ST_MAX_TENSORS;
    scan->metadata_text_room = TDM_ST_MAX_METADATA;
    TDM_TRY_DONE(scan_pass(scan));
    TDM_TRY_DONE(check_covered(scan));
    TDM_TRY_DONE(make_room(scan));
    TDM_TRY_DONE(scan_pass(scan));
    file->count = (int)scan->count;
    file->metadata_count = (int)scan->metadata_count;
    TDM_TRY_DONE(check_order(file));
    TDM_TRY_DONE(tdm__tensor_file_index(file));
    TDM_TRY_DONE(check_metadata(file));
done:
    tdm__delete(file->host, scan);
    return status;
}
