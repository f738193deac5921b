/* A .pt file into a .safetensors file. A process without rights reads the archive's directory and the pickle; this one
 * checks the numbers that it answers with, and copies bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/confined.h"
#include "runtime/base/system/file.h"
#include "runtime/ckpt/torch/torch_file.h"

/* ---- in the process without rights ---- */

static bool find_storages(tdm_torch_list *list, const tdm_zip *zip, char why[TDM_TORCH_WHY]) {
    for (size_t i = 0; i < list->count; i++) {
        tdm_torch_tensor *tensor = &list->tensor[i];
        const tdm_zip_entry *entry = tdm__zip_find(zip, "data/", tensor->key);
        if (entry == NULL) {
            snprintf(why, TDM_TORCH_WHY, "it lacks the numbers of the tensor '%.100s'", tensor->name);
            return false;
        }
        tensor->data = entry->data;
    }
    return true;
}

static bool read_entry(const tdm_zip *zip, const tdm_zip_entry *entry, const char *what, void *to, char *why) {
    if (tdm__zip_read(zip->file, &entry->data, to) == TDM_OK) return true;
    snprintf(why, TDM_TORCH_WHY, "its %s %.300s", what, tdm_error_message());
    return false;
}

/* Numbers are little-endian unless an entry says otherwise. */
static bool check_order(const tdm_zip *zip, char why[TDM_TORCH_WHY]) {
    const tdm_zip_entry *order = tdm__zip_find(zip, "", "byteorder");
    char word[16] = "l";
    if (order == NULL) return true;
    if (order->data.bytes <= sizeof(word) && !read_entry(zip, order, "entry 'byteorder'", word, why)) return false;
    if (order->data.bytes <= sizeof(word) && word[0] == 'l') return true;
    snprintf(why, TDM_TORCH_WHY, "its numbers are not little-endian");
    return false;
}

static bool describe(tdm_torch_list *out, const tdm_zip *zip, const char *key, char why[TDM_TORCH_WHY]) {
    const tdm_zip_entry *pickle = tdm__zip_find(zip, "", "data.pkl");
    uint8_t *bytes = NULL;
    if (!check_order(zip, why)) return false;
    if (pickle == NULL || pickle->data.bytes > TDM_TORCH_PICKLE) {
        snprintf(why, TDM_TORCH_WHY,
                 pickle == NULL ? "it is no file of torch.save: it has no data.pkl"
                                : "its pickle is larger than 64 MiB");
        return false;
    }
    if (tdm__new(out->host, &bytes, pickle->data.bytes, 1, "a pickle") != TDM_OK) {
        snprintf(why, TDM_TORCH_WHY, "out of memory for its pickle");
        return false;
    }
    const bool good = read_entry(zip, pickle, "pickle", bytes, why) &&
                      tdm__pickle_read(out, bytes, pickle->data.bytes, key, why) && find_storages(out, zip, why);
    tdm__delete(out->host, bytes);
    return good;
}

bool tdm__torch_describe(tdm_torch_list *out, const tdm_zip_file *file, const char *key, char why[TDM_TORCH_WHY]) {
    tdm_zip zip;
    if (!tdm__zip_open(&zip, file, why)) return false;
    const bool good = describe(out, &zip, key, why);
    tdm__zip_close(&zip);
    return good;
}

/* What the process answers with: this, then the tensors. */
typedef struct answer {
    char why[TDM_TORCH_WHY]; /* "": none */
    uint64_t count;
    int left_out;
    bool lacks_memory; /* `why` is that */
} answer;

typedef struct task {
    const tdm_zip_file *file;
    const char *key;
} task;

static int describe_confined(void *user, int out) {
    const task *t = user;
    tdm_torch_list list = {.host = t->file->host};
    answer head = {.why = ""};
    (void)tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "not read yet"); /* forgets what the parent met */
    if (!tdm__torch_describe(&list, t->file, t->key, head.why)) {
        list.count = 0;
        head.lacks_memory = tdm_error_last()->status == TDM_E_MEMORY;
    }
    head.count = list.count;
    head.left_out = list.left_out;
    return !tdm__confined_write(out, &head, sizeof(head)) ||
           !tdm__confined_write(out, list.tensor, list.count * sizeof(*list.tensor));
}

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

/* ---- numbers ---- */

typedef struct storage {
    char *bytes; /* of the last tensor that was read: tensors that share one come one after another */
    uint64_t at;
    uint64_t read, written, most; /* bytes so far, and the limit of each */
} storage;

/* Tensors may repeat numbers (stride 0) and share storages, but not so that a small file becomes a large one. */
enum { MOST_TIMES = 16, ALWAYS = 1024 * 1024 };

static tdm_status count_bytes(uint64_t *sum, uint64_t bytes, const storage *s, const char *path) {
    if (bytes > s->most - *sum)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: its tensors take more than %d times the bytes of the file", path, MOST_TIMES);
    *sum += bytes;
    return TDM_OK;
}

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

/* The file that is read. */
typedef struct source {
    tdm_zip_file file;
    const char *path;
    uint64_t bytes;
} source;

static tdm_status read_storage(const source *s, const tdm_torch_tensor *tensor, storage *last) {
    const size_t needed = (size_t)tensor->numel * (size_t)(tdm__dtype_find(tensor->dtype)->bits / 8);
    const tdm_zip_data *data = &tensor->data;
    if (data->deflated && data->bytes != needed)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the compressed numbers of the tensor '%s' give %llu bytes where %zu are needed",
                 s->path, tensor->name, (unsigned long long)data->bytes, needed);
    tdm__delete(s->file.host, last->bytes);
    last->bytes = NULL;
    TDM_TRY(count_bytes(&last->read, data->bytes, last, s->path));
    TDM_TRY(tdm__new(s->file.host, &last->bytes, data->bytes, 1, "a storage"));
    last->at = data->at;
    const tdm_status status = tdm__zip_read(&s->file, data, last->bytes);
    if (status != TDM_OK)
        TDM_FAIL(status, "%s: the storage of the tensor '%s' %s", s->path, tensor->name, tdm_error_message());
    return TDM_OK;
}

static tdm_status read_tensor(const source *s, const tdm_torch_tensor *from, storage *last, tdm_tensor *to) {
    size_t count, bytes;
    char *data = NULL;
    if (!check_range(from, s->bytes, &count, &bytes))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the tensor '%s' reaches beyond its storage", s->path, from->name);
    if (last->bytes == NULL || last->at != from->data.at) TDM_TRY(read_storage(s, from, last));
    TDM_TRY(count_bytes(&last->written, bytes, last, s->path));
    TDM_TRY(tdm__new(s->file.host, &data, bytes, 1, "a tensor"));
    if (count > 0) gather(from, last->bytes, data, count, bytes / count);
    const tdm_dtype_row *row = tdm__dtype_find(from->dtype);
    *to = (tdm_tensor){.name = from->name, .dtype = row->dtype, .ndim = from->ndim, .bytes = bytes, .data = data};
    snprintf(to->dtype_name, sizeof(to->dtype_name), "%s", row->name);
    memcpy(to->dim, from->dim, sizeof(from->dim));
    return TDM_OK;
}

static tdm_status read_tensors(const source *s, const tdm_torch_tensor *from, size_t count, tdm_tensor *to) {
    storage last = {.most = s->bytes * MOST_TIMES + ALWAYS};
    tdm_status status = TDM_OK;
    for (size_t i = 0; status == TDM_OK && i < count; i++) status = read_tensor(s, &from[i], &last, &to[i]);
    tdm__delete(s->file.host, last.bytes);
    return status;
}

static tdm_status write_tensors(const source *s, const tdm_torch_tensor *from, size_t count, const char *to) {
    static const char *const metadata[] = {"format", "pt", NULL};
    const tdm_host *host = s->file.host;
    tdm_tensor *tensors = NULL;
    TDM_TRY(tdm__new(host, &tensors, count, sizeof(*tensors), "tensors"));
    tdm_status status = read_tensors(s, from, count, tensors);
    if (status == TDM_OK)
        status =
            tdm__tensor_file_write(host, &tdm__file_system, NULL, to, tensors, (int)count, metadata, NULL, NULL, NULL);
    for (size_t i = 0; i < count; i++) tdm__delete(host, (void *)(uintptr_t)tensors[i].data);
    tdm__delete(host, tensors);
    return status;
}

static tdm_status convert(const source *s, const char *to, const char *key, tdm_text *report) {
    const tdm_host *host = s->file.host;
    const char *from = s->path;
    task t = {&s->file, key};
    void *bytes = NULL;
    size_t count = 0;
    tdm_status status = tdm__confined_run(
        host, describe_confined, &t, sizeof(answer) + TDM_ST_MAX_TENSORS * sizeof(tdm_torch_tensor), &bytes, &count);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL(status, "%s: %s", from, tdm_error_message());
    TDM_TRY(status);
    answer head = {.why = ""};
    if (count >= sizeof(head)) memcpy(&head, bytes, sizeof(head));
    head.why[sizeof(head.why) - 1] = '\0';
    tdm_torch_tensor *tensors = (void *)((char *)bytes + sizeof(head));
    if (head.why[0] != '\0')
        status = tdm__fail(head.lacks_memory ? TDM_E_MEMORY : TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "%s: %s",
                           from, head.why);
    else if (count < sizeof(head) || head.count == 0 || head.count != (count - sizeof(head)) / sizeof(*tensors))
        status = tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "%s: it holds no tensors", from);
    for (size_t i = 0; status == TDM_OK && i < head.count; i++) {
        tensors[i].name[TDM_ST_MAX_NAME] = '\0';
        tensors[i].dtype[sizeof(tensors[i].dtype) - 1] = '\0';
    }
    if (status == TDM_OK) status = write_tensors(s, tensors, head.count, to);
    if (status == TDM_OK) {
        tdm__text_printf(report, "%llu tensors", (unsigned long long)head.count);
        if (head.left_out > 0)
            tdm__text_printf(report, "; %d entr%s that %s no tensor left out", head.left_out,
                             head.left_out == 1 ? "y" : "ies", head.left_out == 1 ? "is" : "are");
    }
    tdm__delete(host, bytes);
    return status;
}

tdm_status tdm__torch_read(const tdm_host *host, const char *from, const char *to, const char *key, tdm_text *report) {
    source s = {.file = {.host = host, .fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK)}, .path = from};
    struct stat info;
    if (s.file.fd < 0) TDM_FAIL(TDM_E_CHECKPOINT, "%s cannot be opened: %s", from, strerror(errno));
    if (fstat(s.file.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(s.file.fd);
        TDM_FAIL(TDM_E_CHECKPOINT, "%s is no regular file", from);
    }
    s.bytes = (uint64_t)info.st_size;
    tdm_status status = tdm__zlib_open(&s.file.zlib); /* now: a process without rights opens nothing */
    if (status == TDM_OK) status = convert(&s, to, key, report);
    tdm__zlib_close(&s.file.zlib);
    (void)close(s.file.fd);
    return status;
}
