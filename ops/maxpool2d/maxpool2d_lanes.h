/* Max pooling for the CPU: of 16, 8 or 4 neighbouring channels at a time, or of neighbouring points of one channel. */
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
TDM_LANES_TABLES(tdm_maxpool2d_lanes, tdm__maxpool2d_lanes_4);
TDM_LANES_TABLES(tdm_maxpool2d_lanes, tdm__maxpool2d_lanes_1);

/* Compilers take vectors wider than the registers through memory. */
static inline bool tdm__maxpool2d_takes_16(const tdm_maxpool2d_planes *pool) {
    return pool->inner % 16 == 0 && tdm__isa() == TDM_ISA_AVX512;
}

/* For every number of channels but 2 and 3. */
static inline const tdm_maxpool2d_lanes *tdm__maxpool2d_forward_lanes(const tdm_maxpool2d_planes *pool) {
    if (pool->inner == 1) return TDM_LANES(tdm__maxpool2d_lanes_1);
    if (pool->inner < 8) return TDM_LANES(tdm__maxpool2d_lanes_4);
    return tdm__maxpool2d_takes_16(pool) ? TDM_LANES(tdm__maxpool2d_lanes_16) : TDM_LANES(tdm__maxpool2d_lanes_8);
}

/* For every number. What adds to dx must meet each channel once. */
static inline const tdm_maxpool2d_lanes *tdm__maxpool2d_backward_lanes(const tdm_maxpool2d_planes *pool) {
    if (pool->inner % 8 != 0) return TDM_LANES(tdm__maxpool2d_lanes_1);
    return tdm__maxpool2d_takes_16(pool) ? TDM_LANES(tdm__maxpool2d_lanes_16) : TDM_LANES(tdm__maxpool2d_lanes_8);
}

/* How many points a part of a window has along an axis. */
static inline int64_t tdm__maxpool2d_points(const tdm_window *window, int axis, tdm_window_part part) {
    return (part.end - part.begin + window->dilation[axis] - 1) / window->dilation[axis];
}

#endif
