/* table.h - aligned tables for stdout. */
#ifndef TABLE_H
#define TABLE_H

#include "tools/commands/tool.h"

typedef struct table {
    char **cells; /* row by row; the first row is the head */
    size_t count, capacity;
    int columns;
    bool left_all; /* texts: every column left-aligned, not only the first */
} table;

void table_init(table *t, int columns);
/* Cells in reading order. */
void table_cell(table *t, const char *format, ...) TDM_PRINTF(2, 3);
/* Prints, indented by two; the first column is left-aligned, the others right-aligned. `head`: the first row is a head.
 */
void table_print(const table *t, FILE *to, bool head);
void table_deinit(table *t);

#endif
