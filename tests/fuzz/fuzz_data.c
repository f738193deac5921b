/* libFuzzer: the files of data sets. Byte 0 chooses the format and which of its two files is hostile, byte 1 what is
 * wanted of it; the rest is the file. */
#include <sys/mman.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>

#include "runtime/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const unsigned char good_images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
static const unsigned char good_labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 1};

/* The bytes as a regular file without a name, the first or the second: each is made once, since the kernel takes its
 * time for that. `path` has room for 32 characters. */
static void put_file(int which, char *path, const void *bytes, size_t count) {
    static int fds[2] = {-1, -1};
    int *fd = &fds[which];
    if (*fd < 0) *fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)count) != 0 || pwrite(*fd, bytes, count, 0) != (ssize_t)count) {
        perror("memfd");
        abort();
    }
    snprintf(path, 32, "/proc/self/fd/%d", *fd);
}

static void read_all(const tdm_dataset *dataset) {
    static float x[1 << 16], target[1 << 16];
    size_t elements = 1;
    for (int i = 0; i < dataset->x_shape.ndim; i++) elements *= (size_t)dataset->x_shape.dim[i];
    if (elements > sizeof(x) / sizeof(x[0]) || dataset->target_width > 1 << 16) return;
    for (int64_t i = 0; i < dataset->count && i < 1000; i++) {
        if (dataset->ops->read(dataset, i, x, target) != TDM_OK) __builtin_trap(); /* it was checked at open */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 2) return 0;
    char hostile[32], good[32];
    bool is_second = (bytes[0] & 4) != 0;
    put_file(0, hostile, bytes + 2, count - 2);
    put_file(1, good, is_second ? good_images : good_labels, is_second ? sizeof(good_images) : sizeof(good_labels));
    tdm_data_spec spec = {.format = TDM_DATA_IDX + bytes[0] % 3};
    spec.images = is_second ? good : hostile;
    spec.labels = is_second ? hostile : good;
    spec.x = spec.y = hostile; /* labels and samples of one file: an array of integers, or of floats, is both */
    spec.files = (tdm_texts){1, {hostile}};
    tdm_data_wanted wanted = {.classes = bytes[1] & 15, .ignore_index = -100};
    if ((bytes[1] & 16) != 0) wanted.target_kind = TDM_TARGET_VALUES;
    if ((bytes[1] & 32) != 0) wanted.input = (tdm_shape){3, {1, 2, 2}};
    tdm_dataset *dataset = NULL;
    if (tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted) == TDM_OK) read_all(dataset);
    tdm__dataset_close(dataset);
    return 0;
}
