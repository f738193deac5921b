/* Building text: a growing buffer that always ends with a NUL. After a failed allocation `failed` stays set and later
 * additions do nothing, so the caller checks once, at the end. */
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
/* Adds a name, path or value from outside: control characters and line breaks are escaped. */
void tdm__text_shown(tdm_text *text, const char *terminated);
/* Adds a JSON string with quotes and escapes. Invalid UTF-8 bytes become U+FFFD. */
void tdm__text_json_string(tdm_text *text, const char *terminated);
/* Adds a number for JSON: %.17g; null if JSON cannot hold it. */
void tdm__text_json_number(tdm_text *text, double value);
/* Gives the text to the caller of a public function, who releases it with tdm_free. TDM_E_MEMORY if an addition has
 * failed. Control characters are escaped, line breaks are kept. Afterwards the tdm_text is empty, even after a failure.
 */
tdm_status tdm__text_take_public(tdm_text *text, char **out);
/* vsnprintf in the C locale, so that numbers have a decimal point whatever the program's locale is. */
int tdm__format(char *out, size_t bytes, const char *format, va_list arguments) TDM_PRINTF(3, 0);

/* Are the texts equal? Fast in tables, where most texts differ in their first letter. */
static inline bool tdm__text_same(const char *a, const char *b) {
    return a[0] == b[0] && strcmp(a, b) == 0;
}
/* The order of texts, for qsort. */
int tdm__text_order(const void *a, const void *b);
/* Is `ending` behind something else? */
bool tdm__text_ends_in(const char *text, const char *ending);
/* The number of edits (insert, delete, replace, swap neighbours) between two short words; for "did you mean". */
int tdm__text_distance(const char *a, const char *b);
/* Valid UTF-8? If not, *bad_offset is the first offending byte. */
bool tdm__text_is_utf8(const char *bytes, size_t count, size_t *bad_offset);

/* Reading scalars, independent of the locale. The whole text must be the scalar. */
bool tdm__parse_int(const char *text, int64_t *out); /* 1_000 is fine; 010 and 1.0 are not */
/* [+-] digits [. digits] [e [+-] digits], with at least one digit on one side of the point; of any size. */
bool tdm__is_decimal(const char *text);
bool tdm__parse_float(const char *text, double *out); /* any decimal form of strtod; no nan, inf, hex */
bool tdm__parse_bool(const char *text, bool *out);    /* true | false */
/* Prints the shortest decimal text that reads back as the same double. With an exponent the mantissa has a point
 * (1.0e-3, 1.0e+15), so that readers of YAML 1.1 and 1.2 agree. `out` holds at least 32 bytes. */
void tdm__print_float(char *out, double value);
/* Prints a size for people, as the command does: "100 B", "1.6 MiB", "67.1 GiB", "512 GiB". `out` holds at least 32
 * bytes. Returns `out`. */
const char *tdm__print_bytes(char *out, uint64_t bytes);

#endif
