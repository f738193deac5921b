/* dropout2d in the dnnl module: threads share the planes. */
#include "ops/dropout/dropout_rows.h"
#include "ops/dropout2d/dropout2d.h"
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/planes.h"

enum { MOST_INNER = 16 }; /* neighbouring channels whose factors are held apart */

typedef struct {
    const float *in;
    float *out, scale;
    tdm_planes planes;
    const uint8_t *keep;
} call;

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->saved_bytes = (size_t)(desc->y.dim[0] * desc->y.dim[1]);
    return tdm__elementwise_fits(desc, fit);
}

static inline __attribute__((always_inline)) void scale_points(const call *j, int64_t plane, int64_t inner) {
    const int64_t points = j->planes.height * j->planes.width, at = plane * points * inner;
    const uint8_t *keep = j->keep + plane * inner;
    float factor[MOST_INNER], *out = j->out + at;
    const float *in = j->in + at;
    for (int64_t k = 0; k < inner; k++) factor[k] = keep[k] ? j->scale : 0.0f;
    if (inner == 1) {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < points; i++) out[i] = in[i] * factor[0];
        return;
    }
    for (int64_t i = 0; i < points; i++, in += inner, out += inner) {
        float scaled[MOST_INNER]; /* in and out may be the same memory */
        for (int64_t k = 0; k < inner; k++) scaled[k] = in[k] * factor[k];
        memcpy(out, scaled, (size_t)inner * sizeof *out);
    }
}

static void scale_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t inner = j->planes.inner, points = j->planes.height * j->planes.width;
    for (int64_t plane = begin; plane < end; plane++) {
        if (inner == 1)
            scale_points(j, plane, 1);
        else if (inner == 8)
            scale_points(j, plane, 8);
        else if (inner == 16)
            scale_points(j, plane, 16);
        else
            for (int64_t at = plane * points; at < (plane + 1) * points; at++)
                tdm__dropout_apply(j->out + at * inner, j->in + at * inner, j->keep + plane * inner, inner, j->scale);
    }
}

static tdm_status apply(const tdm_kernel_args *args, const float *in, float *out) {
    const tdm_kernel_desc *desc = args->desc;
    call j = {in, out, tdm__dropout_scale(((const tdm_dropout_attrs *)desc->attrs)->p),
              tdm__planes_of(&desc->y, args->rows, desc->y_layout), args->saved};
    return tdm__dnnl_share(args->device, tdm__dnnl_threads(desc->threads, tdm__elementwise_count(args)), j.planes.count,
                           scale_planes, &j);
}

static tdm_status forward(const tdm_kernel_args *args) {
    if (!args->training) return tdm__copy_to_y(args);
    tdm__dropout_draw_rows(args, args->desc->y.dim[1]);
    return apply(args, args->x[0], args->y);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, args->dy, args->dx[0]);
}

const tdm_kernel tdm__dropout2d_dnnl = {
    .op = "dropout2d", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
