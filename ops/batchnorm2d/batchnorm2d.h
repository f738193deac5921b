/* batchnorm2d: y = (x - mean_c) / sqrt(var_c + eps) * w[c] + b[c], with statistics over rows, height and width.
 *
 * Training uses the batch's mean and biased variance, and moves the running statistics by `momentum` (with the unbiased
 * variance). Evaluation uses the running statistics. Buffers: 0 running_mean, 1 running_var, counter
 * num_batches_tracked.
 *
 * batchnorm1d is the same over [rows, channels] or [rows, channels, points], with the same attributes and kernels. */
#ifndef TDM_OPS_BATCHNORM2D_H
#define TDM_OPS_BATCHNORM2D_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/op.h>

#include "runtime/base/host_device.h"
#include "runtime/base/planes.h"
#include "runtime/base/tree.h"

typedef enum tdm_batchnorm2d_init { TDM_BATCHNORM2D_INIT_ONES, TDM_BATCHNORM2D_INIT_ZEROS } tdm_batchnorm2d_init;

typedef struct tdm_batchnorm2d_attrs {
    double eps;
    double momentum; /* NaN: the running statistics are the plain average over all batches */
    bool affine;     /* has weight and bias */
    bool track_running_stats;
    int64_t in; /* TDM_INT_NULL: taken from the input */
    int init;   /* tdm_batchnorm2d_init, of the weight */
} tdm_batchnorm2d_attrs;

extern const tdm_field tdm__batchnorm2d_fields[];
/* Checks the channels of the input, which is channels and then `points` points, and infers everything. */
tdm_status tdm__batchnorm2d_infer(tdm_infer *infer, int64_t points);

/* Writes the layer, or a batchnorm1d, into an ONNX file. */
tdm_status tdm__batchnorm2d_onnx(struct tdm_onnx *to, const struct tdm_onnx_layer *layer);
/* Is the node such a layer, over an input of `least` to `most` dimensions? */
bool tdm__batchnorm2d_from_onnx(struct tdm_onnx_reader *from, const struct tdm_onnx_node *node, int output,
                                struct tdm_onnx_found *out, int least, int most);
/* The reference kernel. */
bool tdm__batchnorm2d_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status tdm__batchnorm2d_forward(const tdm_kernel_args *args);
tdm_status tdm__batchnorm2d_backward(const tdm_kernel_args *args);
tdm_status tdm__batchnorm2d_statistics(const tdm_kernel_args *args);
#define TDM_BATCHNORM2D_REF(name)                  \
    const tdm_kernel tdm__##name##_ref = {         \
        .op = #name,                               \
        .variant = "ref",                          \
        .fits = tdm__batchnorm2d_fits,             \
        .forward = tdm__batchnorm2d_forward,       \
        .backward = tdm__batchnorm2d_backward,     \
        .statistics = tdm__batchnorm2d_statistics, \
    }

#define TDM_BATCHNORM2D_LACKS_ROWS                                                                             \
    "%s needs more than 1 value per channel for the statistics of a batch, got 1 row of %lld channels with 1 " \
    "value each; use a larger batch or drop_last"

/* Elements of one channel in one row. */
static inline int64_t tdm__batchnorm2d_points(const tdm_kernel_desc *desc) {
    int64_t points = 1;
    for (int axis = 2; axis < desc->x[0].ndim; axis++) points *= desc->x[0].dim[axis];
    return points;
}

/* Do all channels of a point lie side by side in this layout of x? Those of [rows, channels] always do. */
static inline bool tdm__batchnorm2d_channels_last(const tdm_kernel_desc *desc, tdm_layout layout) {
    return desc->x[0].ndim == 2 || layout == TDM_LAYOUT_NHWC;
}

/* The weight of a batch in the running statistics; `batches`: how many there have been, this one included. */
TDM_HOST_DEVICE static inline double tdm__batchnorm2d_momentum(const tdm_batchnorm2d_attrs *attrs, int64_t batches) {
    return attrs->momentum != attrs->momentum ? 1.0 / (double)batches : attrs->momentum;
}

/* running = (1 - momentum) * running + momentum * batch, with the unbiased variance of the batch's `count` values */
TDM_HOST_DEVICE static inline void tdm__batchnorm2d_run(float *running_mean, float *running_variance, double momentum,
                                                        double mean, double variance, double count) {
    const double rest = 1.0 - momentum, unbiased = variance * count / (count - 1.0);
    *running_mean = (float)(momentum * mean + rest * (double)*running_mean);
    *running_variance = (float)(momentum * unbiased + rest * (double)*running_variance);
}

/* ---- statistics of several replicas: parallel.sync_batchnorm, torch.nn.SyncBatchNorm ----
 *
 * A replica's block is the number of values that each of its channels has, then two numbers for each channel: before
 * forward the mean of the values and the sum of their squared distances from it, before backward the sums of dy and of
 * dy (x - mean). Blocks are joined as the canonical tree (base/tree.h), in which a replica without rows leaves its
 * neighbour as it is. */

typedef struct tdm_batchnorm2d_blocks {
    const double *first;
    int replicas, own; /* own: whose block is this replica's */
    uint64_t present;  /* of tdm_kernel_args */
    int64_t channels;
} tdm_batchnorm2d_blocks;

TDM_HOST_DEVICE static inline int64_t tdm__batchnorm2d_block_numbers(int64_t channels) {
    return 1 + 2 * channels;
}

/* replicas 1: the statistics are this replica's alone. */
static inline tdm_batchnorm2d_blocks tdm__batchnorm2d_blocks_of(const tdm_kernel_args *args) {
    return (tdm_batchnorm2d_blocks){args->statistics, args->training ? args->desc->replicas : 1, args->replica,
                                    args->present, args->desc->x[0].dim[1]};
}

/* Is there one value in each channel, on all replicas together? */
static inline bool tdm__batchnorm2d_is_alone(const tdm_batchnorm2d_blocks *blocks, int64_t count) {
    return count == 1 && (blocks->replicas <= 1 || blocks->present == UINT64_C(1) << blocks->own);
}

/* The block's two numbers of a channel. */
TDM_HOST_DEVICE static inline double *tdm__batchnorm2d_pair(double *block, int64_t channel) {
    return block + 1 + 2 * channel;
}

TDM_HOST_DEVICE static inline const double *tdm__batchnorm2d_block_at(const tdm_batchnorm2d_blocks *blocks,
                                                                      int replica) {
    return (blocks->present >> replica & 1) != 0
               ? blocks->first + replica * tdm__batchnorm2d_block_numbers(blocks->channels)
               : NULL;
}

typedef struct tdm_batchnorm2d_moments {
    double count, mean, squares; /* squares: the sum of squared distances from the mean */
} tdm_batchnorm2d_moments;

/* The update of Chan, Golub and LeVeque, as in ATen's batch_norm_gather_stats. Where a mean is infinite, so is that of
 * both. */
TDM_HOST_DEVICE static inline tdm_batchnorm2d_moments tdm__batchnorm2d_join_two(tdm_batchnorm2d_moments a,
                                                                                tdm_batchnorm2d_moments b) {
    const double total = a.count + b.count, apart = b.mean - a.mean;
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const double mean = apart - apart == 0 ? a.mean + apart * (b.count / total) : a.mean + b.mean;
    const tdm_batchnorm2d_moments both = {total, mean,
                                          a.squares + (b.squares + apart * apart * (a.count * b.count / total))};
    return both;
}

TDM_HOST_DEVICE static inline tdm_batchnorm2d_moments tdm__batchnorm2d_moments_of(const tdm_batchnorm2d_blocks *blocks,
                                                                                  int replica, int64_t channel) {
    const double *block = tdm__batchnorm2d_block_at(blocks, replica);
    tdm_batchnorm2d_moments of = {0, 0, 0};
    if (block != NULL) of.count = block[0], of.mean = block[1 + 2 * channel], of.squares = block[2 + 2 * channel];
    return of;
}

/* Of a channel on all replicas. */
TDM_HOST_DEVICE static inline tdm_batchnorm2d_moments tdm__batchnorm2d_join(const tdm_batchnorm2d_blocks *blocks,
                                                                            int64_t channel) {
    tdm_batchnorm2d_moments kept[TDM_TREE_ROOM], of = {0, 0, 0};
    int count = 0;
    for (int r = 0; r < blocks->replicas; r++) {
        of = tdm__batchnorm2d_moments_of(blocks, r, channel);
        for (int i = tdm__tree_joins(r, blocks->replicas); i > 0; i--)
            of = tdm__batchnorm2d_join_two(kept[--count], of);
        kept[count++] = of;
    }
    return of;
}

typedef struct tdm_batchnorm2d_sums {
    double dy, product; /* product: of dy (x - mean) */
} tdm_batchnorm2d_sums;

TDM_HOST_DEVICE static inline tdm_batchnorm2d_sums tdm__batchnorm2d_add(const tdm_batchnorm2d_blocks *blocks,
                                                                        int64_t channel) {
    tdm_batchnorm2d_sums kept[TDM_TREE_ROOM], of = {0, 0};
    int count = 0;
    for (int r = 0; r < blocks->replicas; r++) {
        const double *block = tdm__batchnorm2d_block_at(blocks, r);
        of.dy = block != NULL ? block[1 + 2 * channel] : 0;
        of.product = block != NULL ? block[2 + 2 * channel] : 0;
        for (int i = tdm__tree_joins(r, blocks->replicas); i > 0; i--)
            count--, of.dy += kept[count].dy, of.product += kept[count].product;
        kept[count++] = of;
    }
    return of;
}

/* This replica's own. */
TDM_HOST_DEVICE static inline tdm_batchnorm2d_sums tdm__batchnorm2d_own(const tdm_batchnorm2d_blocks *blocks,
                                                                        int64_t channel) {
    const double *block = blocks->first + blocks->own * tdm__batchnorm2d_block_numbers(blocks->channels);
    const tdm_batchnorm2d_sums own = {block[1 + 2 * channel], block[2 + 2 * channel]};
    return own;
}

#endif
