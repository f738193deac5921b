/* The orientation in Exif data: a TIFF file of which only the first directory is read. */
#include "runtime/backends/image/image.h"

enum { HEADER = 8, ENTRY = 12, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3 };

static uint32_t number_at(const unsigned char *at, int bytes, bool big) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint32_t)at[i] << 8 * (big ? bytes - 1 - i : i);
    return value;
}

int tdm__exif_orientation(const unsigned char *bytes, size_t count) {
    if (count < HEADER || bytes[0] != bytes[1] || (bytes[0] != 'I' && bytes[0] != 'M')) return 1;
    const bool big = bytes[0] == 'M';
    const size_t at = number_at(bytes + 4, 4, big);
    if (number_at(bytes + 2, 2, big) != 42 || at > count || count - at < 2) return 1;
    const size_t entries = number_at(bytes + at, 2, big);
    for (size_t i = 0; i < entries && (i + 1) * ENTRY + 2 <= count - at; i++) {
        const unsigned char *entry = bytes + at + 2 + i * ENTRY;
        if (number_at(entry, 2, big) != TAG_ORIENTATION) continue;
        const uint32_t value = number_at(entry + 8, 2, big);
        return number_at(entry + 2, 2, big) == TYPE_SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
