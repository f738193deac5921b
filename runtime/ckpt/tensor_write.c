/* Writing safetensors files; tensor_file.c has their layout. The header is padded with spaces, so that the data begins
 * at a multiple of 64. The tensors of which the size is such a multiple come first, so that each of them begins at one:
 * kernels read them where they lie in a mapped file. The others follow, sorted by the size of their elements (I64
 * before F32), so that each begins at a multiple of that size. Then names decide. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/ckpt/tensor_file.h"

enum { CHUNK = 256 * 1024 }; /* bytes: small enough to be still in the cache when it is written */

typedef struct tensor_entry {
    const tdm_tensor *tensor;
    const tdm_dtype_row *dtype;
    int index; /* among the caller's tensors */
} tensor_entry;

static int order_name(const void *a, const void *b) {
    const tensor_entry *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

static int order_file(const void *a, const void *b) {
    const tensor_entry *x = a, *y = b;
    const bool x_first = x->tensor->bytes % TDM_ST_ALIGN == 0, y_first = y->tensor->bytes % TDM_ST_ALIGN == 0;
    if (x_first != y_first) return x_first ? -1 : 1;
    return x->dtype->bits != y->dtype->bits ? y->dtype->bits - x->dtype->bits : order_name(a, b);
}

/* Fails if a reader would refuse a file with this tensor. */
static tdm_status check_tensor(const tensor_entry *entry) {
    const tdm_tensor *tensor = entry->tensor;
    uint64_t bits = (uint64_t)entry->dtype->bits;
    size_t length = strlen(tensor->name), bad;
    if (length == 0 || length > TDM_ST_MAX_NAME || !tdm__text_is_utf8(tensor->name, length, &bad) ||
        strcmp(tensor->name, "__metadata__") == 0)
        TDM_FAIL(TDM_E_INTERNAL, "a tensor file cannot hold the name '%.64s'", tensor->name);
    if (tensor->ndim < 0 || tensor->ndim > TDM_ST_MAX_RANK || bits == 0)
        TDM_FAIL(TDM_E_INTERNAL, "tensor '%.64s': dtype %d of rank %d cannot be written", tensor->name, tensor->dtype,
                 tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->dim[i] < 0 || __builtin_mul_overflow(bits, (uint64_t)tensor->dim[i], &bits))
            TDM_FAIL(TDM_E_INTERNAL, "tensor '%.64s': a shape with %lld in it cannot be written", tensor->name,
                     (long long)tensor->dim[i]);
    }
    if (bits % 8 != 0 || bits / 8 != tensor->bytes)
        TDM_FAIL(TDM_E_INTERNAL, "tensor '%.64s': shape and dtype give %llu bytes, it has %zu", tensor->name,
                 (unsigned long long)bits / 8, tensor->bytes);
    return TDM_OK;
}

/* Checks the tensors and sorts them into the order of the file. */
static tdm_status order_tensors(const tdm_tensor *tensors, int count, tensor_entry *entry) {
    for (int i = 0; i < count; i++) {
        entry[i] = (tensor_entry){.tensor = &tensors[i], .dtype = tdm__dtype_of(&tensors[i]), .index = i};
        TDM_TRY(check_tensor(&entry[i]));
    }
    if (count > 1) qsort(entry, (size_t)count, sizeof(*entry), order_name);
    for (int i = 1; i < count; i++) {
        if (order_name(&entry[i - 1], &entry[i]) == 0)
            TDM_FAIL(TDM_E_INTERNAL, "tensor '%.64s': the name appears twice", entry[i].tensor->name);
    }
    if (count > 1) qsort(entry, (size_t)count, sizeof(*entry), order_file);
    return TDM_OK;
}

static void put_tensor(tdm_json_out *to, const tensor_entry *entry, uint64_t begin) {
    const tdm_tensor *tensor = entry->tensor;
    const unsigned long long end = begin + tensor->bytes;
    tdm__json_put(to, "%s:{ dtype:%s", tensor->name, entry->dtype->name);
    tdm__json_put_integers(to, "shape", tensor->dim, tensor->ndim);
    tdm__json_put(to, "data_offsets:[ %llu %llu ]}", (unsigned long long)begin, end);
}

/* Fails if a reader would refuse a file with this metadata. */
static tdm_status check_metadata(const char *const *metadata) {
    size_t bytes = 0;
    for (int i = 0; metadata != NULL && metadata[i] != NULL; i++) bytes += strlen(metadata[i]) + 1;
    if (bytes < TDM_ST_MAX_METADATA) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT,
             "the metadata of a tensor file has less than %d bytes, and this model's needs %zu: use fewer or shorter "
             "properties, or names of classes",
             TDM_ST_MAX_METADATA, bytes);
}

/* Prints the 8 bytes of length and the padded JSON. */
static tdm_status print_header(tdm_text *header, const tensor_entry *entry, int count, const char *const *metadata,
                               uint64_t *data_bytes) {
    uint64_t begin = 0;
    TDM_TRY(check_metadata(metadata));
    tdm__text_add(header, "\0\0\0\0\0\0\0\0", 8);
    tdm_json_out json = tdm__json_out(header, "");
    tdm__json_put(&json, "{");
    if (metadata != NULL && metadata[0] != NULL) {
        tdm__json_put(&json, "__metadata__:{");
        for (int i = 0; metadata[i] != NULL; i += 2) tdm__json_put(&json, "%s:%s", metadata[i], metadata[i + 1]);
        tdm__json_put(&json, "}");
    }
    for (int i = 0; i < count; i++) {
        put_tensor(&json, &entry[i], begin);
        begin += entry[i].tensor->bytes;
    }
    tdm__json_put(&json, "}");
    while (!header->failed && header->length % TDM_ST_ALIGN != 0) tdm__text_puts(header, " ");
    if (header->failed) TDM_FAIL(TDM_E_MEMORY, "tensor file: out of memory for the header");
    if (count > TDM_ST_MAX_TENSORS || header->length - 8 > TDM_ST_MAX_HEADER)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "a tensor file has at most %d tensors and %d bytes of header, this one needs %d and %zu: use fewer "
                 "layers or shorter names",
                 TDM_ST_MAX_TENSORS, TDM_ST_MAX_HEADER, count, header->length - 8);
    for (int i = 0; i < 8; i++) header->data[i] = (char)((uint64_t)(header->length - 8) >> (8 * i) & 0xFF);
    *data_bytes = begin;
    return TDM_OK;
}

static tdm_status check_finite(const tdm_tensor *tensor, const char *chunk, size_t bytes) {
    tdm_float_form form = tdm__dtype_of(tensor)->form;
    if (form == TDM_NOT_FLOAT) return TDM_OK;
    size_t count = bytes / tdm__float_bytes(form), bad = tdm__first_not_finite(form, chunk, count);
    if (bad == count) return TDM_OK;
    size_t before = (size_t)(chunk - (const char *)tensor->data) / tdm__float_bytes(form);
    TDM_FAIL(TDM_E_NUMERIC, "tensor '%.256s' is not finite (element %zu is infinite or NaN)", tensor->name,
             before + bad);
}

void tdm__tensor_metadata(const char *out[TDM_METADATA], char step_text[TDM_METADATA_STEP], int64_t step,
                          const char *const *note) {
    static const char *const format[] = {"format", "pt", "tandem.format", "1"};
    int at = 0;
    for (; at < 4; at++) out[at] = format[at];
    if (step >= 0) {
        snprintf(step_text, TDM_METADATA_STEP, "%lld", (long long)step);
        out[at++] = "tandem.step";
        out[at++] = step_text;
    }
    for (int i = 0; i < TDM_NOTES && note != NULL; i++) {
        if (note[i] == NULL) continue;
        out[at++] = tdm__note_keys[i];
        out[at++] = note[i];
    }
    out[at] = NULL;
}

void tdm__tensor_metadata_add(const char *out[TDM_METADATA], const tdm_property *property, int count) {
    int at = 0;
    while (out[at] != NULL) at++;
    for (int i = 0; i < count; i++) {
        out[at++] = property[i].key;
        out[at++] = property[i].text;
    }
    out[at] = NULL;
}

tdm_status tdm__tensors_finite(const tdm_tensor *tensors, int count) {
    for (int i = 0; i < count; i++) {
        TDM_TRY(check_finite(&tensors[i], tensors[i].data, tensors[i].bytes));
    }
    return TDM_OK;
}

/* Chunk by chunk, so that every byte is read only once from memory: a chunk is checked, hashed and written before the
 * next one. */
static tdm_status write_tensor(tdm_out_file *file, const tensor_entry *entry, tdm_hasher *hasher) {
    const char *data = entry->tensor->data;
    size_t bytes = entry->tensor->bytes;
    for (size_t at = 0; at < bytes; at += CHUNK) {
        size_t part = bytes - at < CHUNK ? bytes - at : CHUNK;
        TDM_TRY(check_finite(entry->tensor, data + at, part));
        tdm__hash_add(hasher, data + at, part);
        TDM_TRY(tdm__out_write(file, data + at, part));
    }
    return TDM_OK;
}

tdm_status tdm__tensor_file_write(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *folder,
                                  const char *name, const tdm_tensor *tensors, int count, const char *const *metadata,
                                  tdm_hash128 *hashes, tdm_hash128 *file_hash, uint64_t *file_bytes) {
    tensor_entry *entry = NULL;
    tdm_hasher *hasher = NULL, *of_tensor = NULL;
    tdm_out_file file = {.fd = -1};
    tdm_text header;
    uint64_t data_bytes = 0;
    tdm_status status;
    tdm__text_init(&header, host);
    TDM_TRY_DONE(tdm__new(host, &entry, (size_t)count, sizeof(*entry), "order of a tensor file"));
    TDM_TRY_DONE(order_tensors(tensors, count, entry));
    TDM_TRY_DONE(print_header(&header, entry, count, metadata, &data_bytes));
    TDM_TRY_DONE(tdm__hash_open(&hasher, host));
    TDM_TRY_DONE(tdm__hash_open(&of_tensor, host));
    TDM_TRY_DONE(tdm__out_open(&file, ops, folder, name, header.length + data_bytes, hasher));
    TDM_TRY_DONE(tdm__out_write(&file, header.data, header.length));
    for (int i = 0; i < count; i++) {
        tdm__hash_restart(of_tensor);
        TDM_TRY_DONE(write_tensor(&file, &entry[i], of_tensor));
        if (hashes != NULL) hashes[entry[i].index] = tdm__hash_value(of_tensor);
    }
    TDM_TRY_DONE(tdm__out_finish(&file));
    if (file_hash != NULL) *file_hash = tdm__hash_value(hasher);
    if (file_bytes != NULL) *file_bytes = header.length + data_bytes;
done:
    if (status != TDM_OK) tdm__out_discard(&file);
    tdm__hash_close(hasher);
    tdm__hash_close(of_tensor);
    tdm__text_deinit(&header);
    tdm__delete(host, entry);
    return status;
}
