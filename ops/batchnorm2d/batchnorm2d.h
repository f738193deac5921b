/* batchnorm2d: y = (x - mean_c) / sqrt(var_c + eps) * w[c] + b[c], with statistics over rows, height and width.
 *
 * Training uses the batch's mean and biased variance, and moves the running statistics by `momentum` (with the unbiased
 * variance). Evaluation uses the running statistics. Buffers: 0 running_mean, 1 running_var, counter
 * num_batches_tracked. */
#ifndef TDM_OPS_BATCHNORM2D_H
#define TDM_OPS_BATCHNORM2D_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_batchnorm2d_attrs {
    double eps;
    double momentum; /* NaN: the running statistics are the plain average over all batches */
    bool affine;     /* has weight and bias */
    bool track_running_stats;
    int64_t in; /* TDM_INT_NULL: taken from the input */
} tdm_batchnorm2d_attrs;

#endif
