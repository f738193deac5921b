/* conv2d: reference kernel. Each filter point ("tap") is multiplied with the plane that it reads. Products and sums are
 * in double and rounded to float once per result. */
#include <string.h>

#include "ops/conv2d/conv2d.h"
#include "ops/dot.h"
#include "ops/ops.h"

/* Where one tap reads the image: on each axis output p reads input p * stride + offset for p in [begin, end); for other
 * p it reads padding. */
typedef struct {
    int64_t offset[2], begin[2], end[2];
} tap_range;

typedef struct {
    int64_t rows, in, height, width;    /* x */
    int64_t out, out_height, out_width; /* y */
    int64_t in_per_group, out_per_group;
    int64_t x_plane, y_plane, taps; /* elements in one plane of x, of y, of the filter */
    tdm_window window;
    double *acc;      /* a plane of x or of y */
    tap_range *range; /* of each tap */
} geometry;

static tap_range range_of(const geometry *g, int64_t tap) {
    int64_t at[2] = {tap / g->window.kernel[1], tap % g->window.kernel[1]};
    int64_t in[2] = {g->height, g->width}, out[2] = {g->out_height, g->out_width};
    tap_range range;
    for (int axis = 0; axis < 2; axis++) {
        int64_t stride = g->window.stride[axis];
        int64_t offset = at[axis] * g->window.dilation[axis] - g->window.padding[axis];
        int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
        int64_t end = offset >= in[axis] ? 0 : (in[axis] - 1 - offset) / stride + 1;
        range.offset[axis] = offset;
        range.begin[axis] = begin;
        range.end[axis] = end < out[axis] ? end : out[axis];
    }
    return range;
}

static int64_t plane_of(const tdm_kernel_desc *desc) {
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    int64_t x_plane = x[2] * x[3], y_plane = y[2] * y[3];
    return x_plane > y_plane ? x_plane : y_plane;
}

static geometry geometry_of(const tdm_kernel_args *args) {
    const tdm_conv2d_attrs *attrs = args->desc->attrs;
    const int64_t *x = args->desc->x[0].dim, *y = args->desc->y.dim;
    geometry g = {
        .rows = args->rows,
        .in = x[1],
        .height = x[2],
        .width = x[3],
        .out = y[1],
        .out_height = y[2],
        .out_width = y[3],
        .in_per_group = x[1] / attrs->groups,
        .out_per_group = y[1] / attrs->groups,
        .x_plane = x[2] * x[3],
        .y_plane = y[2] * y[3],
        .taps = attrs->window.kernel[0] * attrs->window.kernel[1],
        .window = tdm__conv2d_window(attrs),
        .acc = args->scratch,
    };
    g.range = (tap_range *)(g.acc + plane_of(args->desc));
    for (int64_t tap = 0; tap < g.taps; tap++) g.range[tap] = range_of(&g, tap);
    return g;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t taps = attrs->window.kernel[0] * attrs->window.kernel[1];
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->scratch_bytes = (size_t)plane_of(desc) * sizeof(double) + (size_t)taps * sizeof(tap_range);
    return true;
}

/* acc[p,q] += w * x[p * stride + offset, q * stride + offset] */
static void add_tap(double *acc, const geometry *g, int64_t tap, double w, const float *x) {
    const tap_range at = g->range[tap];
    int64_t stride = g->window.stride[1];
    for (int64_t p = at.begin[0]; p < at.end[0]; p++) {
        double *to = acc + p * g->out_width;
        const float *from = x + (p * g->window.stride[0] + at.offset[0]) * g->width + at.offset[1];
        for (int64_t q = at.begin[1]; q < at.end[1]; q++) to[q] += w * (double)from[q * stride];
    }
}

/* dx[p * stride + offset, ...] += w * dy[p,q] */
static void add_tap_transposed(double *dx, const geometry *g, int64_t tap, double w, const float *dy) {
    const tap_range at = g->range[tap];
    int64_t stride = g->window.stride[1];
    for (int64_t p = at.begin[0]; p < at.end[0]; p++) {
        double *to = dx + (p * g->window.stride[0] + at.offset[0]) * g->width + at.offset[1];
        const float *from = dy + p * g->out_width;
        for (int64_t q = at.begin[1]; q < at.end[1]; q++) to[q * stride] += w * (double)from[q];
    }
}

/* column[q] += sum_p dy[p,q] * x[p * stride + offset, q * stride + offset] */
static void add_tap_columns(double *column, const geometry *g, int64_t tap, const float *dy, const float *x) {
    const tap_range at = g->range[tap];
    int64_t stride = g->window.stride[1];
    for (int64_t p = at.begin[0]; p < at.end[0]; p++) {
        const float *a = dy + p * g->out_width;
        const float *b = x + (p * g->window.stride[0] + at.offset[0]) * g->width + at.offset[1];
        for (int64_t q = at.begin[1]; q < at.end[1]; q++) column[q] += (double)a[q] * (double)b[q * stride];
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    geometry g = geometry_of(args);
    bool bias = args->desc->param_count > 1;
    double *acc = g.acc;
    for (int64_t n = 0; n < g.rows; n++) {
        for (int64_t o = 0; o < g.out; o++) {
            const float *x = args->x[0] + (n * g.in + o / g.out_per_group * g.in_per_group) * g.x_plane;
            const float *w = args->param[0] + o * g.in_per_group * g.taps;
            for (int64_t i = 0; i < g.y_plane; i++) acc[i] = bias ? (double)args->param[1][o] : 0.0;
            for (int64_t c = 0; c < g.in_per_group; c++)
                for (int64_t tap = 0; tap < g.taps; tap++)
                    add_tap(acc, &g, tap, (double)w[c * g.taps + tap], x + c * g.x_plane);
            tdm__to_floats(args->y + (n * g.out + o) * g.y_plane, acc, g.y_plane);
        }
    }
    return TDM_OK;
}

static void backward_weight(const tdm_kernel_args *args, const geometry *g) {
    double *column = g->acc;
    for (int64_t o = 0; o < g->out; o++) {
        int64_t first = o / g->out_per_group * g->in_per_group;
        for (int64_t k = 0; k < g->in_per_group * g->taps; k++) {
            memset(column, 0, (size_t)g->out_width * sizeof *column);
            for (int64_t n = 0; n < g->rows; n++)
                add_tap_columns(column, g, k % g->taps, args->dy + (n * g->out + o) * g->y_plane,
                                args->x[0] + (n * g->in + first + k / g->taps) * g->x_plane);
            double dw = 0;
            for (int64_t q = 0; q < g->out_width; q++) dw += column[q];
            args->dparam[0][o * g->in_per_group * g->taps + k] = (float)dw;
        }
    }
}

static void backward_bias(const tdm_kernel_args *args, const geometry *g) {
    for (int64_t o = 0; o < g->out; o++) {
        double db = 0;
        for (int64_t n = 0; n < g->rows; n++) db += tdm__sum(args->dy + (n * g->out + o) * g->y_plane, g->y_plane);
        args->dparam[1][o] = (float)db;
    }
}

static void backward_input(const tdm_kernel_args *args, const geometry *g) {
    double *dx = g->acc;
    for (int64_t n = 0; n < g->rows; n++) {
        for (int64_t c = 0; c < g->in; c++) {
            int64_t group = c / g->in_per_group;
            memset(dx, 0, (size_t)g->x_plane * sizeof *dx);
            for (int64_t o = group * g->out_per_group; o < (group + 1) * g->out_per_group; o++) {
                const float *w = args->param[0] + (o * g->in_per_group + c % g->in_per_group) * g->taps;
                for (int64_t tap = 0; tap < g->taps; tap++)
                    add_tap_transposed(dx, g, tap, (double)w[tap], args->dy + (n * g->out + o) * g->y_plane);
            }
            tdm__to_floats(args->dx[0] + (n * g->in + c) * g->x_plane, dx, g->x_plane);
        }
    }
}

static tdm_status backward(const tdm_kernel_args *args) {
    geometry g = geometry_of(args);
    if (args->dparam[0] != NULL) backward_weight(args, &g);
    if (args->dparam[1] != NULL) backward_bias(args, &g);
    if (args->dx[0] != NULL) backward_input(args, &g);
    return TDM_OK;
}

TDM_REF_KERNEL(conv2d, fits);
