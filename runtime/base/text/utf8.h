/* Reading UTF-8 one character at a time. */
#ifndef TDM_BASE_UTF8_H
#define TDM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character. Returns its length, 1 to 4 bytes; 0 if count is 0 or the bytes are not valid UTF-8 (an
 * overlong form, a surrogate, beyond U+10FFFF, cut short). */
int tdm__utf8_next(const char *bytes, size_t count, uint32_t *code);
/* The number of leading plain bytes: ASCII from space to '~', one column each. */
size_t tdm__utf8_plain(const char *bytes, size_t count);
/* Is it safe to send to a terminal? False for control characters and for those that change the direction of text. */
bool tdm__utf8_is_printable(uint32_t code);

#endif
