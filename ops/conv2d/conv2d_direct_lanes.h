/* Direct convolutions of floats by AVX-512, with channels in blocks of 16 (TDM_LAYOUT_C16).
 *
 * They add what oneDNN 2's "jit:avx512_core" adds, in the same order, so the bits are the same and either may be taken
 * (test conv_direct_test). They take less time, because a call keeps 16 sums in registers whatever the size of the
 * image, and leave out the taps that read padding (runtime/docs/measurements). */
#ifndef TDM_OPS_CONV2D_DIRECT_LANES_H
#define TDM_OPS_CONV2D_DIRECT_LANES_H

#include <stdbool.h>

#include "ops/window.h"
#include "runtime/backends/dnnl/kit/lanes.h"

enum { TDM_CONV_BLOCK = 16 };

/* A convolution of `in` into `out`. Forward: of x into y; the gradient of x is one of dy into dx. Index 0 of an axis is
 * height. Tap k of point p reads coordinate p * stride + first + k * step; a coordinate outside reads 0. */
typedef struct tdm_conv_direct {
    int64_t rows, in_blocks, out_blocks; /* pictures; blocks of channels */
    int64_t in[2], out[2], kernel[2], stride[2], first[2], step[2];
    int64_t in_weights, out_weights; /* floats in the weights from a block of channels of in, of out, to the next */
    int64_t in_plain, out_plain;     /* in PyTorch's layout from a channel of in, of out, to the next */
} tdm_conv_direct;

typedef struct tdm_conv_direct_lanes {
    /* out = bias + the convolution of in; with `clamps`, what is below 0 becomes 0. out_blocks is even. weights:
     * [block][block][tap][channel of in][channel of out]. bias: out's channels; NULL: 0. For each number of out: over
     * the blocks of channels of in, the sum over taps and channels, each by one fused multiply-add; these sums are
     * added to the bias. */
    void (*points)(const tdm_conv_direct *conv, float *out, const float *in, const float *weights, const float *bias,
                   bool clamps);
    /* dweights, as `weights` above, and dbias (NULL: none) from x and dy; out_blocks is even. Each number is the sum
     * over the points of dy, row after row, by one fused multiply-add each. */
    void (*weights)(const tdm_conv_direct *conv, float *dweights, float *dbias, const float *x, const float *dy);
    /* The weights from PyTorch's layout, and a gradient back into it; of all pairs of blocks those [begin, end). */
    void (*pack)(const tdm_conv_direct *conv, float *weights, const float *plain, int64_t begin, int64_t end);
    void (*unpack)(const tdm_conv_direct *conv, float *plain, const float *weights, int64_t begin, int64_t end);
} tdm_conv_direct_lanes;
/* All are NULL where there is no AVX-512. */
TDM_LANES_TABLES(tdm_conv_direct_lanes, tdm__conv_direct_lanes);

/* The gradient of a convolution's input, which has strides of 1: tap k of point q + padding - k * dilation of its
 * output read point q. */
static inline tdm_conv_direct tdm__conv_direct_data(const tdm_conv_direct *forward) {
    tdm_conv_direct conv = *forward;
    conv.in_blocks = forward->out_blocks, conv.out_blocks = forward->in_blocks;
    conv.in_weights = forward->out_weights, conv.out_weights = forward->in_weights;
    conv.in_plain = forward->out_plain, conv.out_plain = forward->in_plain;
    for (int axis = 0; axis < 2; axis++) {
        conv.in[axis] = forward->out[axis], conv.out[axis] = forward->in[axis];
        conv.first[axis] = -forward->first[axis], conv.step[axis] = -forward->step[axis];
    }
    return conv;
}

/* Points that `points` sums at once: neighbours in a row, or the same point of as many pictures. */
typedef struct tdm_conv_direct_group {
    int64_t count; /* 0: this convolution cannot be cut into groups, and `points` cannot do it */
    bool is_across_pictures;
} tdm_conv_direct_group;

/* Whether each tap reads padding for the first point of a row or for the last one, and for no other. */
static inline bool tdm__conv_direct_has_narrow_padding(const tdm_conv_direct *conv) {
    const int64_t stride = conv->stride[1];
    for (int64_t k = 0; k < conv->kernel[1]; k++) {
        const int64_t at = conv->first[1] + k * conv->step[1], last = at + (conv->out[1] - 1) * stride;
        if (at < -stride || last - stride >= conv->in[1] || (at < 0 && last >= conv->in[1])) return false;
    }
    return true;
}

static inline tdm_conv_direct_group tdm__conv_direct_group(const tdm_conv_direct *conv) {
    for (int64_t count = 8; count >= 5 && tdm__conv_direct_has_narrow_padding(conv); count--)
        if (conv->out[1] % count == 0) return (tdm_conv_direct_group){count, false};
    for (int64_t count = 8; count >= 5; count--)
        if (conv->rows % count == 0) return (tdm_conv_direct_group){count, true};
    return (tdm_conv_direct_group){0, false};
}

#endif
