/* A file of tensors as a .pt file that torch.load(weights_only=True) takes: an archive of a pickle, protocol 2, and of
 * one storage for each tensor, as torch.save lays it out. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/ckpt/torch/torch_file.h"

enum { ZIP_ALIGN = 64, ZIP_LOCAL = 30 };

/* ---- the pickle ---- */

static void put_byte(tdm_text *to, int byte) {
    const char one = (char)byte;
    tdm__text_add(to, &one, 1);
}

/* Little-endian; beyond eight bytes zeros. */
static void put_bytes(tdm_text *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) put_byte(to, i < 8 ? (int)(value >> (8 * i) & 0xff) : 0);
}

static void put_integer(tdm_text *to, int64_t value) {
    if (value >= 0 && value <= INT32_MAX) {
        put_byte(to, 'J');
        put_bytes(to, (uint64_t)value, 4);
        return;
    }
    put_byte(to, 0x8a); /* LONG1 */
    put_byte(to, 8);
    put_bytes(to, (uint64_t)value, 8);
}

static void put_word(tdm_text *to, const char *word) {
    put_byte(to, 'X');
    put_bytes(to, strlen(word), 4);
    tdm__text_puts(to, word);
}

static void put_dimensions(tdm_text *to, const int64_t *values, int count) {
    put_byte(to, '(');
    for (int i = 0; i < count; i++) put_integer(to, values[i]);
    put_byte(to, 't');
}

static void put_tensor(tdm_text *to, const tdm_tensor *tensor, const char *storage, int index, int64_t count) {
    int64_t stride[TDM_ST_MAX_RANK];
    char key[16];
    int64_t step = 1;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= tensor->dim[i] > 1 ? tensor->dim[i] : 1;
    }
    snprintf(key, sizeof(key), "%d", index);
    put_word(to, tensor->name);
    tdm__text_puts(to, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_word(to, "storage");
    tdm__text_printf(to, "ctorch\n%s\n", storage);
    put_word(to, key);
    put_word(to, "cpu");
    put_integer(to, count);
    tdm__text_puts(to, "tQ"); /* the storage */
    put_integer(to, 0);
    put_dimensions(to, tensor->dim, tensor->ndim);
    put_dimensions(to, stride, tensor->ndim);
    put_byte(to, 0x89); /* requires_grad */
    tdm__text_puts(to, "ccollections\nOrderedDict\n)RtR");
}

static const tdm_torch_type *type_of(const tdm_tensor *tensor) {
    const tdm_torch_type *type = tdm__torch_types;
    while (type->storage != NULL && strcmp(type->dtype, tensor->dtype_name) != 0) type++;
    return type;
}

static tdm_status make_pickle(const tdm_tensor_file *from, tdm_text *to) {
    put_byte(to, 0x80);
    put_byte(to, 2);
    tdm__text_puts(to, "ccollections\nOrderedDict\n)R(");
    for (int i = 0; i < tdm__tensor_file_count(from); i++) {
        const tdm_tensor *tensor = tdm__tensor_file_get(from, i);
        const tdm_torch_type *type = type_of(tensor);
        if (type->storage == NULL)
            TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' is %s, which this format does not have", tensor->name,
                     tensor->dtype_name);
        put_tensor(to, tensor, type->storage, i, (int64_t)(tensor->bytes / (size_t)type->bytes));
    }
    tdm__text_puts(to, "u.");
    if (to->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the pickle");
    return TDM_OK;
}

/* ---- the archive ---- */

typedef struct archive {
    const tdm_host *host;
    tdm_out_file file;
    tdm_text directory;
    int entries;
} archive;

/* What the local header and the directory say alike. */
static void put_common(tdm_text *to, uint32_t crc, uint64_t bytes, size_t name, size_t extra) {
    put_bytes(to, 0, 2);    /* version needed */
    put_bytes(to, 0, 2);    /* flags */
    put_bytes(to, 0, 2);    /* stored */
    put_bytes(to, 0, 2);    /* time */
    put_bytes(to, 0x21, 2); /* 1980-01-01 */
    put_bytes(to, crc, 4);
    put_bytes(to, bytes, 4);
    put_bytes(to, bytes, 4);
    put_bytes(to, name, 2);
    put_bytes(to, extra, 2);
}

/* The data begins at a multiple of 64, behind padding, as torch.save has it. */
static tdm_status add_entry(archive *a, const char *entry, const void *data, size_t bytes) {
    static const char zeros[ZIP_ALIGN + 4];
    char name[64];
    const int length = snprintf(name, sizeof(name), "archive/%s", entry);
    const uint64_t at = (uint64_t)a->file.at, plain = at + ZIP_LOCAL + (size_t)length + 4;
    const size_t pad = (size_t)(tdm__round_up(plain, ZIP_ALIGN) - plain);
    const uint32_t crc = tdm__zip_crc(0, data, bytes);
    if (plain + bytes + pad > UINT32_MAX) TDM_FAIL(TDM_E_CHECKPOINT, "the file would be larger than 4 GiB");
    tdm_text head;
    tdm__text_init(&head, a->host);
    tdm__text_puts(&head, "PK\3\4");
    put_common(&head, crc, bytes, (size_t)length, pad + 4);
    tdm__text_puts(&head, name);
    tdm__text_puts(&head, "FB"); /* the kind of padding that PyTorch names */
    put_bytes(&head, pad, 2);
    tdm__text_add(&head, zeros, pad);
    tdm__text_puts(&a->directory, "PK\1\2");
    put_bytes(&a->directory, 0, 2); /* made by */
    put_common(&a->directory, crc, bytes, (size_t)length, 0);
    put_bytes(&a->directory, 0, 10); /* comment, disk, attributes: none */
    put_bytes(&a->directory, at, 4);
    tdm__text_puts(&a->directory, name);
    a->entries++;
    tdm_status status = head.failed ? TDM_E_MEMORY : tdm__out_write(&a->file, head.data, head.length);
    tdm__text_deinit(&head);
    return status == TDM_OK ? tdm__out_write(&a->file, data, bytes) : status;
}

static tdm_status add_tensor(archive *a, const tdm_tensor_file *from, int index) {
    const tdm_tensor *tensor = tdm__tensor_file_get(from, index);
    char name[32];
    void *data = NULL;
    snprintf(name, sizeof(name), "data/%d", index);
    TDM_TRY(tdm__new(a->host, &data, tensor->bytes, 1, "a tensor"));
    tdm_tensor held = *tensor;
    held.data = data;
    tdm_status status = tdm__tensor_file_read(from, tensor, data);
    if (status == TDM_OK) status = tdm__tensors_finite(&held, 1);
    if (status == TDM_OK) status = add_entry(a, name, data, tensor->bytes);
    tdm__delete(a->host, data);
    return status;
}

static tdm_status add_end(archive *a) {
    const uint64_t at = (uint64_t)a->file.at, bytes = a->directory.length;
    if (a->entries >= 0xffff || at + bytes > UINT32_MAX)
        TDM_FAIL(TDM_E_CHECKPOINT, "the file would have more than 65534 tensors, or 4 GiB");
    tdm__text_puts(&a->directory, "PK\5\6");
    put_bytes(&a->directory, 0, 4); /* disks */
    put_bytes(&a->directory, (uint64_t)a->entries, 2);
    put_bytes(&a->directory, (uint64_t)a->entries, 2);
    put_bytes(&a->directory, bytes, 4);
    put_bytes(&a->directory, at, 4);
    put_bytes(&a->directory, 0, 2); /* comment */
    if (a->directory.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the directory of the archive");
    TDM_TRY(tdm__out_write(&a->file, a->directory.data, a->directory.length));
    return tdm__out_finish(&a->file);
}

static tdm_status write_all(archive *a, const tdm_tensor_file *from, const tdm_text *pickle) {
    TDM_TRY(add_entry(a, "data.pkl", pickle->data, pickle->length));
    TDM_TRY(add_entry(a, "byteorder", "little", 6));
    for (int i = 0; i < tdm__tensor_file_count(from); i++) TDM_TRY(add_tensor(a, from, i));
    TDM_TRY(add_entry(a, "version", "3\n", 2));
    return add_end(a);
}

tdm_status tdm__torch_write(const tdm_host *host, const tdm_tensor_file *from, const char *to, tdm_text *report) {
    archive a = {.host = host, .file = {.fd = -1}};
    tdm_text pickle;
    tdm__text_init(&pickle, host);
    tdm__text_init(&a.directory, host);
    tdm_status status = make_pickle(from, &pickle);
    if (status == TDM_OK) status = tdm__out_open(&a.file, &tdm__file_system, NULL, to, 0, NULL);
    if (status == TDM_OK) status = write_all(&a, from, &pickle);
    tdm__out_discard(&a.file);
    tdm__text_deinit(&pickle);
    tdm__text_deinit(&a.directory);
    if (status == TDM_OK) tdm__text_printf(report, "%d tensors", tdm__tensor_file_count(from));
    return status;
}
