/* Rows of upsample, for several instruction sets. A row has points of `inner` neighbouring channels. */
#ifndef TDM_OPS_UPSAMPLE_LANES_H
#define TDM_OPS_UPSAMPLE_LANES_H

#include "ops/upsample/upsample.h"
#include "runtime/backends/dnnl/kit/lanes.h"

/* The outputs that point `at` of x is a tap of, along one axis: `count` from `first` on, and what it weighs in each. */
typedef struct tdm_upsample_span {
    int64_t first, count;
    const float *weight;
} tdm_upsample_span;

/* A row of x, `small` points long, and one of y, `large` points long. */
typedef struct tdm_upsample_row {
    int64_t small, large, inner;
    bool bilinear;
    bool is_twice; /* twice as many points, and inner is 1: points are then computed side by side */
    tdm_upsample_taps *taps;
    tdm_upsample_span *spans; /* set for backward */
} tdm_upsample_row;

typedef struct tdm_upsample_lanes {
    /* large[q] = x at taps[q]; of the nearest point that alone, since others may be infinite */
    void (*enlarge)(const tdm_upsample_row *row, const float *x, float *large);
    /* y = a near + b far */
    void (*blend)(float *y, const float *a, float near, const float *b, float far, int64_t count);
    /* sum = or += dy weight */
    void (*gather)(float *sum, bool adds, const float *dy, float weight, int64_t count);
    /* dx[c] = sum of large[q] weight[q] over the span of c */
    void (*shrink)(const tdm_upsample_row *row, const float *large, float *dx);
} tdm_upsample_lanes;
TDM_LANES_TABLES(tdm_upsample_lanes, tdm__upsample_lanes);

#endif
