/* A file of tensors as a .pt file that torch.load(weights_only=True) takes: an archive of a pickle, protocol 2, and of
 * one storage for each tensor, as torch.save lays it out. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/ckpt/torch/torch_file.h"
#include "runtime/ckpt/torch/zip_write.h"

/* ---- the pickle ---- */

static void put_integer(tdm_text *to, int64_t value) {
    if (value >= 0 && value <= INT32_MAX) {
        tdm__zip_put_byte(to, 'J');
        tdm__zip_put(to, (uint64_t)value, 4);
        return;
    }
    tdm__zip_put_byte(to, 0x8a); /* LONG1 */
    tdm__zip_put_byte(to, 8);
    tdm__zip_put(to, (uint64_t)value, 8);
}

static void put_word(tdm_text *to, const char *word) {
    tdm__zip_put_byte(to, 'X');
    tdm__zip_put(to, strlen(word), 4);
    tdm__text_puts(to, word);
}

static void put_dimensions(tdm_text *to, const int64_t *values, int count) {
    tdm__zip_put_byte(to, '(');
    for (int i = 0; i < count; i++) put_integer(to, values[i]);
    tdm__zip_put_byte(to, 't');
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
    tdm__zip_put_byte(to, 0x89); /* requires_grad */
    tdm__text_puts(to, "ccollections\nOrderedDict\n)RtR");
}

static const tdm_torch_type *type_of(const tdm_tensor *tensor) {
    const tdm_torch_type *type = tdm__torch_types;
    while (type->storage != NULL && strcmp(type->dtype, tensor->dtype_name) != 0) type++;
    return type;
}

static tdm_status make_pickle(const tdm_tensor_file *from, tdm_text *to) {
    tdm__zip_put_byte(to, 0x80);
    tdm__zip_put_byte(to, 2);
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

static tdm_status add_tensor(tdm_zip_out *a, const tdm_tensor_file *from, int index) {
    const tdm_tensor *tensor = tdm__tensor_file_get(from, index);
    char name[32];
    void *data = NULL;
    snprintf(name, sizeof(name), "data/%d", index);
    TDM_TRY(tdm__new(a->host, &data, tensor->bytes, 1, "a tensor"));
    tdm_tensor held = *tensor;
    held.data = data;
    tdm_status status = tdm__tensor_file_read(from, tensor, data);
    if (status == TDM_OK) status = tdm__tensors_finite(&held, 1);
    if (status == TDM_OK) status = tdm__zip_add(a, name, data, tensor->bytes);
    tdm__delete(a->host, data);
    return status;
}

static tdm_status write_all(tdm_zip_out *a, const tdm_tensor_file *from, const tdm_text *pickle) {
    TDM_TRY(tdm__zip_add(a, "data.pkl", pickle->data, pickle->length));
    TDM_TRY(tdm__zip_add(a, "byteorder", "little", 6));
    for (int i = 0; i < tdm__tensor_file_count(from); i++) TDM_TRY(add_tensor(a, from, i));
    TDM_TRY(tdm__zip_add(a, "version", "3\n", 2));
    return tdm__zip_end(a);
}

tdm_status tdm__torch_write(const tdm_host *host, const tdm_tensor_file *from, const char *to, tdm_text *report) {
    TDM_EXTRA(TORCH);
    tdm_zip_out a = {.host = host, .file = {.fd = -1}, .wide_from = UINT32_MAX};
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
