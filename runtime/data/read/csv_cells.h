/* The cells of a CSV text (RFC 4180): separated by commas, semicolons or tabs, perhaps in double quotes. Lines end with
 * LF or CR LF. Empty lines do not count, nor a byte order mark. */
#ifndef TDM_DATA_CSV_CELLS_H
#define TDM_DATA_CSV_CELLS_H

#include "runtime/data/read/reader.h"

enum { TDM_CSV_CELL_MAX = 1024 };

typedef struct tdm_csv {
    const char *what, *path; /* begin messages; borrowed, like the text */
    const char *begin, *at, *end;
    char separator;
    int64_t line, row; /* of the last cell: from 1; rows that are not empty, from 0 */
    int64_t column;    /* from 0 */
    bool ends_row;     /* the last cell was the last of its row */
    size_t length;
    char cell[TDM_CSV_CELL_MAX]; /* the last cell, without quotes and without spaces around it */
} tdm_csv;

/* Fails with TDM_E_DATA and a message about the last cell. */
#define TDM_FAIL_CELL(csv, format, ...)                                                                                \
    TDM_FAIL(TDM_E_DATA, "%s '%s', line %lld, column %lld: " format, (csv)->what, (csv)->path, (long long)(csv)->line, \
             (long long)(csv)->column + 1, ##__VA_ARGS__)

/* Reads a whole file, plain or gzip, into *text, which the caller deletes. `host` is the reader's. */
tdm_status tdm__csv_load(const tdm_host *host, const char *what, const char *path, char **text, size_t *count);
/* Starts at the first cell. The first line says what separates the cells. */
void tdm__csv_begin(tdm_csv *csv, const char *what, const char *path, const char *text, size_t count);
/* Reads the next cell. *more false: there is none. */
tdm_status tdm__csv_next(tdm_csv *csv, bool *more);
/* Refuses the last cell unless it is UTF-8, as a name that checkpoints keep must be. `of_what`: "label". */
tdm_status tdm__csv_check_utf8(const tdm_csv *csv, const char *of_what);

#endif
