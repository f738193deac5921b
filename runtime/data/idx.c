/* IDX, the format of MNIST. Images and labels are two files, and either may be gzipped. The layout of a file:
 *
 *   2 bytes     zero
 *   1 byte      the type; 8: unsigned bytes, the only one that is read
 *   1 byte      the number of dimensions
 *   4 bytes     for each dimension: its size, big-endian
 *   the rest    the elements */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/reader.h"
#include "runtime/data/table.h"

enum { IDX_U8 = 0x08, IDX_MAX_DIMS = TDM_MAX_DIMS + 1 };

typedef struct idx_header {
    int ndim;
    size_t dim[IDX_MAX_DIMS];
    size_t bytes;   /* of the header */
    size_t samples; /* dim[0] */
    size_t record;  /* bytes of one sample */
} idx_header;

/* `dims`, "[n]" or "[n, rows, columns]", is what the file must have. */
static tdm_status read_magic(tdm_reader *reader, const char *dims, int *ndim) {
    unsigned char magic[4];
    TDM_TRY(tdm__reader_take(reader, magic, sizeof(magic)));
    if (magic[0] != 0 || magic[1] != 0)
        TDM_FAIL(TDM_E_DATA, "%s '%s': not an IDX file: expected 00 00 08 at its start, found %02x %02x %02x",
                 reader->what, reader->path, magic[0], magic[1], magic[2]);
    if (magic[2] != IDX_U8)
        TDM_FAIL(TDM_E_DATA, "%s '%s': expected unsigned bytes (IDX type 0x08), found type 0x%02x", reader->what,
                 reader->path, magic[2]);
    *ndim = magic[3];
    bool is_labels = strcmp(dims, "[n]") == 0;
    if (is_labels ? *ndim != 1 : (*ndim < 2 || *ndim > IDX_MAX_DIMS))
        TDM_FAIL(TDM_E_DATA, "%s '%s': expected dimensions %s, found %d dimension%s%s", reader->what, reader->path,
                 dims, *ndim, *ndim == 1 ? "" : "s", !is_labels && *ndim == 1 ? "; is this the labels file?" : "");
    return TDM_OK;
}

static tdm_status read_header(tdm_reader *reader, const char *dims, idx_header *header) {
    unsigned char word[4];
    size_t total;
    TDM_TRY(read_magic(reader, dims, &header->ndim));
    header->record = 1;
    for (int i = 0; i < header->ndim; i++) {
        TDM_TRY(tdm__reader_take(reader, word, sizeof(word)));
        header->dim[i] = (size_t)word[0] << 24 | (size_t)word[1] << 16 | (size_t)word[2] << 8 | (size_t)word[3];
        if (header->dim[i] == 0)
            TDM_FAIL(TDM_E_DATA, "%s '%s': dimension %d of the header is 0", reader->what, reader->path, i);
        if (i > 0 && !tdm__mul_fits(header->record, header->dim[i], &header->record))
            TDM_FAIL(TDM_E_DATA, "%s '%s': the dimensions in the header overflow", reader->what, reader->path);
    }
    header->samples = header->dim[0];
    header->bytes = 4 + 4 * (size_t)header->ndim;
    if (!tdm__mul_fits(header->samples, header->record, &total) || !tdm__add_fits(total, header->bytes, &total))
        TDM_FAIL(TDM_E_DATA, "%s '%s': the dimensions in the header overflow", reader->what, reader->path);

    char shape[96];
    snprintf(shape, sizeof(shape), "header %zu + %zu samples of %zu", header->bytes, header->samples, header->record);
    TDM_TRY(tdm__reader_expect(reader, total, shape));
    return TDM_OK;
}

/* Reads the header and the elements of one file. The caller deletes *out. */
static tdm_status read_idx(const tdm_host *host, const char *what, const char *path, const char *dims,
                           idx_header *header, unsigned char **out) {
    tdm_status status = TDM_OK;
    tdm_reader reader;
    *out = NULL;
    TDM_TRY(tdm__reader_open(&reader, host, what, path, true));
    TDM_TRY_DONE(read_header(&reader, dims, header));
    TDM_TRY_DONE(tdm__new(host, out, header->samples, header->record, what));
    TDM_TRY_DONE(tdm__reader_take(&reader, *out, header->samples * header->record));
    TDM_TRY_DONE(tdm__reader_end(&reader));
done:
    tdm__reader_close(&reader);
    if (status != TDM_OK) {
        tdm__delete(host, *out);
        *out = NULL;
    }
    return status;
}

static tdm_status read_images(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    idx_header header;
    unsigned char *pixels;
    tdm_status status = read_idx(table->base.host, "images", spec->images, "[n, rows, columns]", &header, &pixels);
    TDM_TRY(tdm__error_at(status, &spec->inputs_at));
    table->x_block = pixels;
    table->x = (tdm_column){.first = pixels, .stride = header.record, .width = header.record, .cell = TDM_CELL_U8};
    table->base.count = (int64_t)header.samples;
    tdm_shape shape = {0};
    if (header.ndim == 3) shape.dim[shape.ndim++] = 1; /* grey images: one channel */
    for (int i = 1; i < header.ndim; i++) shape.dim[shape.ndim++] = (int64_t)header.dim[i];
    TDM_TRY(tdm__dataset_take_shape(&table->base, spec, wanted, &shape, spec->images));
    return TDM_OK;
}

static tdm_status read_labels(tdm_table *table, const tdm_data_spec *spec) {
    idx_header header;
    unsigned char *labels;
    tdm_status status = read_idx(table->base.host, "labels", spec->labels, "[n]", &header, &labels);
    TDM_TRY(tdm__error_at(status, &spec->targets_at));
    table->y_block = labels;
    if ((int64_t)header.samples != table->base.count)
        TDM_FAIL_AT(&spec->targets_at, TDM_E_DATA,
                    "images '%s' holds %lld samples, labels '%s' holds %zu; they must be equal", spec->images,
                    (long long)table->base.count, spec->labels, header.samples);
    TDM_TRY(tdm__table_new_labels(table));
    for (size_t i = 0; i < header.samples; i++) table->labels[i] = labels[i];
    return TDM_OK;
}

tdm_status tdm__idx_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                         const tdm_data_wanted *wanted) {
    tdm_status status = TDM_OK;
    tdm_table *table;
    TDM_TRY(tdm__dataset_wants_labels(spec, wanted, "idx"));
    TDM_TRY(tdm__table_new(&table, host));
    TDM_TRY_DONE(read_images(table, spec, wanted));
    TDM_TRY_DONE(read_labels(table, spec));
    TDM_TRY_DONE(tdm__table_finish(table, spec, wanted, spec->labels));
    *out = &table->base;
done:
    if (status != TDM_OK) tdm__dataset_close(&table->base);
    return status;
}
