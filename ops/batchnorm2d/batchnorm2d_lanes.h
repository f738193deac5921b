/* Batch norm of 16 or 8 neighbouring channels at a time, for the CPU; or of one, whose points are neighbours. */
#ifndef TDM_BATCHNORM2D_LANES_H
#define TDM_BATCHNORM2D_LANES_H

#include "runtime/backends/dnnl/kit/passes.h"

/* A batch norm over planes of `inner` neighbouring channels. */
typedef struct tdm_batchnorm2d_planes {
    int64_t rows, channels, points, inner;
    bool past_cache;    /* what is written goes past it (tdm__is_past_cache) */
    bool relu;          /* forward: y = max(0, y), after everything else */
    const float *other; /* forward: y += other; NULL: nothing is added */
    float *dother;      /* backward: the gradient of `other`, dy where the relu passed; NULL: not needed */
} tdm_batchnorm2d_planes;
enum { TDM_BATCHNORM2D_MOST_LANES = 16 }; /* the most channels that one call below processes */

typedef struct tdm_batchnorm2d_lanes {
    int64_t lanes; /* 16, 8 or 1 */
    /* These process the channels [channel, channel + lanes). The arrays have one value per channel. In backward `y` is
     * the relu's; NULL if there is none. */
    void (*moments)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                    double *variance);
    void (*apply)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y, const double *mean,
                  const double *scale, const double *shift);
    void (*sums)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy, const float *y,
                 const double *mean, double *sum, double *dot);
    void (*gradient)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                     const float *y, float *dx, const double *mean, const double *level, const double *slope,
                     const double *scale);
} tdm_batchnorm2d_lanes;
TDM_LANES_TABLES(tdm_batchnorm2d_lanes, tdm__batchnorm2d_lanes_16);
TDM_LANES_TABLES(tdm_batchnorm2d_lanes, tdm__batchnorm2d_lanes_8);
TDM_LANES_TABLES(tdm_batchnorm2d_lanes, tdm__batchnorm2d_lanes_1);

static inline const tdm_batchnorm2d_lanes *tdm__batchnorm2d_lanes(const tdm_batchnorm2d_planes *norm) {
    if (norm->inner == 1) return TDM_LANES(tdm__batchnorm2d_lanes_1);
    return norm->inner % 16 == 0 ? TDM_LANES(tdm__batchnorm2d_lanes_16) : TDM_LANES(tdm__batchnorm2d_lanes_8);
}

#endif
