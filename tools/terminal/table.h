/* table.h - aligned tables for stdout. */
#ifndef TABLE_H
#define TABLE_H

#include "tools/tool.h"

typedef struct table {
    char **cells; /* row by row */
    size_t count, capacity;
    int columns;
    bool left_all; /* left-align every column, not only the first */
} table;

table table_of(int columns); /* empty */
/* Adds the next cell: row by row, left to right. */
void table_cell(table *t, const char *format, ...) TDM_PRINTF(2, 3);
/* Prints the table, indented by two. The first column is left-aligned, the others right-aligned. `head`: the first row
 * is a heading. */
void table_print(const table *t, FILE *to, bool head);
void table_deinit(table *t);

#endif
