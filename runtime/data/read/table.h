/* The dataset of formats whose samples are numbers in rows: in memory from the open on, or in files that stay on the
 * disk. */
#ifndef TDM_DATA_TABLE_H
#define TDM_DATA_TABLE_H

#include "runtime/data/formats.h"
#include "runtime/data/read/row_file.h"

typedef enum tdm_cell { TDM_CELL_U8, TDM_CELL_F32, TDM_CELL_F64 } tdm_cell;

/* A column: `width` numbers per sample, `stride` bytes from one sample to the next. Any alignment. */
typedef struct tdm_column {
    const unsigned char *first;
    size_t stride, width;
    tdm_cell cell;
    const tdm_row_file *file; /* instead of `first` and `stride`: the rows stay on the disk; NULL: none */
} tdm_column;

typedef struct tdm_table {
    tdm_dataset base;
    tdm_column x;
    tdm_column *inputs; /* instead of x: of each input of the model; samples are floats. NULL: x */
    int input_count;
    bool to_float;     /* of `inputs`: bytes become numbers from 0 to 1 */
    tdm_column values; /* targets, if TDM_TARGET_VALUES */
    int64_t *labels;   /* targets, if TDM_TARGET_CLASS */
    /* Numbers that layers look something up by, to be checked in each sample that is read. */
    tdm_data_index *index;
    int index_count;
    const char *source; /* names the samples in messages; borrowed */
    /* For messages about labels, while the table is opened: the line of each row, NULL: it has none; the column. */
    const int64_t *line;
    int64_t label_column;
} tdm_table;

/* Reduces the table to spec's range and checks every label in it. `source` names the labels in messages. */
tdm_status tdm__table_finish(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source);
/* Checks the numbers that layers look something up by: wanted->index. Where normalize changes them, the layer does. If
 * an array stays on the disk, tdm__table_read checks each sample. */
tdm_status tdm__table_check_indices(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                    const char *source);
tdm_status tdm__table_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target);
void tdm__table_add_content(const tdm_dataset *dataset, tdm_hasher *hasher); /* all cells of its view in memory */

#endif
