/* Passes over the arenas of parameters and gradients, compiled for each instruction set (base/isa.h).
 *
 * All give the same bits: sums run over a fixed number of lanes. The loops are plain so that the compiler vectorises
 * them; nothing below may be written so that a wider register changes the order of additions. */
#include <math.h>
#include <string.h>

#include "ops/flat/flat.h"
#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/base/isa.h"
#include "runtime/base/tree.h"

enum { SUM_BLOCK = 64, LANES = 32 };

/* The canonical tree over one block of the sources. */
static void sum_block(float *restrict to, const float *const *source, int source_count, size_t at) {
    const float *a = source[0] + at;
    if (source_count == 1) {
        memcpy(to, a, SUM_BLOCK * sizeof(float));
        return;
    }
    const float *b = source[1] + at;
    if (source_count == 2) {
        for (int i = 0; i < SUM_BLOCK; i++) to[i] = a[i] + b[i];
    } else if (source_count == 3) {
        const float *c = source[2] + at;
        for (int i = 0; i < SUM_BLOCK; i++) to[i] = (a[i] + b[i]) + c[i];
    } else if (source_count == 4) {
        const float *c = source[2] + at, *d = source[3] + at;
        for (int i = 0; i < SUM_BLOCK; i++) to[i] = (a[i] + b[i]) + (c[i] + d[i]);
    } else {
        float right[SUM_BLOCK];
        const int left = tdm__tree_left(source_count);
        sum_block(to, source, left, at);
        sum_block(right, source + left, source_count - left, at);
        for (int i = 0; i < SUM_BLOCK; i++) to[i] += right[i];
    }
}

static float sum_one(const float *const *source, int source_count, size_t at) {
    if (source_count == 1) return source[0][at];
    const int left = tdm__tree_left(source_count);
    return sum_one(source, left, at) + sum_one(source + left, source_count - left, at);
}

/* A block at a time on the stack, so that `out` may be any of the sources. */
static void sum(float *out, const float *const *source, int source_count, size_t count) {
    float block[SUM_BLOCK];
    size_t at = 0;
    for (; at + SUM_BLOCK <= count; at += SUM_BLOCK) {
        sum_block(block, source, source_count, at);
        memcpy(out + at, block, sizeof block);
    }
    for (; at < count; at++) out[at] = sum_one(source, source_count, at);
}

static void scale(float *x, float factor, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] *= factor;
}

static void clamp(float *x, float most, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] = x[i] < -most ? -most : x[i] > most ? most : x[i];
}

/* Number i goes to lane i mod LANES; the lanes are added as a binary tree. A float's square is exact in double. */
static double sum_squares(const float *x, size_t count) {
    double lane[LANES] = {0};
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        for (int i = 0; i < LANES; i++) lane[i] += (double)x[at + i] * (double)x[at + i];
    }
    for (int i = 0; at + (size_t)i < count; i++) lane[i] += (double)x[at + i] * (double)x[at + i];
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    }
    return lane[0];
}

/* torch.lerp fuses these on the CPU, and counts from the nearer end. */
static void lerp(float *x, const float *end, float weight, size_t count) {
    const float back = weight - 1.0f;
    if (weight < 0.5f) {
        for (size_t i = 0; i < count; i++) x[i] = fmaf(weight, end[i] - x[i], x[i]);
    } else {
        for (size_t i = 0; i < count; i++) x[i] = fmaf(back, end[i] - x[i], end[i]);
    }
}

static void to_bf16(uint16_t *restrict out, const float *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tdm__bf16_of(x[i]);
}

static void from_bf16(float *restrict out, const uint16_t *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tdm__bf16_float(x[i]);
}

static void to_f16(uint16_t *restrict out, const float *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tdm__f16_of(x[i]);
}

static void from_f16(float *restrict out, const uint16_t *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tdm__f16_float(x[i]);
}

static void add_bf16(uint16_t *restrict out, const uint16_t *restrict what, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tdm__bf16_of(tdm__bf16_float(out[i]) + tdm__bf16_float(what[i]));
}

const tdm_flat_kernels TDM_ISA_NAME(tdm__flat) = {
    .variant = TDM_ISA_TEXT,
    .sum = sum,
    .scale = scale,
    .clamp = clamp,
    .sum_squares = sum_squares,
    .lerp = lerp,
    .to_bf16 = to_bf16,
    .from_bf16 = from_bf16,
    .add_bf16 = add_bf16,
    .to_f16 = to_f16,
    .from_f16 = from_f16,
};
