/* The passes of a resize with the vectors of any compiler; on x86-64 also compiled for AVX2. */
#include "runtime/image/resize_pass.h"

#include <string.h>

#include "runtime/base/twin.h"

enum { BITS = TDM_AXIS_BITS, LANES = 64, TOGETHER = 8 };

typedef int lanes4 __attribute__((vector_size(16)));
typedef int lanes8 __attribute__((vector_size(32)));
typedef unsigned char bytes4 __attribute__((vector_size(4)));

TDM_INLINE unsigned char clip(int sum) {
    const int value = sum >> BITS;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Three channels: four bytes at once, the last of which belongs to the next pixel and is dropped. */
TDM_INLINE void rgb_row(const unsigned char *in, unsigned char *out, const tdm_axis *a) {
    for (int i = 0; i < a->size; i++, out += 3) {
        const unsigned char *at = in + 3 * (size_t)a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        lanes4 sum = {1 << (BITS - 1), 1 << (BITS - 1), 1 << (BITS - 1), 0};
        for (int k = 0; k < a->count[i]; k++, at += 3) {
            bytes4 four;
            memcpy(&four, at, sizeof(four));
            sum += __builtin_convertvector(four, lanes4) * weight[k];
        }
        for (int c = 0; c < 3; c++) out[c] = clip(sum[c]);
    }
}

/* Vectors of 32 bytes are passed by address: the calling convention for them depends on the processor. */
TDM_INLINE void clip_lanes(lanes8 *sum) {
    const lanes8 value = *sum >> BITS, positive = value & (value > 0), over = positive > 255;
    *sum = (positive & ~over) | (over & 255);
}

TDM_INLINE int word_at(const unsigned char *at) {
    int word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* A pixel of each of TOGETHER rows. The fourth byte is overwritten by the next pixel, except in the last column. */
TDM_INLINE void put_pixels(unsigned char *out, size_t row, lanes8 sums[3], bool is_last) {
    for (int c = 0; c < 3; c++) clip_lanes(&sums[c]);
    const lanes8 words = sums[0] | sums[1] << 8 | sums[2] << 16;
    for (int r = 0; r < TOGETHER; r++, out += row) {
        const int word = words[r];
        if (is_last)
            memcpy(out, &word, 3);
        else
            memcpy(out, &word, 4);
    }
}

/* Three channels of TOGETHER rows, a lane for each row. */
TDM_INLINE void rgb_rows(const unsigned char *in, size_t row, unsigned char *out, size_t out_row, const tdm_axis *a) {
    const lanes8 half = (lanes8){0} + (1 << (BITS - 1));
    for (int i = 0; i < a->size; i++, out += 3) {
        const unsigned char *at = in + 3 * (size_t)a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        lanes8 sums[3] = {half, half, half};
        for (int k = 0; k < a->count[i]; k++, at += 3) {
            const lanes8 words = {word_at(at),           word_at(at + row),     word_at(at + 2 * row),
                                  word_at(at + 3 * row), word_at(at + 4 * row), word_at(at + 5 * row),
                                  word_at(at + 6 * row), word_at(at + 7 * row)};
            sums[0] += (words & 255) * weight[k];
            sums[1] += (words >> 8 & 255) * weight[k];
            sums[2] += (words >> 16 & 255) * weight[k];
        }
        put_pixels(out, out_row, sums, i + 1 == a->size);
    }
}

TDM_INLINE void gray_row(const unsigned char *in, unsigned char *out, const tdm_axis *a) {
    for (int i = 0; i < a->size; i++) {
        const unsigned char *at = in + a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        int sum = 1 << (BITS - 1);
        for (int k = 0; k < a->count[i]; k++) sum += at[k] * weight[k];
        out[i] = clip(sum);
    }
}

TDM_INLINE void across(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *a, int first_row) {
    const size_t in_row = (size_t)in->width * (size_t)in->channels, out_row = (size_t)out->width * (size_t)in->channels;
    int y = 0;
    for (; in->channels == 3 && y + TOGETHER <= out->height; y += TOGETHER)
        rgb_rows(in->data + (size_t)(first_row + y) * in_row, in_row, out->data + (size_t)y * out_row, out_row, a);
    for (; y < out->height; y++) {
        const unsigned char *from = in->data + (size_t)(first_row + y) * in_row;
        if (in->channels == 3)
            rgb_row(from, out->data + (size_t)y * out_row, a);
        else
            gray_row(from, out->data + (size_t)y * out_row, a);
    }
}

/* One row of the output, `bytes` of it from `at` on. */
TDM_INLINE void blend_rows(const unsigned char *in, size_t row, unsigned char *out, const int *weight, int count,
                           size_t bytes) {
    int sum[LANES];
    for (size_t i = 0; i < bytes; i++) sum[i] = 1 << (BITS - 1);
    for (int k = 0; k < count; k++, in += row) {
        const int w = weight[k];
        for (size_t i = 0; i < bytes; i++) sum[i] += in[i] * w;
    }
    for (size_t i = 0; i < bytes; i++) out[i] = clip(sum[i]);
}

TDM_INLINE void down(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *a, int first_row) {
    const size_t row = (size_t)in->width * (size_t)in->channels;
    for (int y = 0; y < a->size; y++) {
        const unsigned char *from = in->data + (size_t)(a->first[y] - first_row) * row;
        const int *weight = a->weight + (size_t)y * (size_t)a->most;
        unsigned char *to = out->data + (size_t)y * row;
        size_t at = 0;
        for (; at + LANES <= row; at += LANES) blend_rows(from + at, row, to + at, weight, a->count[y], LANES);
        if (at < row) blend_rows(from + at, row, to + at, weight, a->count[y], row - at);
    }
}

TDM_FMA_TWIN static void across_fast(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *a, int first_row) {
    across(in, out, a, first_row);
}

TDM_FMA_TWIN static void down_fast(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *a, int first_row) {
    down(in, out, a, first_row);
}

void tdm__resize_across(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row) {
    const tdm_resize_passes *vnni = tdm__resize_vnni();
    if (vnni != NULL && in->channels == 3 && axis->fours.blocks > 0 && axis->fours.reach <= TDM_FOURS_REACH)
        vnni->across(in, out, axis, first_row);
    else if (tdm__cpu_has_fma())
        across_fast(in, out, axis, first_row);
    else
        across(in, out, axis, first_row);
}

void tdm__resize_down(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row) {
    const tdm_resize_passes *vnni = tdm__resize_vnni();
    if (vnni != NULL && axis->fours.blocks > 0)
        vnni->down(in, out, axis, first_row);
    else if (tdm__cpu_has_fma())
        down_fast(in, out, axis, first_row);
    else
        down(in, out, axis, first_row);
}
