/* IDX, the format of MNIST. Images and labels are two files, and either may be gzipped. The layout of a file:
 *
 *   2 bytes     zero
 *   1 byte      the type; 8: unsigned bytes, the only one that is read
 *   1 byte      the number of dimensions
 *   4 bytes     for each dimension: its size, big-endian
 *   the rest    the elements */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/formats/array.h"

enum { IDX_U8 = 0x08 };

static tdm_status read_header(tdm_reader *reader, tdm_array *out) {
    unsigned char magic[4], word[4];
    TDM_TRY(tdm__reader_take(reader, magic, sizeof(magic)));
    if (magic[0] != 0 || magic[1] != 0)
        TDM_FAIL_READ(reader, "not an IDX file: expected 00 00 08 at its start, found %02x %02x %02x", magic[0],
                      magic[1], magic[2]);
    if (magic[2] != IDX_U8)
        TDM_FAIL_READ(reader, "expected unsigned bytes (IDX type 0x08), found type 0x%02x", magic[2]);
    if (magic[3] > TDM_ARRAY_MAX_DIMS)
        TDM_FAIL_READ(reader, "expected at most %d dimensions, found %d dimensions", TDM_ARRAY_MAX_DIMS, magic[3]);
    *out = (tdm_array){.type = {'|', 'u', 1}, .ndim = magic[3]};
    for (int i = 0; i < out->ndim; i++) {
        TDM_TRY(tdm__reader_take(reader, word, sizeof(word)));
        out->dim[i] = (size_t)word[0] << 24 | (size_t)word[1] << 16 | (size_t)word[2] << 8 | (size_t)word[3];
    }
    return TDM_OK;
}

static tdm_status idx_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    static const tdm_array_format format = {
        .x_name = "images", .y_name = "labels", .may_be_gzip = true, .is_images = true, .read_header = read_header};
    return tdm__arrays_open(dataset, &format, spec->images, spec->labels, spec, wanted);
}

const tdm_dataset_ops tdm__idx_data = {.name = "idx",
                                       .bytes = sizeof(tdm_table),
                                       .only_labels = true,
                                       .open = idx_open,
                                       .read = tdm__table_read,
                                       .add_content = tdm__table_add_content,
                                       .close = tdm__row_files_close};
