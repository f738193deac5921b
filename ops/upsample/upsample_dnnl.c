/* upsample in the dnnl module: along one axis, then along the other, so that each sum of a row is used for all rows
 * that need it. Threads share the planes. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/upsample/upsample_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/planes.h"

/* Along one axis: the taps of each output, and backward the span of each input. */
typedef struct {
    tdm_upsample_taps *taps;
    tdm_upsample_span *spans;
    float *weight; /* of all spans: at most two for each output */
} axis;

typedef struct {
    const tdm_kernel_args *args;
    tdm_planes x, y;
    axis down, across;
    float *rows; /* two rows as wide as y's for each plane */
    bool bilinear;
    const tdm_upsample_lanes *lanes;
} job;

/* ---- memory ---- */

/* Takes `bytes` behind *used of the scratch; base NULL: only counts. */
static void *take(char *base, size_t *used, int64_t count, size_t bytes) {
    void *out = base != NULL ? base + *used : NULL;
    *used += tdm__dnnl_round((size_t)count * bytes);
    return out;
}

static void place_axis(axis *a, char *base, size_t *used, int64_t in, int64_t out) {
    a->taps = take(base, used, out, sizeof *a->taps);
    a->spans = take(base, used, in, sizeof *a->spans);
    a->weight = take(base, used, 2 * out, sizeof *a->weight);
}

static size_t place(job *j, char *base) {
    size_t used = 0;
    place_axis(&j->down, base, &used, j->x.height, j->y.height);
    place_axis(&j->across, base, &used, j->x.width, j->y.width);
    j->rows = take(base, &used, j->y.count * 2 * j->y.width * j->y.inner, sizeof *j->rows);
    return used;
}

static void set_planes(job *j, const tdm_kernel_desc *desc, int64_t rows) {
    j->x = tdm__planes_of(&desc->x[0], rows, desc->x_layout[0]);
    j->y = tdm__planes_of(&desc->y, rows, desc->y_layout);
}

/* The rows of all planes take as much in every layout. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    job j = {.x = tdm__planes_of(&desc->x[0], desc->x[0].dim[0], TDM_LAYOUT_PLAIN),
             .y = tdm__planes_of(&desc->y, desc->y.dim[0], TDM_LAYOUT_PLAIN)};
    fit->scratch_bytes = place(&j, NULL);
    return tdm__elementwise_fits(desc, fit);
}

static void set_taps(axis *a, const tdm_kernel_desc *desc, int index) {
    const tdm_upsample_axis of = tdm__upsample_axis_of(desc, index);
    for (int64_t q = 0; q < of.out; q++) a->taps[q] = tdm__upsample_taps_of(&of, q);
}

/* Taps never go back, so the outputs of a point are neighbours. */
static void set_spans(axis *a, int64_t in, int64_t out) {
    float *weight = a->weight;
    int64_t first = 0;
    for (int64_t at = 0; at < in; at++) {
        while (first < out && a->taps[first].second < at) first++;
        a->spans[at] = (tdm_upsample_span){first, 0, weight};
        for (int64_t q = first; q < out && a->taps[q].first <= at; q++, a->spans[at].count++)
            *weight++ = tdm__upsample_weight(&a->taps[q], at);
    }
}

static job job_of(const tdm_kernel_args *args) {
    const tdm_upsample_attrs *attrs = args->desc->attrs;
    job j = {.args = args, .bilinear = attrs->mode == TDM_UPSAMPLE_BILINEAR, .lanes = TDM_LANES(tdm__upsample_lanes)};
    set_planes(&j, args->desc, args->rows);
    place(&j, args->scratch);
    set_taps(&j.down, args->desc, 0);
    set_taps(&j.across, args->desc, 1);
    return j;
}

static tdm_status share(job *j, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->y.count * j->y.height * j->y.width * j->y.inner;
    return tdm__dnnl_share(tdm__dnnl_threads(j->args->desc->threads, numbers), j->y.count, work, j);
}

/* ---- forward ---- */

/* A plane's widened rows of x: row r in place r % 2, where a row and the next have room. */
typedef struct {
    float *row[2];
    int64_t is[2]; /* which row; -1: none */
} widened;

static const float *widened_row(const job *j, widened *w, const float *x, int64_t r) {
    const int64_t at = r % 2, inner = j->x.inner;
    const float *from = x + r * j->x.width * inner;
    if (w->is[at] != r && j->bilinear) j->lanes->widen(j->across.taps, j->y.width, inner, from, w->row[at]);
    if (w->is[at] != r && !j->bilinear) j->lanes->repeat(j->across.taps, j->y.width, inner, from, w->row[at]);
    w->is[at] = r;
    return w->row[at];
}

static void forward_planes(void *data, int64_t begin, int64_t end) {
    const job *j = data;
    const int64_t wide = j->y.width * j->y.inner;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *x = j->args->x[0] + plane * j->x.height * j->x.width * j->x.inner;
        float *y = j->args->y + plane * j->y.height * wide, *rows = j->rows + plane * 2 * wide;
        widened w = {{rows, rows + wide}, {-1, -1}};
        for (int64_t p = 0; p < j->y.height; p++, y += wide) {
            const tdm_upsample_taps at = j->down.taps[p];
            const float *a = widened_row(j, &w, x, at.first);
            if (j->bilinear)
                j->lanes->blend(y, a, at.near, widened_row(j, &w, x, at.second), at.far, wide);
            else
                memcpy(y, a, (size_t)wide * sizeof *y);
        }
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    job j = job_of(args);
    return share(&j, forward_planes);
}

/* ---- backward ---- */

static void backward_planes(void *data, int64_t begin, int64_t end) {
    const job *j = data;
    const int64_t wide = j->y.width * j->y.inner, narrow = j->x.width * j->x.inner;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *dy = j->args->dy + plane * j->y.height * wide;
        float *dx = j->args->dx[0] + plane * j->x.height * narrow, *sum = j->rows + plane * 2 * wide;
        for (int64_t r = 0; r < j->x.height; r++, dx += narrow) {
            const tdm_upsample_span span = j->down.spans[r];
            if (span.count == 0) memset(sum, 0, (size_t)wide * sizeof *sum);
            for (int64_t p = 0; p < span.count; p++)
                j->lanes->gather(sum, p > 0, dy + (span.first + p) * wide, span.weight[p], wide);
            j->lanes->narrow(j->across.spans, j->x.width, j->x.inner, sum, dx);
        }
    }
}

static tdm_status backward(const tdm_kernel_args *args) {
    job j = job_of(args);
    set_spans(&j.down, j.x.height, j.y.height);
    set_spans(&j.across, j.x.width, j.y.width);
    return share(&j, backward_planes);
}

const tdm_kernel tdm__upsample_dnnl = {
    .op = "upsample", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
