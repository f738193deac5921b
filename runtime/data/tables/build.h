/* Making a dataset of a CSV file, for the files of this folder and formats/csv.c. */
#ifndef TDM_DATA_TABLES_BUILD_H
#define TDM_DATA_TABLES_BUILD_H

#include "runtime/data/read/csv_cells.h"
#include "runtime/data/read/table.h"
#include "runtime/data/tables/features.h"

/* What becomes of a column of the file. */
typedef enum tdm_role { TDM_ROLE_IGNORED, TDM_ROLE_TARGET, TDM_ROLE_NUMBER, TDM_ROLE_CATEGORY } tdm_role;

typedef struct tdm_table_column {
    const char *name; /* NULL: the table has no names */
    tdm_role role;
    int64_t item;     /* in a sample: of a number or a category */
    bool shares_name; /* with another column; found for tables with known features only */
} tdm_table_column;

/* A dataset whose features live as long as it does. */
typedef struct tdm_csv_table {
    tdm_table table;
    tdm_zone zone;
    tdm_features features;
} tdm_csv_table;

typedef struct tdm_table_build {
    tdm_csv_table *to;
    const tdm_data_spec *spec;
    const tdm_features *known; /* of the data trained on; NULL: they are learned from this table */
    tdm_zone zone;             /* of what only the making needs */
    tdm_csv csv;
    char *text;
    size_t bytes;
    bool has_names;     /* the first row names the columns */
    int64_t first_line; /* where that row ends */
    tdm_table_column *column;
    int64_t columns, rows; /* of the file; without the row of names */
    int64_t target;        /* column; -1: there is none, and none is needed */
    int64_t numbers, categories;
    float *x, *value;    /* value: the targets, if they are floats */
    tdm_text texts;      /* labels and categories, one behind the other */
    size_t *label_at;    /* [rows] in texts */
    size_t *category_at; /* [rows][categories] in texts */
    int64_t *line;       /* [rows] in the file, if there are categories or labels */
    /* Float targets that are two names instead: those seen so far, or those of the data trained on. */
    const char *two_name[2];
    int two_count;
    int64_t two_line;             /* in the file, of the first */
    bool has_number;              /* a target that is a number was seen */
    int64_t label_gaps, gap_line; /* labels that are words for a gap; the first one's line */
} tdm_table_build;

/* Fails with TDM_E_DATA and a message that begins with the file. */
#define TDM_FAIL_TABLE(b, format, ...) TDM_FAIL(TDM_E_DATA, "csv '%s': " format, (b)->spec->path, ##__VA_ARGS__)

/* "'city'", or "3", the number from 0 of a column without a name. `out` holds TDM_COLUMN_TEXT bytes. Returns `out`. */
enum { TDM_COLUMN_TEXT = 80 };
const char *tdm__column_print(char out[TDM_COLUMN_TEXT], const tdm_table_build *b, int64_t column);

/* Fails if two of the different values of a column differ only so. at[row * stride]: a row's value in `texts`. */
tdm_status tdm__table_check_blanks(tdm_table_build *b, int64_t column, const tdm_classes *values, const size_t *at,
                                   int64_t stride);

/* Reads the first row: how many columns there are, and their names. */
tdm_status tdm__table_read_head(tdm_table_build *b);
/* Reads the next cell; *more false: there is none. Fails if its row has more or fewer columns than the first. */
tdm_status tdm__table_next(tdm_table_build *b, bool *more);
/* The column of the label, as the spec says. */
tdm_status tdm__table_find_target(tdm_table_build *b);
/* Gives each column its role, as the spec says, or as the features that are known. */
tdm_status tdm__table_give_roles(tdm_table_build *b);
/* Is the cell a finite number? Then it is in *to. */
bool tdm__cell_number(const char *cell, float *to);
/* Fails if the cell is a number that no float can be. */
tdm_status tdm__table_check_size(const tdm_table_build *b);
/* What to add to a message about a cell of that line, if it is the first and `header: no` makes it a sample; else "".
 */
const char *tdm__table_header_hint(const tdm_table_build *b, int64_t line);
/* Does the cell say that a number is not known, as files do? */
bool tdm__cell_is_gap(const char *cell, size_t length);
/* Reads the cell, which is not empty, as the float target of `row`. */
tdm_status tdm__table_read_target(tdm_table_build *b, int64_t row);
/* After the last row: gives the two names, if targets are names, to the features. */
tdm_status tdm__table_take_two(tdm_table_build *b);
/* Makes the features of the dataset from its rows, or takes those that are known; turns categories into numbers, fills
 * gaps, standardizes. The dataset has its final rows. */
tdm_status tdm__table_fit(tdm_table_build *b);
/* After that: lists the categories of the dataset that the data trained on does not have. */
tdm_status tdm__table_find_unseen(tdm_table_build *b);
/* Each category has numbers that a layer which looks them up has rows for. */
tdm_status tdm__table_check_vocabularies(const tdm_table_build *b, const tdm_data_wanted *wanted);

#endif
