/* table.c - see table.h. */
#include "tools/terminal/table.h"

#include <stdarg.h>
#include <stdlib.h>

#include "tools/terminal/term.h"

table table_of(int columns) {
    return (table){.columns = columns};
}

void table_cell(table *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->cells = memory_grow(t->cells, &t->capacity, t->count + 1, sizeof *t->cells);
    t->cells[t->count++] = text_format_printable(format, args);
    va_end(args);
}

static int column_width(const table *t, int column) {
    int width = 0;
    for (size_t i = (size_t)column; i < t->count; i += (size_t)t->columns) {
        int columns = tdm_text_columns(t->cells[i]);
        if (columns > width) width = columns;
    }
    return width;
}

static void print_cell(FILE *to, const char *text, int width, bool left, bool last) {
    int room = width - tdm_text_columns(text);
    fprintf(to, "%*s%s%*s", left ? 0 : room, "", text, left && !last ? room : 0, "");
}

void table_print(const table *t, FILE *to, bool head) {
    size_t rows = t->count / (size_t)t->columns;
    for (size_t r = 0; r < rows; r++) {
        fputs("  ", to);
        if (r == 0 && head) fputs(term_on(to, TERM_BOLD), to);
        for (int c = 0; c < t->columns; c++) {
            bool last = c + 1 == t->columns;
            if (c) fputs("  ", to);
            print_cell(to, t->cells[r * (size_t)t->columns + (size_t)c], column_width(t, c), c == 0 || t->left_all,
                       last);
        }
        if (r == 0 && head) fputs(term_off(to), to);
        fputc('\n', to);
    }
}

void table_deinit(table *t) {
    for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
    free(t->cells);
    *t = (table){0};
}
