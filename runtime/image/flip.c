/* Left and right change places. */
#include <string.h>

#include "runtime/base/twin.h"
#include "runtime/image/canvas.h"

/* The part of a row that is still to do: [left, right). */
typedef struct {
    unsigned char *left, *right;
} part;

static void flip_pixels(part row, ptrdiff_t channels) {
    for (row.right -= channels; row.left < row.right; row.left += channels, row.right -= channels) {
        for (ptrdiff_t c = 0; c < channels; c++) {
            const unsigned char byte = row.left[c];
            row.left[c] = row.right[c];
            row.right[c] = byte;
        }
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

TDM_FMA_TWIN static void store_12(unsigned char *to, __m128i bytes) {
    const int last = _mm_extract_epi32(bytes, 2);
    _mm_storeu_si64(to, bytes);
    memcpy(to + 8, &last, sizeof(last));
}

/* Four pixels of three bytes from each end at once. Loads do not overlap what was just stored, which would wait. */
TDM_FMA_TWIN static part flip_fours(part row) {
    const __m128i to_left = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, -1, -1, -1, -1);
    const __m128i to_right = _mm_setr_epi8(9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, -1, -1, -1, -1);
    for (; row.right - row.left >= 32; row.left += 12, row.right -= 12) {
        const __m128i left = _mm_loadu_si128((const void *)row.left);
        const __m128i right = _mm_loadu_si128((const void *)(row.right - 16));
        store_12(row.left, _mm_shuffle_epi8(right, to_left));
        store_12(row.right - 12, _mm_shuffle_epi8(left, to_right));
    }
    return row;
}
#else
static part flip_fours(part row) {
    return row;
}
#endif

void tdm__canvas_flip(tdm_canvas *canvas) {
    const tdm_pixels *at = &canvas->now;
    const ptrdiff_t channels = at->channels, bytes = channels * at->width;
    for (int y = 0; y < at->height; y++) {
        part row = {.left = at->data + y * bytes, .right = at->data + (y + 1) * bytes};
        if (channels == 3 && tdm__cpu_has_fma()) row = flip_fours(row);
        flip_pixels(row, channels);
    }
}
