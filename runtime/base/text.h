/* Building text: a growing, always terminated buffer. Its first failed allocation makes it sticky-failed, and the end
 * of the work reports it once. */
#ifndef TDM_BASE_TEXT_H
#define TDM_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <tandem/host.h>
#include <tandem/status.h>

typedef struct tdm_text {
    const tdm_host *host;
    char *data; /* NULL or terminated */
    size_t length, capacity;
    bool failed;
} tdm_text;

void tdm__text_init(tdm_text *text, const tdm_host *host);
void tdm__text_deinit(tdm_text *text);
void tdm__text_add(tdm_text *text, const char *bytes, size_t count);
void tdm__text_puts(tdm_text *text, const char *terminated);
void tdm__text_printf(tdm_text *text, const char *format, ...) TDM_PRINTF(2, 3);
/* A name, path or value from elsewhere, within a line: printable, with no end of line of its own. */
void tdm__text_shown(tdm_text *text, const char *terminated);
/* A JSON string literal with quotes and escapes. Invalid UTF-8 bytes become U+FFFD. */
void tdm__text_json_string(tdm_text *text, const char *terminated);
/* A number for JSON: %.17g, and null for what JSON cannot hold. */
void tdm__text_json_number(tdm_text *text, double value);
/* Hands the terminated bytes over (release with host->release); TDM_E_MEMORY if any addition had failed. */
tdm_status tdm__text_take(tdm_text *text, char **out);
/* The same in memory that tdm_free releases: for what public functions give through char **. Whatever names came into
 * it, it is printable (tdm_text_printable, lines kept; tdm__text_shown takes the lines out of names). The tdm_text is
 * empty afterwards, also after a failure. */
tdm_status tdm__text_take_public(tdm_text *text, char **out);
/* vsnprintf in the C locale, whatever the program's locale is: numbers keep their decimal point. */
int tdm__format(char *out, size_t bytes, const char *format, va_list arguments) TDM_PRINTF(3, 0);

/* The same text? For looking through tables, where nearly all differ in their first letter. */
static inline bool tdm__text_same(const char *a, const char *b) {
    return a[0] == b[0] && strcmp(a, b) == 0;
}
/* Number of edits (insert, delete, replace, swap neighbours) between two short words; for "did you mean". */
int tdm__text_distance(const char *a, const char *b);
/* Valid UTF-8? If not, *bad_offset is the first offending byte. */
bool tdm__text_is_utf8(const char *bytes, size_t count, size_t *bad_offset);

/* Scalars as tandem writes and reads them everywhere, without the locale. Each consumes the whole text. */
bool tdm__parse_int(const char *text, int64_t *out);  /* 1_000 is fine; 010 and 1.0 are not */
bool tdm__parse_float(const char *text, double *out); /* any decimal form of strtod; no nan, inf, hex */
bool tdm__parse_bool(const char *text, bool *out);    /* true | false */
/* Shortest decimal text that reads back as the same double, with a point in the mantissa when it has an exponent
 * (1.0e-3, 1.0e+15), so that YAML 1.1 and 1.2 readers agree. `out` holds at least 32 bytes. */
void tdm__print_float(char *out, double value);
/* A size for people: "100 B", "1.6 MiB", "67.1 GiB". `out` holds at least 32 bytes; it is returned. */
const char *tdm__print_bytes(char *out, uint64_t bytes);

#endif
