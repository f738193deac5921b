/* libFuzzer: the files of data sets. Byte 0 chooses the format; its highest bit says that the second of two files is
 * the hostile one. Byte 1 says what is wanted of the data. The rest is the file. */
#include <sys/mman.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>

#include "runtime/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const unsigned char good_images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
static const unsigned char good_labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 1};

/* The formats that are read from files: those built in but the two that are computed. `run` takes them in this order.
 */
enum { COMPUTED = 1u << TDM_DATA_SYNTHETIC | 1u << TDM_DATA_GLYPHS };
static const int built_in[] = {
#define FORMAT_BUILT_IN(key) TDM_DATA_##key,
#define FORMAT_RESERVED(key)
#define TDM_FORMAT(key, name, source) FORMAT_##source(key)
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
};
enum { BUILT_IN_COUNT = sizeof(built_in) / sizeof(built_in[0]) };

static int format_of(unsigned choice) {
    int formats[BUILT_IN_COUNT];
    unsigned count = 0;
    for (size_t i = 0; i < BUILT_IN_COUNT; i++)
        if ((COMPUTED & 1u << built_in[i]) == 0) formats[count++] = built_in[i];
    return formats[choice % count];
}

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
        if (tdm__dataset_read(dataset, i, x, target) != TDM_OK) __builtin_trap(); /* it was checked at open */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 2) return 0;
    char hostile[32], good[32];
    bool is_second = (bytes[0] & 128) != 0;
    put_file(0, hostile, bytes + 2, count - 2);
    put_file(1, good, is_second ? good_images : good_labels, is_second ? sizeof(good_images) : sizeof(good_labels));
    tdm_data_spec spec = {.format = format_of(bytes[0] & 127u)};
    spec.images = is_second ? good : hostile;
    spec.labels = is_second ? hostile : good;
    spec.x = spec.y = hostile; /* labels and samples of one file: an array of integers, or of floats, is both */
    spec.files = (tdm_texts){1, {hostile}};
    spec.path = hostile;
    spec.seed = 1;
    spec.holdout = (bytes[1] & 64) != 0 ? 0.5 : 0.0;
    tdm_data_wanted wanted = {.classes = bytes[1] & 15, .ignore_index = -100};
    if ((bytes[1] & 16) != 0) wanted.target_kind = TDM_TARGET_VALUES;
    if ((bytes[1] & 32) != 0) wanted.input = (tdm_shape){3, {1, 2, 2}};
    tdm_dataset *dataset = NULL;
    if (tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted) == TDM_OK) read_all(dataset);
    tdm__dataset_close(dataset);
    return 0;
}
