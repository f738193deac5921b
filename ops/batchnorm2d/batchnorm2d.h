/* batchnorm2d: y = (x - mean_c) / sqrt(var_c + eps) * w[c] + b[c], with statistics over rows, height and width.
 *
 * Training uses the batch's mean and biased variance, and moves the running statistics by `momentum` (with the unbiased
 * variance). Evaluation uses the running statistics. Buffers: 0 running_mean, 1 running_var, counter
 * num_batches_tracked. */
#ifndef TDM_OPS_BATCHNORM2D_H
#define TDM_OPS_BATCHNORM2D_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/host_device.h"

typedef enum tdm_batchnorm2d_init { TDM_BATCHNORM2D_INIT_ONES, TDM_BATCHNORM2D_INIT_ZEROS } tdm_batchnorm2d_init;

typedef struct tdm_batchnorm2d_attrs {
    double eps;
    double momentum; /* NaN: the running statistics are the plain average over all batches */
    bool affine;     /* has weight and bias */
    bool track_running_stats;
    int64_t in; /* TDM_INT_NULL: taken from the input */
    int init;   /* tdm_batchnorm2d_init, of the weight */
} tdm_batchnorm2d_attrs;

#define TDM_BATCHNORM2D_LACKS_ROWS                                                                               \
    "batchnorm2d needs more than 1 value per channel for the statistics of a batch, got 1 row of %lldx1x1; use " \
    "a larger batch or drop_last"

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

#endif
