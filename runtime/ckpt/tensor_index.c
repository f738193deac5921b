/* The tensors of a file by name. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"

static tdm_tensor_name entry_of(const tdm_tensor *tensor) {
    return (tdm_tensor_name){tdm__hash64(tensor->name, strlen(tensor->name), 0), tensor};
}

static int order_name(const void *a, const void *b) {
    const tdm_tensor_name *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return strcmp(x->tensor->name, y->tensor->name);
}

tdm_status tdm__tensor_file_index(tdm_tensor_file *file) {
    char name[TDM_ST_PRINTABLE];
    for (int i = 0; i < file->count; i++) file->by_name[i] = entry_of(&file->tensor[i]);
    if (file->count > 1) qsort(file->by_name, (size_t)file->count, sizeof(*file->by_name), order_name);
    for (int i = 1; i < file->count; i++) {
        if (order_name(&file->by_name[i - 1], &file->by_name[i]) == 0)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s': the name appears twice", file->path,
                     tdm__printable(name, file->by_name[i].tensor->name));
    }
    return TDM_OK;
}

const tdm_tensor *tdm__tensor_file_find(const tdm_tensor_file *file, const char *name) {
    if (file->count == 0) return NULL;
    const tdm_tensor tensor = {.name = name};
    const tdm_tensor_name key = entry_of(&tensor), *found = bsearch(&key, file->by_name, (size_t)file->count,
                                                                    sizeof(*file->by_name), order_name);
    return found == NULL ? NULL : found->tensor;
}
