/* Rows of numbers that stay in their file, where each is read when it is wanted: a file may be larger than memory, and a
 * process has only the rows that it uses. The file is not mapped, because one that is cut short would then kill the
 * process. It must stay as it was when it was opened: a read finds another size, or that it has been written to. */
#ifndef TDM_DATA_ROW_FILE_H
#define TDM_DATA_ROW_FILE_H

#include "runtime/data/formats.h"
#include "runtime/data/read/cells.h"
#include "runtime/data/read/reader.h"

/* Which file it is, and when it was written to. */
typedef struct tdm_row_file_state {
    uint64_t device, inode, bytes, seconds, nanoseconds;
} tdm_row_file_state;
typedef struct tdm_row_file {
    struct tdm_row_file *next; /* of the dataset */
    const char *what, *path;   /* borrowed; "x 'path'" begins messages */
    int fd;
    tdm_cell_type type;
    size_t first, row_bytes; /* where row 0 begins; of a row */
    tdm_row_file_state opened;
} tdm_row_file;

/* Adds a file of rows to the dataset. The reader has read the header, and the size of the file fits. Takes over its
 * descriptor. */
tdm_status tdm__row_file_open(const tdm_row_file **out, tdm_dataset *dataset, tdm_reader *reader,
                              const tdm_cell_type *type, size_t row_bytes);
void tdm__row_files_close(tdm_dataset *dataset);

/* Reads row `row`, as floats or as bytes, which it then has. TDM_E_DATA names the file and the sample. */
tdm_status tdm__row_file_read(const tdm_row_file *file, int64_t row, bool as_floats, void *out);

/* Names the files of a dataset as this machine sees them, and the range of rows that the job uses: equal in processes
 * that read the same bytes. 0: the dataset has none. */
uint64_t tdm__row_files_hash(const tdm_dataset *dataset);
/* Reads part `part` of `parts` of that range, and adds a hash of it to *sum. */
tdm_status tdm__row_files_add(const tdm_dataset *dataset, int part, int parts, uint64_t *sum);

#endif
