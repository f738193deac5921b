/* Writes small data sets of drawn digits, in the formats that tandem reads. */
#include <tandem/data.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/system/file.h"
#include "runtime/base/status.h"
#include "runtime/data/formats.h"
#include "runtime/data/make_pictures.h"

enum { HEADER_MAX = 128, FILES = 2 };

typedef struct made_format {
    const char *name;
    tdm_shape shape;
    const char *file[FILES]; /* the pixels; the labels, NULL if they are in the first */
    size_t label_bytes;
    size_t (*header)(unsigned char out[HEADER_MAX], const char *type, const tdm_shape *shape);
} made_format;

static size_t idx_header(unsigned char out[HEADER_MAX], const char *type, const tdm_shape *shape) {
    (void)type; /* always bytes */
    size_t length = 0;
    int channel = shape->ndim == 4; /* IDX has no dimension for the channel of grey images */
    memcpy(out, "\0\0\x08", 3);
    out[3] = (unsigned char)(shape->ndim - channel);
    length = 4;
    for (int i = 0; i < shape->ndim; i++) {
        if (channel && i == 1) continue;
        for (int shift = 24; shift >= 0; shift -= 8) out[length++] = (unsigned char)(shape->dim[i] >> shift);
    }
    return length;
}

/* Padded with spaces to a multiple of 64 bytes, as numpy does. */
static size_t npy_header(unsigned char out[HEADER_MAX], const char *type, const tdm_shape *shape) {
    char text[HEADER_MAX], dims[64];
    int used = 0;
    for (int i = 0; i < shape->ndim; i++)
        used +=
            snprintf(dims + used, sizeof(dims) - (size_t)used, i == 0 ? "%lld," : " %lld,", (long long)shape->dim[i]);
    int length = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, dims);
    size_t total = tdm__round_up(10 + (size_t)length + 1, 64);
    memcpy(out, "\x93NUMPY\x01\0", 8);
    out[8] = (unsigned char)(total - 10);
    out[9] = 0;
    memset(out + 10, ' ', total - 10);
    memcpy(out + 10, text, (size_t)length);
    out[total - 1] = '\n';
    return total;
}

static size_t no_header(unsigned char out[HEADER_MAX], const char *type, const tdm_shape *shape) {
    (void)out, (void)type, (void)shape;
    return 0;
}

static const made_format formats[] = {
    {"idx", {3, {1, 28, 28}}, {"images-idx3-ubyte", "labels-idx1-ubyte"}, 1, idx_header},
    {"cifar10", {3, {3, 32, 32}}, {"data_batch_1.bin", NULL}, 1, no_header},
    {"npy", {3, {1, 28, 28}}, {"x.npy", "y.npy"}, sizeof(int64_t), npy_header},
};

typedef struct making {
    const tdm_host *host;
    const made_format *format;
    tdm_dataset *glyphs;
    size_t pixels; /* of a sample */
    unsigned char *sample;
    int files; /* 1: each label stands before its pixels */
    tdm_zone paths;
    tdm_out_file out[FILES];
} making;

static tdm_status open_glyphs(making *m, int64_t samples, int64_t seed) {
    tdm_data_spec spec = {.format = TDM_DATA_GLYPHS, .samples = samples, .seed = seed, .noise = 0.1};
    tdm_data_wanted wanted = {.input = m->format->shape, .ignore_index = INT64_MIN};
    if (samples < 1) TDM_FAIL(TDM_E_USAGE, "data make: samples must be at least 1, got %lld", (long long)samples);
    if (!tdm__shape_elements(&m->format->shape, &m->pixels)) TDM_FAIL(TDM_E_INTERNAL, "data make: bad shape");
    if ((uint64_t)samples > TDM_DATA_MAX_BYTES / m->pixels - 1)
        TDM_FAIL(TDM_E_USAGE, "data make: at most %zu samples of format %s, got %lld",
                 TDM_DATA_MAX_BYTES / m->pixels - 1, m->format->name, (long long)samples);
    TDM_TRY(tdm__dataset_open(&m->glyphs, m->host, &spec, &wanted));
    return tdm__new(m->host, &m->sample, m->pixels, 1, "sample");
}

/* Opens file `which` and writes its header. */
static tdm_status open_file(making *m, const char *folder, int which) {
    const made_format *format = m->format;
    tdm_shape shape = {1, {m->glyphs->count}};
    unsigned char header[HEADER_MAX];
    const char *path;
    size_t record = which == 1 ? format->label_bytes : m->pixels + (m->files == 1 ? format->label_bytes : 0);
    if (which == 0) {
        shape.ndim = 1 + format->shape.ndim;
        memcpy(shape.dim + 1, format->shape.dim, (size_t)format->shape.ndim * sizeof(shape.dim[0]));
    }
    size_t length = format->header(header, which == 0 ? "|u1" : "<i8", &shape);
    TDM_TRY(tdm__zone_printf(&m->paths, &path, "%s/%s", folder, format->file[which]));
    TDM_TRY(
        tdm__out_open(&m->out[which], &tdm__file_system, NULL, path, length + record * (size_t)m->glyphs->count, NULL));
    TDM_TRY(tdm__out_write(&m->out[which], header, length));
    return TDM_OK;
}

static tdm_status write_samples(making *m) {
    tdm_out_file *labels = &m->out[m->files - 1];
    for (int64_t i = 0; i < m->glyphs->count; i++) {
        int64_t label;
        TDM_TRY(tdm__dataset_read(m->glyphs, i, m->sample, &label));
        TDM_TRY(tdm__out_write(labels, &label, m->format->label_bytes));
        TDM_TRY(tdm__out_write(&m->out[0], m->sample, m->pixels));
    }
    return TDM_OK;
}

static tdm_status make(making *m, const char *folder, int64_t samples, int64_t seed) {
    m->files = m->format->file[1] == NULL ? 1 : FILES;
    TDM_TRY(open_glyphs(m, samples, seed));
    TDM_TRY(tdm__folder_make(m->host, &tdm__file_system, folder));
    for (int i = 0; i < m->files; i++) TDM_TRY(open_file(m, folder, i));
    TDM_TRY(write_samples(m));
    for (int i = 0; i < m->files; i++) TDM_TRY(tdm__out_finish(&m->out[i]));
    return TDM_OK;
}

tdm_status tdm_data_make(const tdm_host *host, const char *format, const char *folder, int64_t samples, int64_t seed) {
    making m = {.out = {{.fd = -1}, {.fd = -1}}};
    if (format == NULL || folder == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_data_make: format or folder is NULL");
    TDM_TRY(tdm__host_take(&host));
    m.host = host;
    if (strcmp(format, "image_folder") == 0) return tdm__make_pictures(host, folder, samples, seed);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(format, formats[i].name) == 0) m.format = &formats[i];
    }
    if (m.format == NULL)
        TDM_FAIL(TDM_E_USAGE, "data make: format must be idx, cifar10, npy or image_folder, got '%s'", format);
    tdm__zone_init(&m.paths, m.host);
    tdm_status status = make(&m, folder, samples, seed);
    for (int i = 0; i < FILES; i++) tdm__out_discard(&m.out[i]);
    tdm__zone_deinit(&m.paths);
    tdm__delete(m.host, m.sample);
    tdm__dataset_close(m.glyphs);
    return status;
}
