/* A look at a table: what a configuration for it depends on. */
#ifndef TDM_DATA_TABLES_LOOK_H
#define TDM_DATA_TABLES_LOOK_H

#include "runtime/base/memory.h"

typedef struct tdm_column_seen {
    const char *name;     /* NULL: the table has no names */
    bool is_number;       /* all cells but gaps are */
    bool is_whole, rises; /* whole numbers; each is 1 more than the one before, as in a column of row numbers */
    double least, last;   /* smallest, that of the last row */
    double most;
    int64_t gaps, different;  /* different: at most TDM_SEEN_MOST + 1 are counted, and no gaps */
    int64_t gap_words;        /* different words for a gap, which are values of a column of categories */
    int64_t words, word_line; /* cells that are no number, and the first one's line */
    /* Of these: what stands for an infinite number or for none, and numbers with a decimal comma. */
    int64_t infinite, infinite_line, commas, comma_line;
    char infinite_cell[16], comma_cell[32]; /* the first of each */
    /* The first text that an earlier one is, but for blanks around it; line 0: there is none. */
    int64_t blanks_line;
    char blanks_cell[64];
    int64_t broken_line; /* the first cell that is not UTF-8; 0: there is none */
} tdm_column_seen;

enum { TDM_SEEN_MOST = 2000 };

typedef struct tdm_table_seen {
    tdm_zone zone;
    int64_t rows, columns, target; /* target: a column */
    tdm_column_seen *column;
} tdm_table_seen;

/* Reads the whole table. `target`: a name or a number from 0; NULL: the last column. After a failure, too, `out` is to
 * be closed. */
tdm_status tdm__table_look(const tdm_host *host, const char *path, const char *target, tdm_table_seen *out);
void tdm__table_seen_close(tdm_table_seen *seen);

#endif
