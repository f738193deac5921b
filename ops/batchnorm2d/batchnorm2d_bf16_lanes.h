/* Batch norm of bf16 with neighbouring channels, for the CPU: one row (a picture) a call, so that rows can be shared
 * among threads, and sums be added in the order of the rows. */
#ifndef TDM_BATCHNORM2D_BF16_LANES_H
#define TDM_BATCHNORM2D_BF16_LANES_H

#include "runtime/backends/dnnl/kit/passes.h"

/* Tensors are [points][channels]; channels are a multiple of 16. Arrays of doubles and floats have one per channel. */
typedef struct tdm_batchnorm2d_row {
    int64_t points, channels;
    const uint16_t *x, *dy;
    const uint16_t *relu_y; /* backward: dy counts where this is above 0, or NaN; NULL: everywhere */
    const uint16_t *other;  /* forward: is added; NULL: nothing */
    uint16_t *dother;       /* backward: its gradient; NULL: not needed */
    bool relu;
} tdm_batchnorm2d_row;

typedef struct tdm_batchnorm2d_bf16_lanes {
    /* the sums over points of x - origin and of its square */
    void (*moments)(const tdm_batchnorm2d_row *row, const float *origin, double *sum, double *squares);
    /* y = (x - center) scale + shift, rounded, + other */
    void (*apply)(const tdm_batchnorm2d_row *row, uint16_t *y, const float *center, const float *scale,
                  const float *shift);
    /* the sums of dy and of dy (x - mean); writes dother */
    void (*sums)(const tdm_batchnorm2d_row *row, const double *mean, double *sum, double *dot);
    /* dx = (dy - level - (x - mean) slope) scale */
    void (*gradient)(const tdm_batchnorm2d_row *row, uint16_t *dx, const float *mean, const float *level,
                     const float *slope, const float *scale);
} tdm_batchnorm2d_bf16_lanes;
TDM_LANES_TABLES(tdm_batchnorm2d_bf16_lanes, tdm__batchnorm2d_bf16_lanes);

#endif
