/* What a .pt file holds, as a process without rights reads it from the archive's directory and the pickle. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/confined.h"
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
                 pickle == NULL ? "it was not written by torch.save: it has no data.pkl"
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
    tdm_zip_file file = *t->file;
    file.host = tdm__confined_host();
    tdm_torch_list list = {.host = file.host};
    answer head = {.why = ""};
    (void)tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "not read yet"); /* forgets what the parent met */
    if (!tdm__torch_describe(&list, &file, t->key, head.why)) {
        list.count = 0;
        head.lacks_memory = tdm_error_last()->status == TDM_E_MEMORY;
    }
    head.count = list.count;
    head.left_out = list.left_out;
    return !tdm__confined_write(out, &head, sizeof(head)) ||
           !tdm__confined_write(out, list.tensor, list.count * sizeof(*list.tensor));
}

/* ---- in this one ---- */

static tdm_status take_answer(tdm_torch_answer *out, size_t count, const char *path) {
    answer head = {.why = ""};
    if (count >= sizeof(head)) memcpy(&head, out->bytes, sizeof(head));
    head.why[sizeof(head.why) - 1] = '\0';
    if (head.why[0] != '\0') TDM_FAIL(head.lacks_memory ? TDM_E_MEMORY : TDM_E_CHECKPOINT, "%s: %s", path, head.why);
    out->tensor = (void *)((char *)out->bytes + sizeof(head));
    out->count = head.count;
    out->left_out = head.left_out;
    if (count < sizeof(head) || head.count == 0 || head.count != (count - sizeof(head)) / sizeof(*out->tensor))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: it holds no tensors", path);
    for (size_t i = 0; i < out->count; i++) {
        out->tensor[i].name[TDM_ST_MAX_NAME] = '\0';
        out->tensor[i].dtype[sizeof(out->tensor[i].dtype) - 1] = '\0';
    }
    return TDM_OK;
}

tdm_status tdm__torch_ask(tdm_torch_answer *out, const tdm_zip_file *file, const char *path, const char *key) {
    task t = {file, key};
    size_t count = 0;
    *out = (tdm_torch_answer){.bytes = NULL};
    tdm_status status =
        tdm__confined_run(file->host, describe_confined, &t,
                          sizeof(answer) + TDM_ST_MAX_TENSORS * sizeof(tdm_torch_tensor), &out->bytes, &count);
    if (status == TDM_E_CHECKPOINT || status == TDM_E_IO) TDM_FAIL(status, "%s: %s", path, tdm_error_message());
    TDM_TRY(status);
    status = take_answer(out, count, path);
    if (status == TDM_OK) return TDM_OK;
    tdm__delete(file->host, out->bytes);
    *out = (tdm_torch_answer){.bytes = NULL};
    return status;
}
