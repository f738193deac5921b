/* libFuzzer: the files of data sets. Byte 0 chooses the format; its highest bit says that the second of two files is
 * the hostile one, of npy that it is that of two inputs, and of csv that it is read by what another table taught. Byte
 * 1 says what is wanted of the data; of csv, byte 2 has its keys. The rest is the file. */
#include <sys/mman.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>

#include "runtime/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const unsigned char good_images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
static const unsigned char good_labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 1};
static const char good_table[] = "city,size,rooms,kind\nRome,10,3,flat\nBern,25.5,,house\n";

/* Formats that are read from files, in the order in which `run` numbers them. */
enum { COMPUTED = 1u << TDM_DATA_SYNTHETIC | 1u << TDM_DATA_GLYPHS };
static const int all_formats[] = {
#define TDM_FORMAT(key, name) TDM_DATA_##key,
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
};
enum { FORMAT_COUNT = sizeof(all_formats) / sizeof(all_formats[0]) };

static int format_of(unsigned choice) {
    int formats[FORMAT_COUNT];
    unsigned count = 0;
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if ((COMPUTED & 1u << all_formats[i]) == 0) formats[count++] = all_formats[i];
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

/* `run` writes the seeds' keys by these. */
enum {
    CATEGORIES = 1,
    MEAN = 2,
    ZERO = 4,
    UNKNOWN = 8,
    STANDARDIZE = 16,
    STANDARDIZE_TARGET = 32,
    WITHOUT_NAMES = 64,
    WITHOUT_TARGETS = 128
};

static void take_keys(tdm_data_spec *spec, unsigned keys) {
    if ((keys & CATEGORIES) != 0) spec->categories = (tdm_texts){1, {"0"}};
    if ((keys & MEAN) != 0) spec->missing = TDM_MISSING_MEAN;
    if ((keys & ZERO) != 0) spec->missing = TDM_MISSING_ZERO;
    if ((keys & UNKNOWN) != 0) spec->unseen = TDM_UNSEEN_UNKNOWN;
    if ((keys & WITHOUT_NAMES) != 0) spec->header = TDM_CSV_HEADER_NO;
    spec->standardize = (keys & STANDARDIZE) != 0;
    spec->standardize_target = (keys & STANDARDIZE_TARGET) != 0;
}

/* Opens the table that is no hostile one, and has the other read by what it taught. NULL: it cannot be read so. */
static tdm_dataset *open_good(const char *path, const tdm_data_spec *spec, tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    tdm_data_spec good = *spec;
    good.path = path;
    good.holdout = 0.0;
    if (tdm__dataset_open(&dataset, tdm_host_default(), &good, wanted) != TDM_OK) return NULL;
    wanted->features = dataset->features;
    wanted->class_names = &dataset->class_names;
    return dataset;
}

static void read_table(tdm_data_spec *spec, tdm_data_wanted *wanted, bool by_another, unsigned keys) {
    char good[32];
    tdm_dataset *dataset = NULL, *taught = NULL;
    put_file(1, good, good_table, sizeof(good_table) - 1);
    take_keys(spec, keys);
    if (by_another) taught = open_good(good, spec, wanted);
    spec->without_targets = taught != NULL && (keys & WITHOUT_TARGETS) != 0;
    if (tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted) == TDM_OK) read_all(dataset);
    tdm__dataset_close(dataset);
    tdm__dataset_close(taught);
}

/* Two inputs of 1x2x2 in one file. */
static void take_inputs(tdm_data_spec *spec, tdm_data_wanted *wanted, const char *file) {
    const tdm_data_input input = {.name = "a", .shape = {3, {1, 2, 2}}, .count = 4};
    spec->x = NULL;
    spec->inputs = (tdm_texts){4, {"a", file, "b", file}};
    wanted->input = (tdm_shape){1, {8}};
    wanted->inputs = (tdm_data_inputs){2, {input, input}};
    wanted->inputs.item[1].name = "b", wanted->inputs.item[1].first = 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 3) return 0;
    char hostile[32], good[32];
    bool is_second = (bytes[0] & 128) != 0;
    const int format = format_of(bytes[0] & 127u);
    const size_t head = format == TDM_DATA_CSV ? 3 : 2;
    put_file(0, hostile, bytes + head, count - head);
    put_file(1, good, is_second ? good_images : good_labels, is_second ? sizeof(good_images) : sizeof(good_labels));
    tdm_data_spec spec = {.format = format};
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
    if (format == TDM_DATA_NPY && is_second) take_inputs(&spec, &wanted, hostile);
    if (format == TDM_DATA_CSV) {
        read_table(&spec, &wanted, is_second, bytes[2]);
        return 0;
    }
    tdm_dataset *dataset = NULL;
    if (tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted) == TDM_OK) read_all(dataset);
    tdm__dataset_close(dataset);
    return 0;
}
