/* Elementwise passes, in C. */
#include "runtime/backends/dnnl/kit/passes.h"

#include "runtime/backends/dnnl/kit/vectors.h"

static void clamp(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

static void mask(float *restrict out, const float *restrict dy, const float *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

static void add(float *restrict sum, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) sum[i] += x[i];
}

enum { BLOCK = 8 };

/* Eight columns of eight rows: each column is a vector. `apart`: numbers from column to column of `to`. */
static inline __attribute__((always_inline)) void
transpose_block(float *restrict to, int64_t apart, const float *restrict from, int64_t stride, bool adds) {
    for (int c = 0; c < BLOCK; c++, from++, to += apart) {
        floats_8 column = {from[0],          from[stride],     from[2 * stride], from[3 * stride],
                           from[4 * stride], from[5 * stride], from[6 * stride], from[7 * stride]};
        if (adds) column += load_8(to);
        memcpy(to, &column, sizeof column);
    }
}

static inline __attribute__((always_inline)) void transpose_all(float *restrict to, int64_t apart,
                                                                const float *restrict from, int64_t rows,
                                                                int64_t columns, int64_t stride, bool adds) {
    const int64_t in_blocks = rows / BLOCK * BLOCK, across = columns / BLOCK * BLOCK;
    for (int64_t r = 0; r < in_blocks; r += BLOCK)
        for (int64_t c = 0; c < across; c += BLOCK)
            transpose_block(to + c * apart + r, apart, from + r * stride + c, stride, adds);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = r < in_blocks ? across : 0; c < columns; c++) {
            float *at = to + c * apart + r;
            *at = adds ? *at + from[r * stride + c] : from[r * stride + c];
        }
    }
}

static void transpose(float *to, const float *from, int64_t rows, int64_t columns, int64_t stride) {
    transpose_all(to, rows, from, rows, columns, stride, false);
}

static void add_transposed(float *sum, int64_t apart, const float *x, int64_t rows, int64_t columns) {
    transpose_all(sum, apart, x, rows, columns, columns, true);
}

/* A number in bf16 is negative or -0 from 0x8000 on, and NaN above 0xff80. */
static bool is_below_zero(uint16_t bits) {
    return bits > 0x8000 && bits <= 0xff80;
}

static void clamp_bf16(uint16_t *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = is_below_zero(y[i]) ? 0 : y[i];
}

static void mask_bf16(uint16_t *restrict out, const uint16_t *restrict dy, const uint16_t *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] == 0 || (y[i] >= 0x8000 && y[i] <= 0xff80) ? 0 : dy[i];
}

const tdm_dnnl_passes TDM_ISA_NAME(tdm__dnnl_passes) = {
    .clamp = clamp,
    .mask = mask,
    .add = add,
    .transpose = transpose,
    .add_transposed = add_transposed,
    .clamp_bf16 = clamp_bf16,
    .mask_bf16 = mask_bf16,
};
