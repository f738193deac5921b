/* Means over the windows of a plane, for several instruction sets; adaptive_avgpool2d has the same. They add what
 * ops/average.c adds, in its order, so the bits are the same. */
#ifndef TDM_OPS_AVGPOOL2D_LANES_H
#define TDM_OPS_AVGPOOL2D_LANES_H

#include "ops/average.h"
#include "runtime/backends/dnnl/kit/lanes.h"
#include "runtime/base/planes.h"

typedef struct tdm_average_call {
    tdm_planes x, y;
    tdm_average_range *rows, *columns; /* of each row and column of y */
    /* In the columns [begin, end) each window has `size` columns of x, and begins `stride` behind the one before. */
    int64_t begin, end, size, stride;
} tdm_average_call;

typedef struct tdm_average_lanes {
    void (*forward)(const tdm_average_call *call, const float *x, float *y);    /* of one plane */
    void (*backward)(const tdm_average_call *call, const float *dy, float *dx); /* likewise */
    /* Of planes of one channel, where the only window is the whole plane. */
    void (*whole_forward)(const tdm_average_call *call, const float *x, float *y, int64_t planes);
    void (*whole_backward)(const tdm_average_call *call, const float *dy, float *dx, int64_t planes);
} tdm_average_lanes;
TDM_LANES_TABLES(tdm_average_lanes, tdm__average_lanes);

#endif
