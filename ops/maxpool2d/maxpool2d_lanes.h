/* Max pooling of 16 or 8 neighbouring channels at a time, for the CPU. */
#ifndef TDM_MAXPOOL2D_LANES_H
#define TDM_MAXPOOL2D_LANES_H

#include "ops/window.h"
#include "runtime/backends/dnnl/kit/passes.h"

/* A max pooling over planes of `inner` neighbouring channels; axis 0 is height. */
typedef struct tdm_maxpool2d_planes {
    tdm_window window;
    int64_t inner, in[2], out[2];
} tdm_maxpool2d_planes;

typedef struct tdm_maxpool2d_lanes {
    /* These process the planes [begin, end). `winner`: a byte per output, the index within its window of the point that
     * won; NULL outside training. */
    void (*forward)(const tdm_maxpool2d_planes *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                    int64_t end);
    void (*backward)(const tdm_maxpool2d_planes *pool, const float *dy, const uint8_t *winner, float *dx, int64_t begin,
                     int64_t end);
} tdm_maxpool2d_lanes;
TDM_LANES_TABLES(tdm_maxpool2d_lanes, tdm__maxpool2d_lanes_16);
TDM_LANES_TABLES(tdm_maxpool2d_lanes, tdm__maxpool2d_lanes_8);

static inline const tdm_maxpool2d_lanes *tdm__maxpool2d_lanes(const tdm_maxpool2d_planes *pool) {
    return pool->inner % 16 == 0 ? TDM_LANES(tdm__maxpool2d_lanes_16) : TDM_LANES(tdm__maxpool2d_lanes_8);
}

#endif
