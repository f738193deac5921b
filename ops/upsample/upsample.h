/* upsample: y[n,c,p,q] = x at (p, q), brought to the scale of x: the nearest point, or between four points in
 * proportion to how near they are. Coordinates are computed in float with ATen's formulas (native/UpSample.h), so that
 * the same points are chosen. */
#ifndef TDM_OPS_UPSAMPLE_H
#define TDM_OPS_UPSAMPLE_H

#include <math.h>
#include <stdbool.h>

#include <tandem/sys/op.h>

#include "runtime/base/host_device.h"

typedef enum tdm_upsample_mode { TDM_UPSAMPLE_NEAREST, TDM_UPSAMPLE_BILINEAR } tdm_upsample_mode;

typedef struct tdm_upsample_attrs {
    double scale;    /* NaN: the size is given */
    int64_t size[2]; /* 0: the scale is given */
    int mode;        /* tdm_upsample_mode */
    bool align_corners;
} tdm_upsample_attrs;

typedef struct tdm_upsample_axis {
    int64_t in, out;
    float scale; /* from a distance in y to one in x */
    bool bilinear, align_corners;
} tdm_upsample_axis;

/* The two points of x that an output lies between, along one axis, and their weights. */
typedef struct tdm_upsample_taps {
    int64_t first, second; /* the same at an edge, and where only one counts */
    float near, far;       /* weights of first and second */
} tdm_upsample_taps;

static inline tdm_upsample_axis tdm__upsample_axis(const tdm_upsample_attrs *attrs, int64_t in, int64_t out) {
    tdm_upsample_axis of = {.in = in,
                            .out = out,
                            .scale = isnan(attrs->scale) ? (float)in / (float)out : (float)(1.0 / attrs->scale),
                            .bilinear = attrs->mode == TDM_UPSAMPLE_BILINEAR,
                            .align_corners = attrs->align_corners};
    if (attrs->align_corners) of.scale = out > 1 ? (float)(in - 1) / (float)(out - 1) : 0.0f;
    return of;
}

static inline tdm_upsample_axis tdm__upsample_axis_of(const tdm_kernel_desc *desc, int axis) {
    return tdm__upsample_axis((const tdm_upsample_attrs *)desc->attrs, desc->x[0].dim[2 + axis], desc->y.dim[2 + axis]);
}

TDM_HOST_DEVICE static inline int64_t tdm__upsample_nearest(const tdm_upsample_axis *of, int64_t at) {
    if (of->out == of->in) return at;
    if (of->out == 2 * of->in) return at / 2;
    const int64_t point = (int64_t)floorf((float)at * of->scale);
    return point < of->in - 1 ? point : of->in - 1;
}

TDM_HOST_DEVICE static inline tdm_upsample_taps tdm__upsample_taps_of(const tdm_upsample_axis *of, int64_t at) {
    tdm_upsample_taps taps = {at, at, 1.0f, 0.0f};
    if (!of->bilinear) taps.first = taps.second = tdm__upsample_nearest(of, at);
    if (!of->bilinear || of->in == of->out) return taps;
    float source = of->align_corners ? of->scale * (float)at : of->scale * ((float)at + 0.5f) - 0.5f;
    if (source < 0.0f) source = 0.0f;
    const int64_t point = (int64_t)floorf(source), last = of->in - 1;
    taps.first = point < last ? point : last;
    taps.second = taps.first < last ? taps.first + 1 : last;
    const float rest = source - (float)taps.first;
    taps.far = rest < 1.0f ? rest : 1.0f;
    taps.near = 1.0f - taps.far;
    return taps;
}

/* What point `at` of x weighs in an output with these taps. */
TDM_HOST_DEVICE static inline float tdm__upsample_weight(const tdm_upsample_taps *taps, int64_t at) {
    return (taps->first == at ? taps->near : 0.0f) + (taps->second == at ? taps->far : 0.0f);
}

#endif
