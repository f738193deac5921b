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

static bool read_at(int fd, void *to, size_t count, uint64_t at) {
    size_t got = 0;
    while (got < count) {
        const ssize_t n = pread(fd, (char *)to + got, count - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

/* ---- in the process without rights ---- */

static bool find_storages(tdm_torch_list *list, const tdm_zip *zip, char why[TDM_TORCH_WHY]) {
    for (size_t i = 0; i < list->count; i++) {
        tdm_torch_tensor *tensor = &list->tensor[i];
        const tdm_zip_entry *entry = tdm__zip_find(zip, "data/", tensor->key);
        if (entry == NULL) {
            snprintf(why, TDM_TORCH_WHY, "it lacks the numbers of the tensor '%.100s'", tensor->name);
            return false;
        }
        tensor->at = entry->at;
        tensor->bytes = entry->bytes;
        tensor->crc = entry->crc;
    }
    return true;
}

static bool describe(tdm_torch_list *out, const tdm_zip *zip, const char *key, char why[TDM_TORCH_WHY]) {
    const tdm_zip_entry *pickle = tdm__zip_find(zip, "", "data.pkl"), *order = tdm__zip_find(zip, "", "byteorder");
    uint8_t *bytes = NULL;
    char first = 'l';
    if (order != NULL && order->bytes > 0 && read_at(zip->fd, &first, 1, order->at) && first != 'l') {
        snprintf(why, TDM_TORCH_WHY, "its numbers are big-endian");
        return false;
    }
    if (pickle == NULL || pickle->bytes > TDM_TORCH_PICKLE) {
        snprintf(why, TDM_TORCH_WHY,
                 pickle == NULL ? "it is no file of torch.save: it has no data.pkl"
                                : "its pickle is larger than 64 MiB");
        return false;
    }
    if (tdm__new(out->host, &bytes, pickle->bytes, 1, "a pickle") != TDM_OK) {
        snprintf(why, TDM_TORCH_WHY, "out of memory for its pickle");
        return false;
    }
    bool good = read_at(zip->fd, bytes, pickle->bytes, pickle->at);
    if (!good) snprintf(why, TDM_TORCH_WHY, "it cannot be read");
    good = good && tdm__pickle_read(out, bytes, pickle->bytes, key, why) && find_storages(out, zip, why);
    tdm__delete(out->host, bytes);
    return good;
}

bool tdm__torch_describe(tdm_torch_list *out, int fd, const char *key, char why[TDM_TORCH_WHY]) {
    tdm_zip zip;
    if (!tdm__zip_open(&zip, out->host, fd, why)) return false;
    const bool good = describe(out, &zip, key, why);
    tdm__zip_close(&zip, out->host);
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
    const tdm_host *host;
    int fd;
    const char *key;
} task;

static int describe_confined(void *user, int out) {
    const task *t = user;
    tdm_torch_list list = {.host = t->host};
    answer head = {.why = ""};
    (void)tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "not read yet"); /* forgets what the parent met */
    if (!tdm__torch_describe(&list, t->fd, t->key, head.why)) {
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
           tdm__mul_fits((size_t)tensor->numel, (size_t)element, &storage) && storage <= tensor->bytes &&
           tensor->bytes <= file_bytes && tensor->at <= file_bytes - tensor->bytes;
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

static tdm_status read_tensor(const tdm_host *host, int fd, const char *path, const tdm_torch_tensor *from,
                              storage *last, uint64_t file_bytes, tdm_tensor *to) {
    size_t count, bytes;
    char *data = NULL;
    if (!check_range(from, file_bytes, &count, &bytes))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the tensor '%s' reaches beyond its storage", path, from->name);
    if (last->bytes == NULL || last->at != from->at) {
        tdm__delete(host, last->bytes);
        last->bytes = NULL;
        TDM_TRY(count_bytes(&last->read, from->bytes, last, path));
        TDM_TRY(tdm__new(host, &last->bytes, from->bytes, 1, "a storage"));
        last->at = from->at;
        if (!read_at(fd, last->bytes, from->bytes, from->at)) TDM_FAIL(TDM_E_IO, "%s cannot be read", path);
        if (tdm__zip_crc(0, last->bytes, from->bytes) != from->crc)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: the numbers of the tensor '%s' are damaged", path, from->name);
    }
    TDM_TRY(count_bytes(&last->written, bytes, last, path));
    TDM_TRY(tdm__new(host, &data, bytes, 1, "a tensor"));
    if (count > 0) gather(from, last->bytes, data, count, bytes / count);
    const tdm_dtype_row *row = tdm__dtype_find(from->dtype);
    *to = (tdm_tensor){.name = from->name, .dtype = row->dtype, .ndim = from->ndim, .bytes = bytes, .data = data};
    snprintf(to->dtype_name, sizeof(to->dtype_name), "%s", row->name);
    memcpy(to->dim, from->dim, sizeof(from->dim));
    return TDM_OK;
}

static tdm_status read_tensors(const tdm_host *host, int fd, const char *path, const tdm_torch_tensor *from,
                               size_t count, tdm_tensor *to) {
    storage last = {.bytes = NULL};
    struct stat info;
    tdm_status status = TDM_OK;
    if (fstat(fd, &info) != 0) TDM_FAIL(TDM_E_IO, "%s cannot be read: %s", path, strerror(errno));
    last.most = (uint64_t)info.st_size * MOST_TIMES + ALWAYS;
    for (size_t i = 0; status == TDM_OK && i < count; i++)
        status = read_tensor(host, fd, path, &from[i], &last, (uint64_t)info.st_size, &to[i]);
    tdm__delete(host, last.bytes);
    return status;
}

static tdm_status write_tensors(const tdm_host *host, int fd, const char *path, const tdm_torch_tensor *from,
                                size_t count, const char *to) {
    static const char *const metadata[] = {"format", "pt", NULL};
    tdm_tensor *tensors = NULL;
    TDM_TRY(tdm__new(host, &tensors, count, sizeof(*tensors), "tensors"));
    tdm_status status = read_tensors(host, fd, path, from, count, tensors);
    if (status == TDM_OK)
        status =
            tdm__tensor_file_write(host, &tdm__file_system, NULL, to, tensors, (int)count, metadata, NULL, NULL, NULL);
    for (size_t i = 0; i < count; i++) tdm__delete(host, (void *)(uintptr_t)tensors[i].data);
    tdm__delete(host, tensors);
    return status;
}

static tdm_status convert(const tdm_host *host, int fd, const char *from, const char *to, const char *key,
                          tdm_text *report) {
    task t = {host, fd, key};
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
    if (status == TDM_OK) status = write_tensors(host, fd, from, tensors, head.count, to);
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
    const int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (fd < 0) TDM_FAIL(TDM_E_CHECKPOINT, "%s cannot be opened: %s", from, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        TDM_FAIL(TDM_E_CHECKPOINT, "%s is no regular file", from);
    }
    tdm_status status = convert(host, fd, from, to, key, report);
    (void)close(fd);
    return status;
}
