/* Maxima of adaptive windows, for several instruction sets: of 8 neighbouring channels at a time, or of 8 neighbouring
 * points where channels are planes. */
#ifndef TDM_OPS_ADAPTIVE_MAXPOOL2D_LANES_H
#define TDM_OPS_ADAPTIVE_MAXPOOL2D_LANES_H

#include "runtime/backends/dnnl/kit/lanes.h"
#include "runtime/base/planes.h"

typedef struct tdm_adaptive_maxpool2d_lanes {
    /* One plane. `winner`: of each output, the index in the plane of the point that won; NULL outside training. */
    void (*forward)(const tdm_planes *x, const tdm_planes *y, const float *from, float *to, int32_t *winner);
} tdm_adaptive_maxpool2d_lanes;
TDM_LANES_TABLES(tdm_adaptive_maxpool2d_lanes, tdm__adaptive_maxpool2d_lanes);

#endif
