/* Passes over a run of contiguous values of one segment, for several instruction sets. Sums are in double, each in an
 * order that the count alone decides, so every set gives the same bits. */
#ifndef TDM_OPS_LAYERNORM_LANES_H
#define TDM_OPS_LAYERNORM_LANES_H

#include <stdint.h>

#include "runtime/backends/dnnl/kit/lanes.h"

/* What normalises a value: ((x - center) scale + rest) w + b. center: the mean as a float; rest: what that lost. */
typedef struct tdm_segment_norm {
    float center, scale, rest;
} tdm_segment_norm;

/* Some segments, `stride` numbers apart. */
enum { TDM_SEGMENT_BLOCK = 8 };
typedef struct tdm_segment_block {
    int64_t count, stride;
    tdm_segment_norm norm[TDM_SEGMENT_BLOCK];
} tdm_segment_block;

/* `w` and `b`: of each value, NULL: 1 and 0. */
typedef struct tdm_segment_lanes {
    void (*moments)(const float *x, int64_t count, double *mean, double *variance);
    void (*apply)(float *y, const float *x, int64_t count, const tdm_segment_norm *norm, const float *w,
                  const float *b);
    void (*apply_one)(float *y, const float *x, int64_t count, const tdm_segment_norm *norm, float w, float b);
    /* With g = dy w: the sums of g, and of g (x - center) */
    void (*sums)(const float *x, const float *dy, const float *w, int64_t count, float center, double sum[2]);
    /* dx = (dy w - level - (x - center) slope) scale */
    void (*gradient)(float *dx, const float *x, const float *dy, int64_t count, const tdm_segment_norm *norm,
                     const float *w, float level, float slope);
    void (*gradient_one)(float *dx, const float *x, const float *dy, int64_t count, const tdm_segment_norm *norm,
                         float w, float level, float slope);
    /* Of `count` columns: dw += dy ((x - center) scale + rest) and db += dy, segment after segment */
    void (*columns)(double *dw, double *db, const float *x, const float *dy, int64_t count,
                    const tdm_segment_block *block);
} tdm_segment_lanes;
TDM_LANES_TABLES(tdm_segment_lanes, tdm__segment_lanes);

#endif
