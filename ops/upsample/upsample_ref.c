/* upsample: reference kernel, also used by default, for every layout. In float, as PyTorch. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/upsample/upsample.h"
#include "runtime/base/planes.h"

typedef struct {
    tdm_planes x, y;
    tdm_upsample_axis axis[2];
} grid;

static grid grid_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    return (grid){tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]),
                  tdm__planes_of(&desc->y, args->rows, desc->y_layout),
                  {tdm__upsample_axis_of(desc, 0), tdm__upsample_axis_of(desc, 1)}};
}

static void write_point(const grid *g, tdm_upsample_taps down, tdm_upsample_taps across, const float *x, float *y) {
    const int64_t inner = g->x.inner, width = g->x.width;
    const float *a = x + (down.first * width + across.first) * inner,
                *b = x + (down.first * width + across.second) * inner;
    const float *c = x + (down.second * width + across.first) * inner,
                *d = x + (down.second * width + across.second) * inner;
    if (!g->axis[0].bilinear) {
        memcpy(y, a, (size_t)inner * sizeof *y);
        return;
    }
    for (int64_t j = 0; j < inner; j++)
        y[j] =
            (a[j] * across.near + b[j] * across.far) * down.near + (c[j] * across.near + d[j] * across.far) * down.far;
}

static tdm_status forward(const tdm_kernel_args *args) {
    const grid g = grid_of(args);
    const float *x = args->x[0];
    float *y = args->y;
    for (int64_t plane = 0; plane < g.y.count; plane++, x += g.x.height * g.x.width * g.x.inner) {
        for (int64_t p = 0; p < g.y.height; p++) {
            const tdm_upsample_taps down = tdm__upsample_taps_of(&g.axis[0], p);
            for (int64_t q = 0; q < g.y.width; q++, y += g.y.inner)
                write_point(&g, down, tdm__upsample_taps_of(&g.axis[1], q), x, y);
        }
    }
    return TDM_OK;
}

/* dx += dy * weight at each point that the output was made of */
static void spread_point(const grid *g, tdm_upsample_taps down, tdm_upsample_taps across, const float *dy, float *dx) {
    for (int64_t row = down.first; row <= down.second; row++) {
        for (int64_t column = across.first; column <= across.second; column++) {
            const float weight = tdm__upsample_weight(&down, row) * tdm__upsample_weight(&across, column);
            float *to = dx + (row * g->x.width + column) * g->x.inner;
            for (int64_t j = 0; j < g->x.inner; j++) to[j] += dy[j] * weight;
        }
    }
}

/* In the order of the outputs. */
static tdm_status backward(const tdm_kernel_args *args) {
    const grid g = grid_of(args);
    const int64_t plane_count = g.x.height * g.x.width * g.x.inner;
    const float *dy = args->dy;
    float *dx = args->dx[0];
    memset(dx, 0, (size_t)(g.x.count * plane_count) * sizeof *dx);
    for (int64_t plane = 0; plane < g.y.count; plane++, dx += plane_count) {
        for (int64_t p = 0; p < g.y.height; p++) {
            const tdm_upsample_taps down = tdm__upsample_taps_of(&g.axis[0], p);
            for (int64_t q = 0; q < g.y.width; q++, dy += g.y.inner)
                spread_point(&g, down, tdm__upsample_taps_of(&g.axis[1], q), dy, dx);
        }
    }
    return TDM_OK;
}

TDM_REF_KERNEL(upsample, tdm__elementwise_fits);
