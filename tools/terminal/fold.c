/* fold.c - see term_fold in term.h. */
#include "tools/terminal/term.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { HANG_MAX = 30, TEXT_MIN = 20 }; /* columns: the last one where a gap may end; the narrowest text */

/* True for an example that a user may copy. */
static bool is_command(const char *line) {
    line += strspn(line, " ");
    return strncmp(line, "tandem ", 7) == 0 || strncmp(line, "torchrun ", 9) == 0 || strncmp(line, "source ", 7) == 0;
}

/* The column where the text of a line begins: after the last gap within HANG_MAX columns. */
static int hang_of(const char *line) {
    int front = (int)strspn(line, " "), hang = front;
    for (int i = front; line[i] && i < HANG_MAX; i++) {
        if (strncmp(line + i, "  ", 2) == 0 && line[i + 2] != ' ') hang = i + 2;
    }
    return hang;
}

/* The number of bytes of `text` that fit a line of `width` columns: whole words, at least one. */
static int words_of(const char *text, int width) {
    int best = 0;
    for (int i = (int)strspn(text, " ");; i++) {
        i += (int)strcspn(text + i, " ");
        FREED char *part = text_format("%.*s", i, text);
        bool fits = tdm_text_columns(part) <= width;
        if (fits || best == 0) best = i;
        if (!fits || !text[i]) return best;
    }
}

static void fold_line(FILE *to, const char *line, int width) {
    int hang = hang_of(line);
    if (hang + TEXT_MIN > width) hang = 0;
    for (int indent = 0; *line; indent = hang) {
        int used = words_of(line, width - indent);
        fprintf(to, "%*s%.*s\n", indent, "", used, line);
        line += used;
        line += strspn(line, " ");
    }
}

char *term_fold(const char *text, FILE *stream, int indent) {
    int width = term_is_terminal(stream) ? term_width(stream) - indent : INT_MAX;
    char *out = NULL;
    size_t bytes = 0;
    FILE *to = text_open(&out, &bytes);
    while (*text) {
        int length = (int)strcspn(text, "\n");
        FREED char *line = text_format("%.*s", length, text);
        if (tdm_text_columns(line) > width && !(line[0] == ' ' && is_command(line)))
            fold_line(to, line, width);
        else
            fprintf(to, "%s\n", line);
        text += length + (text[length] == '\n');
    }
    text_close(to);
    return out;
}

void term_print_folded(FILE *to, char *text) {
    FREED char *folded = term_fold(text, to, 0);
    fputs(folded, to);
    free(text);
}
