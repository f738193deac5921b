/* Samples and their targets as two arrays in two files; the first dimension is the sample. What idx and npy share: they
 * differ in the header before the elements. */
#ifndef TDM_DATA_FORMATS_ARRAY_H
#define TDM_DATA_FORMATS_ARRAY_H

#include "runtime/data/read/cells.h"
#include "runtime/data/read/reader.h"
#include "runtime/data/read/table.h"

enum { TDM_ARRAY_MAX_DIMS = 8 };

/* What a header says. */
typedef struct tdm_array {
    tdm_cell_type type;
    bool fortran_order;
    int ndim;
    size_t dim[TDM_ARRAY_MAX_DIMS];
    size_t elements; /* product of dim */
} tdm_array;

typedef struct tdm_array_format {
    const char *x_name, *y_name; /* "images", "labels": begin messages */
    bool may_be_gzip;
    bool is_images; /* x has at least two more dimensions, and the channel if it has exactly two; y has none */
    /* Reads a header into *out, which is zero. `elements` and the sizes are not its task. */
    tdm_status (*read_header)(tdm_reader *reader, tdm_array *out);
} tdm_array_format;

/* Opens a dataset over the two files; x NULL: over spec->inputs, a file for each input of the model, and y. */
tdm_status tdm__arrays_open(tdm_dataset *dataset, const tdm_array_format *format, const char *x, const char *y,
                            const tdm_data_spec *spec, const tdm_data_wanted *wanted);

#endif
