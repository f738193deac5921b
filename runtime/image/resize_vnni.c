/* The passes of a resize by vpdpbusd, which adds four products of a byte and a signed byte to an int. See tdm_fours for
 * the weights: three sums, one for each digit, make the sum that the portable loops make, to the bit. */
#include "runtime/image/resize_pass.h"

#if defined(__x86_64__) && !defined(TDM_NO_VNNI) /* tests define it, to run the other loops */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define VNNI_INLINE \
    static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))

enum { ROWS = 4, BYTES = 64 };

typedef struct {
    __m512i digit[TDM_DIGITS];
} sums;

/* Begins with one half, for rounding. */
VNNI_INLINE void begin(sums *s) {
    s->digit[0] = _mm512_set1_epi32(1 << (TDM_AXIS_BITS - 1));
    s->digit[1] = s->digit[2] = _mm512_setzero_si512();
}

VNNI_INLINE void add(sums *s, __m512i bytes, const sums *weights) {
    for (int d = 0; d < TDM_DIGITS; d++) s->digit[d] = _mm512_dpbusd_epi32(s->digit[d], bytes, weights->digit[d]);
}

/* Returns ints that are at least 0; a sum may be a little more than 255. */
VNNI_INLINE __m512i total(const sums *s) {
    const __m512i middle = _mm512_slli_epi32(s->digit[1], 8), high = _mm512_slli_epi32(s->digit[2], 16);
    return _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(s->digit[0], middle), high), TDM_AXIS_BITS);
}

/* ---- across ---- */

/* Which of 64 bytes four outputs take, one output in each quarter of a vector: the red bytes of four inputs, then
 * green, then blue. */
VNNI_INLINE __m512i bytes_of(const int *from) {
    const __m128i order = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 0, 3, 6, 9);
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m128i begin = _mm_loadu_si128((const __m128i *)(const void *)from);
    const __m128i distance = _mm_sub_epi32(begin, _mm_broadcastd_epi32(begin));
    const __m128i bytes = _mm_mullo_epi32(distance, _mm_set1_epi32(3 * 0x01010101));
    return _mm512_add_epi8(_mm512_permutexvar_epi32(spread, _mm512_castsi128_si512(bytes)),
                           _mm512_broadcast_i32x4(order));
}

/* A digit of the weights of four outputs, each in all of its quarter. */
VNNI_INLINE void load_weights(sums *weights, const signed char *digits) {
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    for (int d = 0; d < TDM_DIGITS; d++) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(digits + d * TDM_FOUR * TDM_FOUR));
        weights->digit[d] = _mm512_permutexvar_epi32(spread, _mm512_castsi128_si512(four));
    }
}

VNNI_INLINE void store_pixels(unsigned char *to, const sums *s, int count) {
    const __m128i dense = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m128i pixels = _mm512_cvtusepi32_epi8(total(s));
    _mm_mask_storeu_epi8(to, (__mmask16)((1 << 3 * count) - 1), _mm_shuffle_epi8(pixels, dense));
}

/* `count` rows, at most ROWS. */
VNNI_INLINE void across_rows(const unsigned char *in, size_t in_row, unsigned char *out, size_t out_row,
                             const tdm_axis *axis, int count) {
    const tdm_fours *fours = &axis->fours;
    const signed char *digits = fours->digits;
    for (int i = 0; i < axis->size; i += TDM_FOUR) {
        const int outputs = axis->size - i < TDM_FOUR ? axis->size - i : TDM_FOUR;
        const unsigned char *at = in + 3 * (size_t)fours->from[i];
        const __m512i bytes = bytes_of(fours->from + i);
        sums s[ROWS], weights;
        for (int r = 0; r < count; r++) begin(&s[r]);
        for (int b = 0; b < fours->blocks; b++, at += 3 * TDM_FOUR, digits += TDM_FOURS_BLOCK) {
            load_weights(&weights, digits);
            for (int r = 0; r < count; r++)
                add(&s[r], _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(at + (size_t)r * in_row)), &weights);
        }
        for (int r = 0; r < count; r++) store_pixels(out + (size_t)r * out_row + 3 * (size_t)i, &s[r], outputs);
    }
}

VNNI static void across(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row) {
    const size_t in_row = (size_t)in->width * 3, out_row = (size_t)out->width * 3;
    int y = 0;
    for (; y + ROWS <= out->height; y += ROWS)
        across_rows(in->data + (size_t)(first_row + y) * in_row, in_row, out->data + (size_t)y * out_row, out_row, axis,
                    ROWS);
    for (; y < out->height; y++)
        across_rows(in->data + (size_t)(first_row + y) * in_row, in_row, out->data + (size_t)y * out_row, out_row, axis,
                    1);
}

/* ---- down ---- */

/* Adds 64 bytes of four rows, column by column in the order that `pack` takes back. */
VNNI_INLINE void add_rows(sums s[TDM_FOUR], const unsigned char *in, size_t row, __mmask64 mask, const sums *weights) {
    __m512i rows[TDM_FOUR];
    for (int k = 0; k < TDM_FOUR; k++) rows[k] = _mm512_maskz_loadu_epi8(mask, in + (size_t)k * row);
    const __m512i low[2] = {_mm512_unpacklo_epi8(rows[0], rows[1]), _mm512_unpacklo_epi8(rows[2], rows[3])};
    const __m512i high[2] = {_mm512_unpackhi_epi8(rows[0], rows[1]), _mm512_unpackhi_epi8(rows[2], rows[3])};
    add(&s[0], _mm512_unpacklo_epi16(low[0], low[1]), weights);
    add(&s[1], _mm512_unpackhi_epi16(low[0], low[1]), weights);
    add(&s[2], _mm512_unpacklo_epi16(high[0], high[1]), weights);
    add(&s[3], _mm512_unpackhi_epi16(high[0], high[1]), weights);
}

VNNI_INLINE __m512i pack(const sums s[TDM_FOUR]) {
    return _mm512_packus_epi16(_mm512_packus_epi32(total(&s[0]), total(&s[1])),
                               _mm512_packus_epi32(total(&s[2]), total(&s[3])));
}

/* Row y of the output, of `bytes` bytes. */
VNNI_INLINE void down_row(const unsigned char *in, unsigned char *out, size_t bytes, const tdm_fours *fours, int y) {
    const signed char *digits = fours->digits + (ptrdiff_t)(y / TDM_FOUR) * fours->blocks * TDM_FOURS_BLOCK +
                                (ptrdiff_t)(y % TDM_FOUR) * TDM_FOUR;
    for (size_t at = 0; at < bytes; at += BYTES) {
        const __mmask64 mask = bytes - at < BYTES ? ((__mmask64)1 << (bytes - at)) - 1 : ~(__mmask64)0;
        sums s[TDM_FOUR], weights;
        for (int k = 0; k < TDM_FOUR; k++) begin(&s[k]);
        for (int b = 0; b < fours->blocks; b++) {
            for (int d = 0; d < TDM_DIGITS; d++) {
                int four;
                memcpy(&four, digits + b * TDM_FOURS_BLOCK + d * TDM_FOUR * TDM_FOUR, sizeof(four));
                weights.digit[d] = _mm512_set1_epi32(four);
            }
            add_rows(s, in + at + (size_t)b * TDM_FOUR * bytes, bytes, mask, &weights);
        }
        _mm512_mask_storeu_epi8(out + at, mask, pack(s));
    }
}

VNNI static void down(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row) {
    const size_t row = (size_t)in->width * (size_t)in->channels;
    for (int y = 0; y < axis->size; y++)
        down_row(in->data + (size_t)(axis->fours.from[y] - first_row) * row, out->data + (size_t)y * row, row,
                 &axis->fours, y);
}

static bool has_vnni(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

const tdm_resize_passes *tdm__resize_vnni(void) {
    static const tdm_resize_passes passes = {across, down};
    return has_vnni() ? &passes : NULL;
}

#else

const tdm_resize_passes *tdm__resize_vnni(void) {
    return NULL;
}

#endif
