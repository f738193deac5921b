/* Elementwise passes, in C. */
#include "runtime/backends/dnnl/kit/passes.h"

static void relu(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

static void mask(float *restrict out, const float *restrict dy, const float *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

static void add(float *restrict sum, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) sum[i] += x[i];
}

/* At most TILE rows. With a constant `count` the loop is vectorised. */
enum { TILE = 16 };
static inline __attribute__((always_inline)) void transpose_rows(float *restrict to, const float *restrict from,
                                                                 int64_t rows, int64_t columns, int64_t stride,
                                                                 int64_t row, int64_t count) {
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = row; k < row + count; k++) to[c * rows + k] = from[k * stride + c];
}

static void transpose(float *restrict to, const float *restrict from, int64_t rows, int64_t columns, int64_t stride) {
    int64_t row = 0;
    for (; row + TILE <= rows; row += TILE) transpose_rows(to, from, rows, columns, stride, row, TILE);
    if (row < rows) transpose_rows(to, from, rows, columns, stride, row, rows - row);
}

/* A number in bf16 is negative or -0 from 0x8000 on, and NaN above 0xff80. */
static bool is_below_zero(uint16_t bits) {
    return bits > 0x8000 && bits <= 0xff80;
}

static void relu_bf16(uint16_t *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = is_below_zero(y[i]) ? 0 : y[i];
}

static void mask_bf16(uint16_t *restrict out, const uint16_t *restrict dy, const uint16_t *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] == 0 || (y[i] >= 0x8000 && y[i] <= 0xff80) ? 0 : dy[i];
}

const tdm_dnnl_passes TDM_ISA_NAME(tdm__dnnl_passes) = {
    .relu = relu,
    .mask = mask,
    .add = add,
    .transpose = transpose,
    .relu_bf16 = relu_bf16,
    .mask_bf16 = mask_bf16,
};
