/* Reads the header of a safetensors file in two passes, through a small window. The first pass checks everything and
 * keeps only 32 bytes per tensor, so a hostile header costs one pass and little memory. The second pass, for a valid
 * header, stores the tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/text/json.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_seen.h"

/* The fewest bytes of header that a tensor takes, and that a key of the metadata with its value takes. */
enum { SMALLEST_TENSOR = 48, SMALLEST_KEY = 6 };

const char *const tdm__note_keys[TDM_NOTES] = {"tandem.classes", "tandem.features", "tandem.model", "tandem.origin",
                                               "tandem.loss"};

typedef struct header_scan {
    tdm_tensor_file *file;
    tdm_json json;
    uint64_t data_bytes;
    bool keeping; /* second pass: stores tensors and names, in the space that the first pass has counted */
    int64_t count, room;
    size_t name_bytes, name_room;
    char *names;
    bool has_metadata;
    size_t note_bytes[TDM_NOTES];         /* of each value with its NUL; 0: there is none */
    bool keeps[TDM_ST_MAX_METADATA_KEYS]; /* of each key of the metadata: it is a property that fits */
    int property_count;
    size_t property_bytes, property_room; /* of their keys and texts, each with its NUL */
    char *properties;
    tdm_tensor_seen seen, keys;     /* what the first pass has seen: tensors, keys of the metadata */
    char subject[TDM_ST_PRINTABLE]; /* the tensor being read, for messages */
    char name[TDM_ST_MAX_NAME + 1];
    unsigned char window[TDM_JSON_WINDOW];
} header_scan;

static size_t smaller(uint64_t a, uint64_t b) {
    return (size_t)(a < b ? a : b);
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
    return given == 2 || tdm__json_fail(&scan->json, "data_offsets must have two numbers, has %d", given);
}

/* Reads {"dtype": ..., "shape": ..., "data_offsets": ...}, each key once and no other. *bits: of one element. */
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
        if (which == 3) return tdm__json_fail(json, "unknown key '%s', expected dtype, shape, data_offsets", key);
        if (seen[which]) return tdm__json_fail(json, "key '%s' appears twice", key);
        seen[which] = true;
        if (which == 0) {
            if (!tdm__json_string(json, tensor->dtype_name, sizeof(tensor->dtype_name), &length)) return false;
            tensor->dtype = tdm__dtype_find(tensor->dtype_name)->dtype;
            *bits = tdm__dtype_find(tensor->dtype_name)->bits;
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

/* Checks that dtype and shape give the size of the range in the header. */
static bool check_size(header_scan *scan, tdm_tensor *tensor, const uint64_t range[2], int bits) {
    uint64_t total = (uint64_t)bits;
    unsigned long long begin = range[0], end = range[1], data = scan->data_bytes;
    for (int i = 0; i < tensor->ndim; i++) {
        if (__builtin_mul_overflow(total, (uint64_t)tensor->dim[i], &total))
            return tdm__json_fail(&scan->json, "the product of its shape overflows 64 bits");
    }
    if (total % 8 != 0)
        return tdm__json_fail(&scan->json, "%llu bits of %s are not a whole number of bytes", (unsigned long long)total,
                              tensor->dtype_name);
    if (begin > end) return tdm__json_fail(&scan->json, "data_offsets [%llu, %llu] end before they begin", begin, end);
    if (total / 8 != end - begin)
        return tdm__json_fail(&scan->json, "dtype and shape give %llu bytes, data_offsets [%llu, %llu] give %llu",
                              (unsigned long long)total / 8, begin, end, end - begin);
    if (end > data)
        return tdm__json_fail(&scan->json, "data_offsets [%llu, %llu] reach beyond the %llu bytes of data", begin, end,
                              data);
    if (!scan->keeping) tdm__tensor_seen_extent(&scan->seen, begin, end - begin);
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
    if (scan->count == scan->room) {
        if (scan->keeping) return tdm__json_fail(&scan->json, "the file changed while it was read");
        return tdm__json_fail(&scan->json, "more than %lld tensors", (long long)scan->room);
    }
    if (!scan->keeping &&
        !tdm__tensor_seen_name(&scan->seen, scan->file, scan->name, name_length, (uint32_t)scan->json.string_offset))
        return tdm__json_fail(&scan->json, "the name appears twice");
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

/* Which note the key is; TDM_NOTES: none. */
static int find_note(const char *key) {
    int note = 0;
    while (note < TDM_NOTES && strcmp(key, tdm__note_keys[note]) != 0) note++;
    return note;
}

bool tdm__property_is_key(const char *key, size_t length) {
    static const char own[] = "tandem.";
    if (length < 1 || length > TDM_PROPERTY_KEY || memchr(key, '\0', length) != NULL) return false;
    return strcmp(key, "format") != 0 && strncmp(key, own, sizeof(own) - 1) != 0;
}

/* In the first pass: is it a property, and do those before it leave it room? */
static bool takes_property(const header_scan *scan, const char *key, size_t length, size_t bytes) {
    return tdm__property_is_key(key, length) && scan->property_count < TDM_PROPERTIES &&
           bytes <= TDM_PROPERTY_BYTES - scan->property_bytes;
}

/* In the second pass: its key, whose text is put behind it. */
static bool keep_property(header_scan *scan, size_t key_length) {
    char *key = scan->properties + scan->property_bytes, *text = key + key_length + 1;
    size_t room = scan->property_room - scan->property_bytes, length;
    if (scan->property_count == scan->file->property_count || key_length + 1 >= room)
        return tdm__json_fail(&scan->json, "the file changed while it was read");
    memcpy(key, scan->name, key_length + 1);
    if (!tdm__json_string(&scan->json, text, room - key_length - 1, &length)) return false;
    scan->file->property[scan->property_count++] = (tdm_property){key, text};
    scan->property_bytes += key_length + 1 + length + 1;
    return true;
}

static bool keep_metadata(header_scan *scan) {
    tdm_json *json = &scan->json;
    size_t length;
    if (!tdm__json_object(json)) return false;
    scan->property_count = 0;
    scan->property_bytes = 0;
    for (int keys = 0; tdm__json_key(json, scan->name, sizeof(scan->name), &length); keys++) {
        const int note = find_note(scan->name);
        char *to = note < TDM_NOTES ? scan->file->note[note] : NULL;
        const bool kept = keys < TDM_ST_MAX_METADATA_KEYS && scan->keeps[keys];
        if (!(kept ? keep_property(scan, length)
                   : tdm__json_string(json, to, to != NULL ? scan->note_bytes[note] : TDM_ST_MAX_METADATA, &length)))
            return false;
    }
    return !json->failed;
}

/* Checks __metadata__: texts by key, within limits, each key once. Of its content tandem.format, the notes and the
 * properties are of interest. */
static bool read_metadata(header_scan *scan) {
    tdm_json *json = &scan->json;
    char printable[TDM_ST_PRINTABLE];
    size_t bytes = 0, length;
    if (scan->keeping) return keep_metadata(scan);
    if (scan->has_metadata) return tdm__json_fail(json, "__metadata__ appears twice");
    scan->has_metadata = true;
    if (!tdm__json_object(json)) return false;
    for (int keys = 0; tdm__json_key(json, scan->name, sizeof(scan->name), &length); keys++) {
        bytes += length + 1;
        if (bytes >= TDM_ST_MAX_METADATA)
            return tdm__json_fail(json, "__metadata__ has more than %d bytes", TDM_ST_MAX_METADATA);
        if (keys == TDM_ST_MAX_METADATA_KEYS)
            return tdm__json_fail(json, "__metadata__ has more than %d keys", TDM_ST_MAX_METADATA_KEYS);
        if (!tdm__tensor_seen_name(&scan->keys, scan->file, scan->name, length, (uint32_t)json->string_offset))
            return tdm__json_fail(json, "__metadata__: key '%s' appears twice", tdm__printable(printable, scan->name));
        if (strcmp(scan->name, "tandem.format") == 0) scan->file->is_tandems = true;
        const size_t key_length = length;
        if (!tdm__json_string(json, NULL, TDM_ST_MAX_METADATA - bytes, &length)) return false;
        bytes += length + 1;
        if (find_note(scan->name) < TDM_NOTES) scan->note_bytes[find_note(scan->name)] = length + 1;
        scan->keeps[keys] = takes_property(scan, scan->name, key_length, key_length + length + 2);
        scan->property_count += scan->keeps[keys];
        scan->property_bytes += scan->keeps[keys] ? key_length + length + 2 : 0;
    }
    return !json->failed;
}

static tdm_status scan_fault(const header_scan *scan) {
    const char *path = scan->file->path;
    if (scan->json.error != 0) return tdm__file_fail("read", NULL, path, scan->json.error);
    if (scan->subject[0] != '\0')
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s': %s", path, scan->subject, scan->json.why);
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: header: %s", path, scan->json.why);
}

static tdm_status scan_pass(header_scan *scan) {
    size_t length;
    scan->count = 0;
    scan->name_bytes = 0;
    scan->subject[0] = '\0';
    scan->has_metadata = false;
    tdm_json *json = &scan->json;
    const tdm_tensor_file *file = scan->file;
    if (file->memory != NULL)
        tdm__json_open(json, file->memory + 8, (size_t)file->header_bytes, TDM_ST_DEPTH);
    else
        tdm__json_open_file(json, file->fd, 8, file->header_bytes, scan->window, TDM_ST_DEPTH);
    bool good = tdm__json_object(json);
    while (good && tdm__json_key(json, scan->name, sizeof(scan->name), &length))
        good = strcmp(scan->name, "__metadata__") == 0 ? read_metadata(scan) : read_tensor(scan, length);
    if (json->failed || !good || !tdm__json_end(json)) return scan_fault(scan);
    return TDM_OK;
}

static int order_offset(const void *a, const void *b) {
    const tdm_tensor *x = a, *y = b;
    if (x->file_offset != y->file_offset) return x->file_offset < y->file_offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The first pass. Its memory is freed before the second pass allocates any. */
static tdm_status check_pass(header_scan *scan, bool *in_order) {
    const tdm_tensor_file *file = scan->file;
    const tdm_host *host = file->host;
    uint64_t most_tensors = file->header_bytes / SMALLEST_TENSOR + 1, most_keys = file->header_bytes / SMALLEST_KEY + 1;
    tdm_status status;
    scan->room = TDM_ST_MAX_TENSORS;
    TDM_TRY_DONE(tdm__tensor_seen_open(&scan->seen, host, smaller(TDM_ST_MAX_TENSORS, most_tensors)));
    TDM_TRY_DONE(tdm__tensor_seen_open(&scan->keys, host, smaller(TDM_ST_MAX_METADATA_KEYS, most_keys)));
    TDM_TRY_DONE(scan_pass(scan));
    TDM_TRY_DONE(tdm__tensor_seen_covers(&scan->seen, file, scan->data_bytes));
    *in_order = scan->seen.in_order;
done:
    tdm__tensor_seen_close(&scan->seen);
    tdm__tensor_seen_close(&scan->keys);
    return status;
}

/* Allocates exactly what the first pass has counted. */
static tdm_status make_room(header_scan *scan) {
    tdm_tensor_file *file = scan->file;
    TDM_TRY(tdm__zone_new(&file->zone, &file->tensor, (size_t)scan->count, sizeof(*file->tensor)));
    TDM_TRY(tdm__zone_new(&file->zone, &file->by_name, (size_t)scan->count, sizeof(*file->by_name)));
    TDM_TRY(tdm__zone_new(&file->zone, &scan->names, scan->name_bytes, 1));
    for (int i = 0; i < TDM_NOTES; i++) {
        if (scan->note_bytes[i] > 0) TDM_TRY(tdm__zone_new(&file->zone, &file->note[i], scan->note_bytes[i], 1));
    }
    file->property_count = scan->property_count;
    TDM_TRY(tdm__zone_new(&file->zone, &file->property, (size_t)scan->property_count, sizeof(*file->property)));
    TDM_TRY(tdm__zone_new(&file->zone, &scan->properties, scan->property_bytes, 1));
    scan->property_room = scan->property_bytes;
    scan->room = scan->count;
    scan->name_room = scan->name_bytes;
    scan->keeping = true;
    return TDM_OK;
}

/* Reads the length before the JSON and checks it against the size of the file. */
static tdm_status read_length(tdm_tensor_file *file) {
    unsigned char head[9];
    const char *path = file->path;
    unsigned long long bytes = file->bytes, length = 0;
    if (bytes < 10)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected a safetensors file of at least 10 bytes, found %llu bytes", path,
                 bytes);
    TDM_TRY(tdm__tensor_file_take(file, head, sizeof(head), 0));
    if (memcmp(head, "PK\3\4", 4) == 0)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: expected a safetensors file, found a zip archive (a PyTorch .pt?); `tandem ckpt convert` makes a "
                 ".safetensors file of it",
                 path);
    for (int i = 7; i >= 0; i--) length = length << 8 | head[i];
    if (head[8] != '{' || length < 2)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: not a safetensors file: expected a header that starts with '{', found byte 0x%02x "
                 "and a length of %llu",
                 path, head[8], length);
    if (length > TDM_ST_MAX_HEADER)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: expected a safetensors file with a header of at most %d bytes, found a header of %llu", path,
                 TDM_ST_MAX_HEADER, length);
    if (length > bytes - 8)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: cut short: its header has %llu bytes, but only %llu follow", path, length,
                 bytes - 8);
    file->header_bytes = length;
    return TDM_OK;
}

tdm_status tdm__tensor_header_read(tdm_tensor_file *file) {
    header_scan *scan;
    tdm_status status;
    bool in_order;
    TDM_TRY(read_length(file));
    TDM_TRY(tdm__new(file->host, &scan, 1, sizeof(*scan), "safetensors header"));
    scan->file = file;
    scan->data_bytes = file->bytes - 8 - file->header_bytes;
    TDM_TRY_DONE(check_pass(scan, &in_order));
    TDM_TRY_DONE(make_room(scan));
    TDM_TRY_DONE(scan_pass(scan));
    file->count = (int)scan->count;
    if (!in_order) qsort(file->tensor, (size_t)file->count, sizeof(*file->tensor), order_offset);
    TDM_TRY_DONE(tdm__tensor_file_index(file));
done:
    tdm__delete(file->host, scan);
    return status;
}
