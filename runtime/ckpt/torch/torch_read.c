/* A .pt file as a file of tensors, and as a .safetensors file. A process without rights reads the archive's directory
 * and the pickle (torch_describe.c); this one checks the numbers that it answers with, and copies bytes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/ckpt/torch/torch_file.h"

typedef struct torch_source {
    tdm_zip_file file;
    const char *path; /* borrowed from the file of tensors */
    tdm_torch_answer answer;
    char *storage;       /* the last that was read: tensors that share one come one after another; NULL: none */
    uint64_t storage_at; /* in the file */
} torch_source;

/* ---- checking its answer ---- */

/* Elements of the tensor; all of them must lie in its storage, and that in the file. */
static bool check_range(const tdm_torch_tensor *tensor, uint64_t file_bytes, size_t *count, size_t *bytes) {
    const int element = tdm__dtype_find(tensor->dtype)->bits / 8;
    const tdm_zip_data *data = &tensor->data;
    size_t last = (size_t)tensor->offset, reach, storage;
    *count = 1;
    if (element < 1 || tensor->ndim < 0 || tensor->ndim > TDM_ST_MAX_RANK || tensor->offset < 0 || tensor->numel < 0)
        return false;
    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t dim = tensor->dim[i], stride = tensor->stride[i];
        if (dim < 0 || stride < 0 || !tdm__mul_fits(*count, (size_t)dim, count) ||
            !tdm__mul_fits(dim > 0 ? (size_t)dim - 1 : 0, (size_t)stride, &reach) || !tdm__add_fits(last, reach, &last))
            return false;
    }
    return tdm__mul_fits(*count, (size_t)element, bytes) && (*count == 0 || last < (size_t)tensor->numel) &&
           tdm__mul_fits((size_t)tensor->numel, (size_t)element, &storage) && storage <= data->bytes &&
           (data->deflated || data->packed == data->bytes) && data->packed <= file_bytes &&
           data->at <= file_bytes - data->packed;
}

typedef struct limits {
    const char *path;
    uint64_t file_bytes, most;
    uint64_t read, written; /* bytes so far, each at most `most` */
    const tdm_torch_tensor *last;
} limits;

/* Tensors may repeat numbers (stride 0) and share storages, but not so that a small file becomes a large one. */
enum { MOST_TIMES = 16, ALWAYS = 1024 * 1024 };

static tdm_status count_bytes(const limits *l, uint64_t *sum, uint64_t bytes) {
    if (bytes > l->most - *sum)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: its tensors take more than %d times the bytes of the file", l->path,
                 MOST_TIMES);
    *sum += bytes;
    return TDM_OK;
}

static tdm_status check_name(const limits *l, const char *name) {
    char shown[TDM_ST_PRINTABLE];
    size_t bad;
    if (tdm__text_is_utf8(name, strlen(name), &bad) && name[0] != '\0' && strcmp(name, "__metadata__") != 0)
        return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: a tensor cannot have the name '%s'", l->path, tdm__printable(shown, name));
}

static tdm_status check_tensor(limits *l, const tdm_torch_tensor *from, tdm_tensor *to) {
    const tdm_dtype_row *row = tdm__dtype_find(from->dtype);
    const tdm_zip_data *data = &from->data;
    size_t count, bytes;
    TDM_TRY(check_name(l, from->name));
    if (!check_range(from, l->file_bytes, &count, &bytes))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the tensor '%s' reaches beyond its storage", l->path, from->name);
    const size_t needed = (size_t)from->numel * (size_t)(row->bits / 8);
    if (data->deflated && data->bytes != needed)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the compressed numbers of the tensor '%s' give %llu bytes where %zu are needed",
                 l->path, from->name, (unsigned long long)data->bytes, needed);
    if (l->last == NULL || l->last->data.at != data->at) TDM_TRY(count_bytes(l, &l->read, data->bytes));
    TDM_TRY(count_bytes(l, &l->written, bytes));
    l->last = from;
    *to = (tdm_tensor){.name = from->name, .dtype = row->dtype, .ndim = from->ndim, .bytes = bytes};
    snprintf(to->dtype_name, sizeof(to->dtype_name), "%s", row->name);
    memcpy(to->dim, from->dim, sizeof(from->dim));
    return TDM_OK;
}

/* ---- numbers ---- */

/* Rows of a tensor with any strides, in the order of its indices. */
static void gather(const tdm_torch_tensor *tensor, const char *from, char *to, size_t count, size_t element) {
    int64_t index[TDM_ST_MAX_RANK] = {0};
    size_t at = (size_t)tensor->offset;
    for (size_t i = 0; i < count; i++) {
        memcpy(to + i * element, from + at * element, element);
        for (int d = tensor->ndim - 1; d >= 0; d--) {
            at += (size_t)tensor->stride[d];
            if (++index[d] < tensor->dim[d]) break;
            at -= (size_t)(tensor->stride[d] * tensor->dim[d]);
            index[d] = 0;
        }
    }
}

static tdm_status read_storage(torch_source *source, const tdm_torch_tensor *tensor) {
    const tdm_zip_data *data = &tensor->data;
    tdm__delete(source->file.host, source->storage);
    source->storage = NULL;
    source->storage_at = data->at;
    TDM_TRY(tdm__new(source->file.host, &source->storage, data->bytes, 1, "a storage"));
    const tdm_status status = tdm__zip_read(&source->file, data, source->storage);
    if (status == TDM_OK) return TDM_OK;
    tdm__delete(source->file.host, source->storage);
    source->storage = NULL;
    TDM_FAIL(status, "%s: the storage of the tensor '%s' %s", source->path, tensor->name, tdm_error_message());
}

static tdm_status read_tensor(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to) {
    torch_source *source = file->source_state;
    const tdm_torch_tensor *from = &source->answer.tensor[tensor - file->tensor];
    const size_t element = (size_t)(tdm__dtype_find(from->dtype)->bits / 8);
    if (source->storage == NULL || source->storage_at != from->data.at) TDM_TRY(read_storage(source, from));
    gather(from, source->storage, to, tensor->bytes / element, element);
    return TDM_OK;
}

/* ---- opening ---- */

static tdm_status list_tensors(tdm_tensor_file *file, const tdm_torch_answer *answer) {
    limits l = {.path = file->path, .file_bytes = file->bytes, .most = file->bytes * MOST_TIMES + ALWAYS};
    TDM_TRY(tdm__zone_new(&file->zone, &file->tensor, answer->count, sizeof(*file->tensor)));
    TDM_TRY(tdm__zone_new(&file->zone, &file->by_name, answer->count, sizeof(*file->by_name)));
    file->count = (int)answer->count;
    for (size_t i = 0; i < answer->count; i++) TDM_TRY(check_tensor(&l, &answer->tensor[i], &file->tensor[i]));
    return tdm__tensor_file_index(file);
}

static void close_source(tdm_tensor_file *file) {
    torch_source *source = file->source_state;
    tdm__zlib_close(&source->file.zlib);
    tdm__delete(file->host, source->answer.bytes);
    tdm__delete(file->host, source->storage);
    tdm__delete(file->host, source);
}

static tdm_status open_source(tdm_tensor_file *file, const char *key) {
    static const tdm_tensor_source reads_torch = {read_tensor, close_source};
    torch_source *source;
    TDM_TRY(tdm__new(file->host, &source, 1, sizeof(*source), "a file of PyTorch"));
    file->source = &reads_torch;
    file->source_state = source;
    *source = (torch_source){.file = {.host = file->host, .fd = file->fd}, .path = file->path};
    TDM_TRY(tdm__zlib_open(&source->file.zlib)); /* now: a process without rights opens nothing */
    TDM_TRY(tdm__torch_ask(&source->answer, &source->file, file->path, key));
    return list_tensors(file, &source->answer);
}

tdm_status tdm__torch_open(tdm_tensor_file **out, const tdm_host *host, const char *path, const char *key) {
    tdm_tensor_file *file;
    *out = NULL;
    TDM_EXTRA(TORCH);
    TDM_TRY(tdm__tensor_file_begin(&file, host, NULL, path));
    TDM_TRY_ELSE(open_source(file, key), tdm__tensor_file_close(file));
    *out = file;
    return TDM_OK;
}

int tdm__torch_left_out(const tdm_tensor_file *file) {
    return ((const torch_source *)file->source_state)->answer.left_out;
}

tdm_status tdm__torch_is(bool *out, const char *path) {
    char head[9] = {0};
    uint64_t bytes;
    int fd;
    TDM_TRY(tdm__file_open(&fd, &bytes, NULL, path, TDM_E_CHECKPOINT));
    const tdm_status status =
        tdm__file_read(fd, path, head, bytes < sizeof(head) ? (size_t)bytes : sizeof(head), 0, TDM_E_CHECKPOINT);
    (void)close(fd);
    *out = memcmp(head, "PK\3\4", 4) == 0 || (head[8] != '{' && tdm__torch_named(path));
    return status;
}

bool tdm__torch_named(const char *path) {
    return tdm__text_ends_in(path, ".pt") || tdm__text_ends_in(path, ".pth");
}

/* ---- to safetensors ---- */

tdm_status tdm__torch_convert(const tdm_host *host, const char *from, const char *to, const char *key,
                              tdm_text *report) {
    tdm_tensor_file *file;
    TDM_TRY(tdm__torch_open(&file, host, from, key));
    const tdm_status status = tdm__tensor_file_copy(file, to, report);
    const int left_out = tdm__torch_left_out(file);
    if (status == TDM_OK && left_out > 0)
        tdm__text_printf(report, "; %d entr%s that %s no tensor left out", left_out, left_out == 1 ? "y" : "ies",
                         left_out == 1 ? "is" : "are");
    tdm__tensor_file_close(file);
    return status;
}
