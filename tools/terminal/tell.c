/* tell.c - prints errors of the library: position and message in one line, then the line of the file with a caret. */
#include "tools/terminal/term.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 120 };

/* The first byte of character `column`, counted from 1; NULL if the line ends before it. */
static const char *find_column(const char *line, const char *end, int column) {
    for (; line < end && column > 1; column--) {
        do line++;
        while (line < end && ((unsigned char)*line & 0xc0) == 0x80);
    }
    return line < end ? line : NULL;
}

/* Quotes the line as faults of the configuration do, with a caret under the column. Prints nothing if the column is
 * beyond LINE_BYTES. */
static void print_source_line(const tdm_error *error) {
    FREED char *text = files_text(NULL, error->file);
    const char *line = text;
    for (int i = 1; line && i < error->line; i++) line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    const char *end = line ? line + strcspn(line, "\r\n") : NULL;
    if (line && end - line > LINE_BYTES) {
        end = line + LINE_BYTES;
        while (((unsigned char)*end & 0xc0) == 0x80) end--;
    }
    const char *at = line ? find_column(line, end, error->column) : NULL;
    if (at) {
        FREED char *before = text_format("%.*s", (int)(at - line), line), *shown = text_printable(before, false);
        term_line("%.*s", (int)(end - line), line);
        term_line("%*s^", tdm_text_columns(shown), "");
    }
}

char *tell_position(const char *file, int line, int column) {
    if (!file[0]) return text_copy("");
    return line > 0 ? text_format("%s:%d:%d: ", file, line, column) : text_format("%s: ", file);
}

int tell_error_of(const tdm_error *error) {
    FREED char *position = tell_position(error->file, error->line, error->column);
    term_error("%s%s", position, error->message[0] ? error->message : tdm_status_text(error->status));
    if (error->line > 0) print_source_line(error);
    if (error->status == TDM_E_INTERNAL) {
        term_line("       this is a bug in tandem %s; please report it with the output of `tandem doctor`",
                  tdm_version());
        for (int i = 0; i < error->frame_count && i < TDM_ERROR_FRAMES; i++) {
            term_line("       at %s:%d", error->frame[i].file, error->frame[i].line);
        }
    }
    return (int)error->status;
}

int tell_text(tdm_status status, char *text) {
    if (status != TDM_OK) return tell_error(status);
    text_print(text);
    tdm_free(text);
    return TDM_OK;
}

int tell_error(tdm_status status) {
    tdm_error error = *tdm_error_last();
    error.status = status;
    return tell_error_of(&error);
}
