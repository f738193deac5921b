/* PyTorch's files from hostile hands: nothing crashes, what is described is bounded, and no storage gives more bytes
 * than its entry says. The bytes come as a whole archive, and as a pickle alone, so that the fuzzer need not find an
 * archive's sums. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/ckpt/torch/torch_file.h"

#define MUST(condition)                                  \
    do {                                                 \
        if (!(condition)) {                              \
            fprintf(stderr, "broken: %s\n", #condition); \
            abort();                                     \
        }                                                \
    } while (0)

/* The memory has no byte too many, so that the sanitizer sees one that is written. */
static void read_storages(const tdm_zip_file *file, const tdm_torch_list *list, size_t size) {
    enum { MOST = 1 << 20 };
    size_t sum = 0;
    for (size_t i = 0; i < list->count; i++) {
        const tdm_zip_data *data = &list->tensor[i].data;
        MUST(data->at <= size && data->packed <= size - data->at && data->bytes / TDM_ZIP_EXPANDS <= data->packed);
        if ((sum += data->bytes) > MOST) return;
        void *bytes = malloc(data->bytes);
        (void)tdm__zip_read(file, data, bytes);
        free(bytes);
    }
}

static void check(const tdm_torch_list *list, bool good, const char *why) {
    MUST(good == (why[0] == '\0') && strlen(why) < TDM_TORCH_WHY);
    MUST(list->count <= TDM_ST_MAX_TENSORS);
    for (size_t i = 0; i < list->count; i++) {
        const tdm_torch_tensor *tensor = &list->tensor[i];
        MUST(strlen(tensor->name) <= TDM_ST_MAX_NAME && strlen(tensor->key) < sizeof(tensor->key));
        MUST(tensor->ndim >= 0 && tensor->ndim <= TDM_ST_MAX_RANK && tdm__dtype_find(tensor->dtype)->bits > 0);
        for (int d = 0; d < tensor->ndim; d++) MUST(tensor->dim[d] >= 0 && tensor->stride[d] >= 0);
    }
    tdm__delete(list->host, list->tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static tdm_zip_file file = {.fd = -1}; /* made once: the kernel takes its time for that */
    char why[TDM_TORCH_WHY] = "";
    if (file.fd < 0) {
        file = (tdm_zip_file){.host = tdm_host_default(), .fd = memfd_create("fuzz", MFD_CLOEXEC)};
        MUST(tdm__zlib_open(&file.zlib) == TDM_OK && file.zlib.handle != NULL);
    }
    MUST(file.fd >= 0 && ftruncate(file.fd, (off_t)size) == 0 && pwrite(file.fd, data, size, 0) == (ssize_t)size);
    tdm_torch_list whole = {.host = tdm_host_default()}, pickle = {.host = tdm_host_default()};
    const bool opened = tdm__torch_describe(&whole, &file, NULL, why);
    if (opened) read_storages(&file, &whole, size);
    check(&whole, opened, why);
    why[0] = '\0';
    const bool followed = tdm__pickle_read(&pickle, data, size, NULL, why);
    check(&pickle, followed, why);
    return 0;
}
