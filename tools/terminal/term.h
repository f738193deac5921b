/* term.h - the terminal: colour, width, and lines on stderr that do not tear the progress bar. */
#ifndef TERM_H
#define TERM_H

#include "tools/commands/tool.h"

typedef enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_YELLOW, TERM_GREEN } term_style;

/* `color` is auto, always or never; false if it is none of them. */
bool term_set_color(const char *color);
/* Escapes that start a style and end it on this stream; "" where there is no colour. */
const char *term_on(FILE *stream, term_style style);
const char *term_off(FILE *stream);
bool term_is_terminal(FILE *stream);
int term_width(FILE *stream); /* columns: the terminal's, COLUMNS, or 80 */
/* Lines that are broken between words where a terminal, less `indent` columns, is narrower, and go on below their text,
 * which stands behind a gap of two spaces; commands, and elsewhere all lines, as they are. Each ends with
 * a newline; for free(). */
char *term_fold(const char *text, FILE *stream, int indent);

/* Whatever is shown to people goes through these and table.h: names, files and variables may hold anything, so the text
 * comes out printable (tdm_text_printable); colours are not part of it. */

/* A whole line on stderr, from any thread; a bar that is being shown moves down. */
void term_line(const char *format, ...) TDM_PRINTF(1, 2);
/* The same with a coloured mark: "job.yaml:3:1: ", "warning[C016]:", then the text behind a space, if there is any. */
void term_mark(term_style style, const char *before, const char *mark, const char *format, ...) TDM_PRINTF(4, 5);
/* "tandem: error: ..." */
#define term_error(...) term_mark(TERM_RED, "", "tandem: error:", __VA_ARGS__)
/* Whole lines on stderr that are ready for people, as they stand. */
void term_text(const char *text);
/* Lines of all these that are not on stderr, because nobody read it; see outlet.h. */
long term_left_out(void);
/* A whole line on stdout. */
void term_print(const char *format, ...) TDM_PRINTF(1, 2);
void term_print_folded(FILE *to, char *text); /* see term_fold; frees the text */
/* Shows `text` as the bar, in place of the last one; a narrow terminal gets the beginning. term_bar_keep leaves it
 * there and starts a new line; term_bar_clear takes it away. */
void term_bar(const char *text);
void term_bar_keep(void);
void term_bar_clear(void);

#endif
