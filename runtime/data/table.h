/* The dataset of all formats that are read or drawn whole at open: samples in memory, one behind the other. */
#ifndef TDM_DATA_TABLE_H
#define TDM_DATA_TABLE_H

#include "runtime/data/formats.h"

typedef enum tdm_cell { TDM_CELL_U8, TDM_CELL_F32, TDM_CELL_F64 } tdm_cell;

/* A column: `width` numbers a sample, `stride` bytes from one sample to the next, any alignment. */
typedef struct tdm_column {
    const unsigned char *first;
    size_t stride, width;
    tdm_cell cell;
} tdm_column;

typedef struct tdm_table {
    tdm_dataset base;
    tdm_column x;
    tdm_column values;       /* of TDM_TARGET_VALUES */
    int64_t *labels;         /* of TDM_TARGET_CLASS; owned */
    void *x_block, *y_block; /* owned; the columns lie in them */
} tdm_table;

/* Zeroed, with operations; close it with tdm__dataset_close from here on. */
tdm_status tdm__table_new(tdm_table **out, const tdm_host *host);
/* Room for the labels of base.count samples. */
tdm_status tdm__table_new_labels(tdm_table *table);
/* Takes spec's range and checks every label in it. `source` names the labels in messages. */
tdm_status tdm__table_finish(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source);
size_t tdm__cell_bytes(tdm_cell cell);

#endif
