/* Reading UTF-8 one character at a time. */
#ifndef TDM_BASE_UTF8_H
#define TDM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character. Returns its length, 1 to 4 bytes; 0 if count is 0 or the bytes are not valid UTF-8 (an
 * overlong form, a surrogate, beyond U+10FFFF, cut short). */
int tdm__utf8_next(const char *bytes, size_t count, uint32_t *code);
/* Does a character begin with this byte? With all but the later bytes of a longer one. */
static inline bool tdm__utf8_begins(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}
/* How many characters begin in the bytes. */
static inline int tdm__utf8_characters(const char *bytes, size_t count) {
    int characters = 0;
    for (size_t i = 0; i < count; i++) characters += tdm__utf8_begins(bytes[i]);
    return characters;
}
/* How many bytes are left of more than `most` that are cut between two characters. */
static inline size_t tdm__utf8_cut(const char *bytes, size_t most) {
    while (most > 0 && !tdm__utf8_begins(bytes[most])) most--;
    return most;
}
/* The number of leading plain bytes: ASCII from space to '~', one column each. */
size_t tdm__utf8_plain(const char *bytes, size_t count);
/* Is it safe to send to a terminal? False for control characters and for those that change the direction of text. */
bool tdm__utf8_is_printable(uint32_t code);

#endif
