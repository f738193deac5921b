/* conv2d_direct_lanes.h against the sums that it promises, number by number and in their order: equal bits. */
#include <math.h>
#include <stdlib.h>

#include "ops/conv2d/conv2d_direct_lanes.h"
#include "tests/support/tdm_test.h"

enum { BLOCK = TDM_CONV_BLOCK };

static const tdm_conv_direct_lanes *lanes(void) {
    const tdm_conv_direct_lanes *found = TDM_LANES(tdm__conv_direct_lanes);
    if (found->points == NULL) SKIP_PROGRAM("this processor has no AVX-512");
    return found;
}

/* Returns `count` numbers in [-0.5, 0.5] that depend on the seed alone. */
static float *numbers(int64_t count, unsigned seed) {
    float *out = aligned_alloc(64, (size_t)(count * 4 + 63) / 64 * 64);
    uint32_t state = seed * 2654435761u + 1;
    if (out == NULL) abort();
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
    }
    return out;
}

static int64_t length(int64_t rows, int64_t blocks, const int64_t plane[2]) {
    return rows * blocks * plane[0] * plane[1] * BLOCK;
}

static int64_t weight_count(const tdm_conv_direct *conv) {
    return conv->in_blocks * conv->out_blocks * conv->kernel[0] * conv->kernel[1] * BLOCK * BLOCK;
}

/* Where the numbers of a point begin in `blocks` blocks of planes. */
static int64_t at(int64_t blocks, const int64_t plane[2], int64_t row, int64_t block, int64_t p, int64_t q) {
    return (((row * blocks + block) * plane[0] + p) * plane[1] + q) * BLOCK;
}

/* Whether tap (i, j) of point (p, q) reads a number; *from: where its block begins. */
static bool reads(const tdm_conv_direct *conv, int64_t row, int64_t block, const int64_t point[2], const int64_t tap[2],
                  int64_t *from) {
    int64_t read[2];
    for (int axis = 0; axis < 2; axis++) {
        read[axis] = point[axis] * conv->stride[axis] + conv->first[axis] + tap[axis] * conv->step[axis];
        if (read[axis] < 0 || read[axis] >= conv->in[axis]) return false;
    }
    *from = at(conv->in_blocks, conv->in, row, block, read[0], read[1]);
    return true;
}

/* ---- points ---- */

static float one_sum(const tdm_conv_direct *conv, const float *in, const float *weights, int64_t row, int64_t block,
                     const int64_t point[2], int64_t channel) {
    float sum = 0.0f;
    for (int64_t i = 0; i < conv->kernel[0]; i++) {
        for (int64_t j = 0; j < conv->kernel[1]; j++) {
            const float *tap = weights + block * conv->in_weights + channel / BLOCK * conv->out_weights +
                               (i * conv->kernel[1] + j) * BLOCK * BLOCK + channel % BLOCK;
            int64_t from = 0;
            if (!reads(conv, row, block, point, (const int64_t[]){i, j}, &from)) continue;
            for (int64_t c = 0; c < BLOCK; c++) sum = fmaf(in[from + c], tap[c * BLOCK], sum);
        }
    }
    return sum;
}

static float one_point(const tdm_conv_direct *conv, const float *in, const float *weights, const float *bias,
                       int64_t row, const int64_t point[2], int64_t channel) {
    float sum = bias != NULL ? bias[channel] : 0.0f;
    for (int64_t block = 0; block < conv->in_blocks; block++)
        sum += one_sum(conv, in, weights, row, block, point, channel);
    return sum;
}

static bool is_wrong(float wanted, float got, bool clamps) {
    return got != (clamps && wanted < 0.0f ? 0.0f : wanted);
}

static void check_points(const tdm_conv_direct *conv, bool biased, bool clamps) {
    const int64_t count = length(conv->rows, conv->out_blocks, conv->out);
    float *in = numbers(length(conv->rows, conv->in_blocks, conv->in), 1), *out = numbers(count, 2);
    float *weights = numbers(weight_count(conv), 3), *bias = numbers(conv->out_blocks * BLOCK, 4);
    int64_t wrong = 0, seen = 0;
    lanes()->points(conv, out, in, weights, biased ? bias : NULL, clamps);
    for (int64_t n = 0; n < conv->rows; n++)
        for (int64_t o = 0; o < conv->out_blocks * BLOCK; o++)
            for (int64_t p = 0; p < conv->out[0]; p++)
                for (int64_t q = 0; q < conv->out[1]; q++, seen++)
                    wrong += is_wrong(one_point(conv, in, weights, biased ? bias : NULL, n, (const int64_t[]){p, q}, o),
                                      out[at(conv->out_blocks, conv->out, n, o / BLOCK, p, q) + o % BLOCK], clamps);
    CHECK_INT(wrong, 0);
    CHECK_INT(seen, count);
    free(in), free(out), free(weights), free(bias);
}

/* ---- weights ---- */

static float one_weight(const tdm_conv_direct *conv, const float *x, const float *dy, int64_t channel, int64_t out,
                        const int64_t tap[2]) {
    float sum = 0.0f;
    for (int64_t n = 0; n < conv->rows; n++) {
        for (int64_t p = 0; p < conv->out[0]; p++) {
            for (int64_t q = 0; q < conv->out[1]; q++) {
                int64_t from = 0;
                if (!reads(conv, n, channel / BLOCK, (const int64_t[]){p, q}, tap, &from)) continue;
                sum = fmaf(x[from + channel % BLOCK],
                           dy[at(conv->out_blocks, conv->out, n, out / BLOCK, p, q) + out % BLOCK], sum);
            }
        }
    }
    return sum;
}

static void check_weights(const tdm_conv_direct *conv) {
    const int64_t count = weight_count(conv), points = conv->out[0] * conv->out[1];
    float *x = numbers(length(conv->rows, conv->in_blocks, conv->in), 5), *dweights = numbers(count, 6);
    float *dy = numbers(length(conv->rows, conv->out_blocks, conv->out), 7);
    float *dbias = numbers(conv->out_blocks * BLOCK, 8);
    int64_t wrong = 0;
    lanes()->weights(conv, dweights, dbias, x, dy);
    for (int64_t c = 0; c < conv->in_blocks * BLOCK; c++)
        for (int64_t o = 0; o < conv->out_blocks * BLOCK; o++)
            for (int64_t i = 0; i < conv->kernel[0]; i++)
                for (int64_t j = 0; j < conv->kernel[1]; j++)
                    wrong += one_weight(conv, x, dy, c, o, (const int64_t[]){i, j}) !=
                             dweights[c / BLOCK * conv->in_weights + o / BLOCK * conv->out_weights +
                                      ((i * conv->kernel[1] + j) * BLOCK + c % BLOCK) * BLOCK + o % BLOCK];
    for (int64_t o = 0; o < conv->out_blocks * BLOCK; o++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < conv->rows; n++)
            for (int64_t i = 0; i < points; i++)
                sum += dy[((n * conv->out_blocks + o / BLOCK) * points + i) * BLOCK + o % BLOCK];
        wrong += sum != dbias[o];
    }
    CHECK_INT(wrong, 0);
    free(x), free(dweights), free(dy), free(dbias);
}

/* ---- shapes ---- */

typedef struct {
    int64_t rows, in_blocks, out_blocks, in[2], kernel[2], stride[2], before[2], after[2], dilation[2];
} shape;

/* Groups of 8, 7, 6 and 5 neighbours and of pictures, strides, windows that are not square, padding on one side, parts
 * of one row and of several pictures. */
static const shape shapes[] = {
    {1, 1, 2, {3, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 4, {5, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 2, 2, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {3, 2, 2, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 2, {4, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {8, 2, 2, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {7, 2, 2, {3, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {12, 1, 2, {2, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {5, 1, 2, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 4, {16, 16}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 2, {13, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 2, {9, 10}, {3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {1, 1, 2, {7, 16}, {5, 3}, {1, 1}, {2, 1}, {2, 1}, {1, 1}},
    {2, 1, 2, {6, 8}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, {1, 1}},
    {8, 1, 2, {7, 9}, {5, 5}, {1, 1}, {2, 2}, {2, 2}, {1, 1}},
    {8, 1, 2, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}},
    {1, 1, 2, {3, 160}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 2, {150, 1}, {3, 1}, {1, 1}, {1, 0}, {1, 0}, {1, 1}},
};

static tdm_conv_direct forward_of(const shape *s) {
    tdm_conv_direct conv = {.rows = s->rows, .in_blocks = s->in_blocks, .out_blocks = s->out_blocks};
    for (int axis = 0; axis < 2; axis++) {
        const int64_t window = s->dilation[axis] * (s->kernel[axis] - 1) + 1;
        conv.in[axis] = s->in[axis];
        conv.out[axis] = (s->in[axis] + s->before[axis] + s->after[axis] - window) / s->stride[axis] + 1;
        conv.kernel[axis] = s->kernel[axis];
        conv.stride[axis] = s->stride[axis];
        conv.first[axis] = -s->before[axis];
        conv.step[axis] = s->dilation[axis];
    }
    conv.in_weights = s->kernel[0] * s->kernel[1] * BLOCK * BLOCK;
    conv.out_weights = s->in_blocks * conv.in_weights;
    return conv;
}

TEST(points_are_the_promised_sums) {
    int cut = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const tdm_conv_direct conv = forward_of(&shapes[i]);
        if (tdm__conv_direct_group(&conv).count == 0) continue;
        cut++;
        check_points(&conv, false, false);
        check_points(&conv, true, true);
    }
    CHECK_INT(cut, 17);
}

TEST(gradients_of_points_are_the_promised_sums) {
    int cut = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const tdm_conv_direct forward = forward_of(&shapes[i]), conv = tdm__conv_direct_data(&forward);
        if (conv.stride[0] != 1 || conv.out_blocks % 2 != 0 || tdm__conv_direct_group(&conv).count == 0) continue;
        cut++;
        check_points(&conv, false, false);
    }
    CHECK_INT(cut, 5);
}

TEST(gradients_of_weights_are_the_promised_sums) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const tdm_conv_direct conv = forward_of(&shapes[i]);
        check_weights(&conv);
    }
}

/* ---- layouts of the weights ---- */

static int64_t taps_of(const tdm_conv_direct *conv) {
    return conv->kernel[0] * conv->kernel[1];
}

/* The place in PyTorch's layout, and in that of the passes, of one number. */
static int64_t plain_at(const tdm_conv_direct *conv, int64_t in, int64_t out, int64_t tap) {
    return in * conv->in_plain + out * conv->out_plain + tap;
}

static int64_t packed_at(const tdm_conv_direct *conv, int64_t in, int64_t out, int64_t tap) {
    return in / BLOCK * conv->in_weights + out / BLOCK * conv->out_weights + (tap * BLOCK + in % BLOCK) * BLOCK +
           out % BLOCK;
}

/* The pairs of blocks in two parts, as threads share them. */
static void check_layouts(const tdm_conv_direct *conv) {
    const int64_t count = weight_count(conv), pairs = conv->in_blocks * conv->out_blocks;
    float *plain = numbers(count, 9), *packed = numbers(count, 10), *again = numbers(count, 11);
    int64_t wrong = 0;
    lanes()->pack(conv, packed, plain, 0, pairs / 2);
    lanes()->pack(conv, packed, plain, pairs / 2, pairs);
    lanes()->unpack(conv, again, packed, 0, pairs / 2);
    lanes()->unpack(conv, again, packed, pairs / 2, pairs);
    for (int64_t i = 0; i < conv->in_blocks * BLOCK; i++)
        for (int64_t o = 0; o < conv->out_blocks * BLOCK; o++)
            for (int64_t tap = 0; tap < taps_of(conv); tap++)
                wrong += plain[plain_at(conv, i, o, tap)] != packed[packed_at(conv, i, o, tap)];
    for (int64_t i = 0; i < count; i++) wrong += plain[i] != again[i];
    CHECK_INT(wrong, 0);
    free(plain), free(packed), free(again);
}

/* Windows of one point too, which only change their layout; blocks of out or of in outermost. */
TEST(layouts_of_weights_hold_the_same_numbers) {
    static const shape more[] = {
        {1, 3, 2, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
        {1, 2, 3, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {1, 1, 2, {8, 8}, {5, 7}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        tdm_conv_direct forward = forward_of(&more[i]);
        forward.in_plain = taps_of(&forward);
        forward.out_plain = forward.in_blocks * BLOCK * forward.in_plain;
        for (int outermost = 0; outermost < 2; outermost++) {
            const tdm_conv_direct data = tdm__conv_direct_data(&forward);
            check_layouts(&forward);
            check_layouts(&data);
            forward.out_weights = taps_of(&forward) * BLOCK * BLOCK;
            forward.in_weights = forward.out_blocks * forward.out_weights;
        }
    }
}

TEST_MAIN(RUN(points_are_the_promised_sums); RUN(gradients_of_points_are_the_promised_sums);
          RUN(gradients_of_weights_are_the_promised_sums); RUN(layouts_of_weights_hold_the_same_numbers);)
