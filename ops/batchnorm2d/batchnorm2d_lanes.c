/* See batchnorm2d_lanes.h. */
#include "ops/batchnorm2d/batchnorm2d_lanes.h"

#include <string.h>

/* Returns where the channel's values of one row begin; they are `inner` apart. */
static inline int64_t norm_start(const tdm_batchnorm2d_planes *norm, int64_t row, int64_t channel) {
    const int64_t plane = row * (norm->channels / norm->inner) + channel / norm->inner;
    return plane * norm->points * norm->inner + channel % norm->inner;
}

#define LANES 16
#include "ops/batchnorm2d/batchnorm2d_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/batchnorm2d/batchnorm2d_lanes.inc.c"
#undef LANES

static void norm_moments(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                         double *variance) {
    (tdm__batchnorm2d_lane_count(norm) == 16 ? norm_moments_16 : norm_moments_8)(norm, channel, x, mean, variance);
}

static void norm_apply(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y, const float *mean,
                       const float *scale, const float *shift) {
    (tdm__batchnorm2d_lane_count(norm) == 16 ? norm_apply_16 : norm_apply_8)(norm, channel, x, y, mean, scale, shift);
}

static void norm_sums(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                      const float *y, const double *mean, double *sum, double *dot) {
    (tdm__batchnorm2d_lane_count(norm) == 16 ? norm_sums_16 : norm_sums_8)(norm, channel, x, dy, y, mean, sum, dot);
}

static void norm_gradient(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                          const float *y, float *dx, const float *mean, const float *level, const float *slope,
                          const float *scale) {
    (tdm__batchnorm2d_lane_count(norm) == 16 ? norm_gradient_16 : norm_gradient_8)(norm, channel, x, dy, y, dx, mean,
                                                                                   level, slope, scale);
}

const tdm_batchnorm2d_lanes TDM_LANES_TABLE(tdm__batchnorm2d_lanes) = {
    .moments = norm_moments,
    .apply = norm_apply,
    .sums = norm_sums,
    .gradient = norm_gradient,
};
