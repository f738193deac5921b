/* Tensor files from hostile hands: nothing crashes, and what is accepted keeps the rules of the format: unique names,
 * the data covered from its first to its last byte, shapes that make exactly the bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdio.h>

#include "runtime/ckpt/tensor_file.h"

#define MUST(condition)                                  \
    do {                                                 \
        if (!(condition)) {                              \
            fprintf(stderr, "broken: %s\n", #condition); \
            abort();                                     \
        }                                                \
    } while (0)

static void check_accepted(const tdm_tensor_file *file, uint64_t size) {
    uint64_t end = 8 + file->header_bytes;
    for (int i = 0; i < tdm__tensor_file_count(file); i++) {
        const tdm_tensor *tensor = tdm__tensor_file_get(file, i);
        const tdm_dtype_row *row = tdm__dtype_find(tensor->dtype_name);
        uint64_t bits = (uint64_t)row->bits;
        for (int k = 0; k < tensor->ndim; k++) bits *= (uint64_t)tensor->dim[k];
        MUST(row->dtype == tensor->dtype && bits == 8 * (uint64_t)tensor->bytes);
        MUST(tensor->file_offset == end);
        MUST(tdm__tensor_file_find(file, tensor->name) == tensor);
        end += tensor->bytes;
        char *bytes = malloc(tensor->bytes + 1);
        MUST(tdm__tensor_file_read(file, tensor, bytes) == TDM_OK);
        free(bytes);
    }
    MUST(end == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The header's length is put right, so that the fuzzer need not find it: the first byte says where the JSON ends. */
static size_t make_file(const uint8_t *data, size_t size, uint8_t *out) {
    size_t json = size < 1 ? 0 : size - 1, tail = size < 1 ? 0 : data[0] % 64;
    if (tail > json) tail = json;
    uint64_t length = json - tail;
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(length >> (8 * i));
    if (json > 0) memcpy(out + 8, data + 1, json);
    return 8 + json;
}

static void open_one(int fd, const char *path, const uint8_t *bytes, size_t size) {
    tdm_tensor_file *file, *in_memory;
    int stripped;
    MUST(ftruncate(fd, (off_t)size) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    tdm_status status = tdm__tensor_file_open(&file, tdm_host_default(), NULL, path);
    MUST(status == TDM_OK || status == TDM_E_CHECKPOINT);
    MUST((status == TDM_OK) == (file != NULL));
    /* In memory it is the same file. */
    MUST(tdm__tensor_file_open_memory(&in_memory, tdm_host_default(), bytes, size, path) == status);
    if (in_memory != NULL) check_accepted(in_memory, size);
    tdm__tensor_file_close(in_memory);
    if (file == NULL) return;
    check_accepted(file, size);
    tdm__tensor_file_strip(file, &stripped);
    tdm__tensor_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1; /* made once: the kernel takes its time for that */
    char path[64];
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    uint8_t *made = malloc(size + 16);
    MUST(fd >= 0 && made != NULL);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    open_one(fd, path, data, size);
    open_one(fd, path, made, make_file(data, size, made));
    free(made);
    return 0;
}
