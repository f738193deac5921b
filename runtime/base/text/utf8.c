/* UTF-8: validity, characters, and how wide they are on a terminal. */
#include "runtime/base/text/utf8.h"

#include <stdio.h>
#include <string.h>

#include <tandem/status.h>

#include "runtime/base/text/text.h"

int tdm__utf8_next(const char *bytes, size_t count, uint32_t *code) {
    const unsigned char *at = (const unsigned char *)bytes;
    *code = 0;
    if (count == 0) return 0;
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    int length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char lead_mask[5] = {0, 0, 0x1F, 0x0F, 0x07};
    if (at[0] < 0xC2 || at[0] > 0xF4 || count < (size_t)length) return 0;
    uint32_t value = at[0] & lead_mask[length];
    for (int i = 1; i < length; i++) {
        if (tdm__utf8_begins(bytes[i])) return 0;
        value = value << 6 | (at[i] & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *code = value;
    return length;
}

/* Eight bytes at a time, because nearly all text is plain. */
size_t tdm__utf8_plain(const char *bytes, size_t count) {
    const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
    size_t at = 0;
    for (; count - at >= sizeof(ones); at += sizeof(ones)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof(word));
        if (((word | (word - ones * ' ') | (word + ones)) & high) != 0) break;
    }
    while (at < count && bytes[at] >= ' ' && bytes[at] <= '~') at++;
    return at;
}

bool tdm__text_is_utf8(const char *bytes, size_t count, size_t *bad_offset) {
    for (size_t at = tdm__utf8_plain(bytes, count); at < count; at += tdm__utf8_plain(bytes + at, count - at)) {
        uint32_t code;
        int length = tdm__utf8_next(bytes + at, count - at, &code);
        if (length == 0) {
            if (bad_offset != NULL) *bad_offset = at;
            return false;
        }
        at += (size_t)length;
    }
    return true;
}

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* East Asian Wide and Fullwidth, and emoji, as whole blocks: one column too many for an unassigned code does no harm.
 */
static const code_range wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
    {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};
static const code_range zero_width[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x0300, 0x036F}, {0x200B, 0x200F},
    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
};

static bool is_in(const code_range *range, size_t count, uint32_t code) {
    for (size_t i = 0; i < count; i++) {
        if (code >= range[i].first && code <= range[i].last) return true;
    }
    return false;
}

int tdm_text_columns(const char *text) {
    const char *at = text != NULL ? text : "", *end = at + strlen(at);
    int columns = 0;
    while (at < end) {
        uint32_t code;
        int length = tdm__utf8_next(at, (size_t)(end - at), &code);
        if (length == 0) { /* shown as one replacement character */
            columns++;
            at++;
            continue;
        }
        if (is_in(wide, sizeof(wide) / sizeof(wide[0]), code))
            columns += 2;
        else if (!is_in(zero_width, sizeof(zero_width) / sizeof(zero_width[0]), code))
            columns++;
        at += length;
    }
    return columns;
}

/* C0, DEL and C1; line and paragraph separators; marks, embeddings and isolates that set the direction of writing; what
 * nobody sees, such as soft hyphens, zero-width spaces and tags. The two joiners stay, because scripts need them. */
static const code_range hidden[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x061C, 0x061C}, {0x180E, 0x180E}, {0x200B, 0x200B},
    {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF},
};

bool tdm__utf8_is_printable(uint32_t code) {
    return !is_in(hidden, sizeof(hidden) / sizeof(hidden[0]), code);
}

size_t tdm_text_printable(char *out, size_t capacity, const char *text, int keeps_lines) {
    if (out == NULL) capacity = 0;
    const char *at = text != NULL ? text : "", *end = at + strlen(at);
    size_t whole = 0, kept = 0;
    bool cut = capacity == 0;
    while (at < end) {
        char escape[12];
        const char *shown = at;
        const size_t plain = tdm__utf8_plain(at, (size_t)(end - at));
        size_t taken = plain, bytes = plain;
        if (plain == 0) {
            uint32_t code;
            const int length = tdm__utf8_next(at, (size_t)(end - at), &code);
            const bool stays = keeps_lines != 0 && (*at == '\n' || *at == '\t');
            taken = bytes = length > 0 ? (size_t)length : 1;
            if (length == 0 || (!stays && !tdm__utf8_is_printable(code))) {
                const bool byte = length == 0 || code < 0x80;
                shown = escape;
                bytes = (size_t)snprintf(escape, sizeof(escape), byte ? "\\x%02x" : "\\u%04x",
                                         byte ? (unsigned)(unsigned char)*at : (unsigned)code);
            }
        }
        const size_t room = cut ? 0 : capacity - 1 - kept;
        const size_t fitting = bytes <= room ? bytes : plain > 0 ? room : 0;
        if (fitting > 0) memcpy(out + kept, shown, fitting);
        cut = cut || fitting < bytes;
        kept += fitting;
        whole += bytes;
        at += taken;
    }
    if (capacity > 0) out[kept] = '\0';
    return whole;
}
