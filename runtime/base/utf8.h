/* Reading UTF-8 one character at a time. */
#ifndef TDM_BASE_UTF8_H
#define TDM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first character of `bytes`: its length in bytes, 1 to 4, and its code; 0 if it is not valid UTF-8 (an overlong
 * form, a surrogate, beyond U+10FFFF, cut short) or count is 0. */
int tdm__utf8_next(const char *bytes, size_t count, uint32_t *code);
/* How many of the first bytes are plain: ASCII from space to '~', which is shown as it is, a column each. */
size_t tdm__utf8_plain(const char *bytes, size_t count);
/* May a terminal show it as it is? Not control characters, and not what makes text look other than it reads. */
bool tdm__utf8_is_printable(uint32_t code);

#endif
