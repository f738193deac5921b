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

typedef struct tdm_upsample_lanes {
    /* wide[q] = x at taps[q]; repeat: at the first of them, which may be infinite */
    void (*widen)(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *x, float *wide);
    void (*repeat)(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *x, float *wide);
    /* y = a near + b far */
    void (*blend)(float *y, const float *a, float near, const float *b, float far, int64_t count);
    /* sum = or += dy weight */
    void (*gather)(float *sum, bool adds, const float *dy, float weight, int64_t count);
    /* dx[c] = sum of wide[q] weight[q] over the span of c */
    void (*narrow)(const tdm_upsample_span *spans, int64_t width, int64_t inner, const float *wide, float *dx);
} tdm_upsample_lanes;
TDM_LANES_TABLES(tdm_upsample_lanes, tdm__upsample_lanes);

#endif
