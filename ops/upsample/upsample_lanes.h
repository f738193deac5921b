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

/* A row of x, and one of y that is `wide` points long. */
typedef struct tdm_upsample_row {
    int64_t narrow, wide, inner;
    bool bilinear;
    bool is_twice; /* twice as many points, and inner is 1: points are then computed side by side */
    tdm_upsample_taps *taps;
    tdm_upsample_span *spans; /* set for backward */
} tdm_upsample_row;

typedef struct tdm_upsample_lanes {
    /* wide[q] = x at taps[q]; of the nearest point that alone, since others may be infinite */
    void (*widen)(const tdm_upsample_row *row, const float *x, float *wide);
    /* y = a near + b far */
    void (*blend)(float *y, const float *a, float near, const float *b, float far, int64_t count);
    /* sum = or += dy weight */
    void (*gather)(float *sum, bool adds, const float *dy, float weight, int64_t count);
    /* dx[c] = sum of wide[q] weight[q] over the span of c */
    void (*narrow)(const tdm_upsample_row *row, const float *wide, float *dx);
} tdm_upsample_lanes;
TDM_LANES_TABLES(tdm_upsample_lanes, tdm__upsample_lanes);

#endif
