/* See batchnorm2d_lanes.h. */
#include "ops/batchnorm2d/batchnorm2d_lanes.h"

#include "runtime/backends/dnnl/kit/vectors.h"

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
