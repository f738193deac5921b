/* term.h - the terminal: colour, width, and lines on stderr that do not damage the progress bar. */
#ifndef TERM_H
#define TERM_H

#include "tools/tool.h"

typedef enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_YELLOW, TERM_GREEN } term_style;

typedef enum term_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } term_color; /* the choices of --color */
void term_set_color(term_color color);
/* Escapes that begin and end a style on this stream; "" if it has no colour. */
const char *term_on(FILE *stream, term_style style);
const char *term_off(FILE *stream);
bool term_is_terminal(FILE *stream);
int term_width(FILE *stream); /* columns: the terminal's, COLUMNS, or 80 */
/* Breaks lines between words if they are wider than the terminal less `indent` columns. The rest is aligned with the
 * text, which begins after a gap of two spaces. Does not fold commands, nor anything if `stream` is not a terminal.
 * Each line ends with a newline. The caller frees the result. */
char *term_fold(const char *text, FILE *stream, int indent);

/* All text for people goes through these functions and table.h. Names, files and variables may contain anything, so the
 * text is made printable (tdm_text_printable), except for colours. */

/* A whole line on stderr, from any thread. A visible bar moves down. */
void term_line(const char *format, ...) TDM_PRINTF(1, 2);
/* The same with a coloured mark between `before` and the text: "job.yaml:3:1: ", "warning[C016]:". */
void term_mark(term_style style, const char *before, const char *mark, const char *format, ...) TDM_PRINTF(4, 5);
/* "tandem: error: ..." */
#define term_error(...) term_mark(TERM_RED, "", "tandem: error:", __VA_ARGS__)
/* Whole lines on stderr that are printable already. */
void term_text(const char *text);
/* Number of lines dropped because nobody read stderr; see outlet.h. */
long term_left_out(void);
/* A whole line on stdout. */
void term_print(const char *format, ...) TDM_PRINTF(1, 2);
void term_print_folded(FILE *to, char *text); /* see term_fold; frees the text */
/* Shows `text` as the bar, instead of the last one, cut to the width of the terminal. */
void term_bar(const char *text);
/* Ends the bar, if there is one: it stays visible as a line, or is removed. */
void term_bar_end(bool stays);

#endif
