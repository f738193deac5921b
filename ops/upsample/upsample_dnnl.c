/* upsample in the dnnl module: along one axis, then along the other, so that each sum of a row is used for all rows
 * that need it. Threads share the planes. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/upsample/upsample_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/planes.h"

typedef struct {
    const tdm_kernel_args *args;
    tdm_planes x, y;
    tdm_upsample_row down, across; /* down: a column */
    float *weight[2];              /* of all their spans: at most two for each output */
    float *rows;                   /* two rows as wide as y's for each plane */
    const tdm_upsample_lanes *lanes;
} call;

/* ---- memory ---- */

/* Takes `bytes` behind *used of the scratch; base NULL: only counts. */
static void *take(char *base, size_t *used, int64_t count, size_t bytes) {
    void *out = base != NULL ? base + *used : NULL;
    *used += tdm__dnnl_round((size_t)count * bytes);
    return out;
}

static float *lay_out_row(tdm_upsample_row *row, char *base, size_t *used) {
    row->taps = take(base, used, row->large, sizeof *row->taps);
    row->spans = take(base, used, row->small, sizeof *row->spans);
    return take(base, used, 2 * row->large, sizeof(float));
}

static size_t lay_out(call *j, char *base) {
    size_t used = 0;
    j->weight[0] = lay_out_row(&j->down, base, &used);
    j->weight[1] = lay_out_row(&j->across, base, &used);
    j->rows = take(base, &used, j->y.count * 2 * j->y.width * j->y.inner, sizeof *j->rows);
    return used;
}

static call sized(const tdm_kernel_desc *desc, int64_t rows, tdm_layout layout) {
    call j = {.x = tdm__planes_of(&desc->x[0], rows, layout), .y = tdm__planes_of(&desc->y, rows, layout)};
    j.down = (tdm_upsample_row){.small = j.x.height, .large = j.y.height, .inner = 1};
    j.across = (tdm_upsample_row){.small = j.x.width, .large = j.y.width, .inner = j.x.inner};
    return j;
}

/* The rows of all planes take as much in every layout. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    call j = sized(desc, desc->x[0].dim[0], TDM_LAYOUT_PLAIN);
    fit->scratch_bytes = lay_out(&j, NULL);
    return tdm__elementwise_fits(desc, fit);
}

static void set_taps(tdm_upsample_row *row, const tdm_kernel_desc *desc, int index) {
    const tdm_upsample_axis of = tdm__upsample_axis_of(desc, index);
    row->bilinear = of.bilinear;
    row->is_twice = row->inner == 1 && of.out == 2 * of.in && (!of.bilinear || (!of.align_corners && of.scale == 0.5f));
    for (int64_t q = 0; q < of.out; q++) row->taps[q] = tdm__upsample_taps_of(&of, q);
}

/* Taps never go back, so the outputs of a point are neighbours. */
static void set_spans(tdm_upsample_row *row, float *weight) {
    int64_t first = 0;
    for (int64_t at = 0; at < row->small; at++) {
        while (first < row->large && row->taps[first].second < at) first++;
        row->spans[at] = (tdm_upsample_span){first, 0, weight};
        for (int64_t q = first; q < row->large && row->taps[q].first <= at; q++, row->spans[at].count++)
            *weight++ = tdm__upsample_weight(&row->taps[q], at);
    }
}

static call call_of(const tdm_kernel_args *args) {
    call j = sized(args->desc, args->rows, args->desc->x_layout[0]);
    j.args = args;
    j.lanes = TDM_LANES(tdm__upsample_lanes);
    lay_out(&j, args->scratch);
    set_taps(&j.down, args->desc, 0);
    set_taps(&j.across, args->desc, 1);
    return j;
}

static tdm_status share(call *j, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->y.count * j->y.height * j->y.width * j->y.inner;
    return tdm__dnnl_share(j->args->device, tdm__dnnl_threads(j->args->desc->threads, numbers), j->y.count, work, j);
}

/* ---- forward ---- */

/* A plane's enlarged rows of x: row r in place r % 2, where a row and the next have room. */
typedef struct {
    float *row[2];
    int64_t is[2]; /* which row; -1: none */
} enlarged;

static const float *enlarged_row(const call *j, enlarged *w, const float *x, int64_t r) {
    const int64_t at = r % 2;
    if (w->is[at] != r) j->lanes->enlarge(&j->across, x + r * j->x.width * j->x.inner, w->row[at]);
    w->is[at] = r;
    return w->row[at];
}

static void blend_rows(const call *j, const float *x, float *y, float *rows) {
    const int64_t large = j->y.width * j->y.inner;
    enlarged w = {{rows, rows + large}, {-1, -1}};
    for (int64_t p = 0; p < j->y.height; p++, y += large) {
        const tdm_upsample_taps at = j->down.taps[p];
        const float *a = enlarged_row(j, &w, x, at.first);
        j->lanes->blend(y, a, at.near, enlarged_row(j, &w, x, at.second), at.far, large);
    }
}

static void repeat_rows(const call *j, const float *x, float *y) {
    const int64_t large = j->y.width * j->y.inner;
    for (int64_t p = 0; p < j->y.height; p++, y += large) {
        const int64_t r = j->down.taps[p].first;
        if (p > 0 && r == j->down.taps[p - 1].first)
            memcpy(y, y - large, (size_t)large * sizeof *y);
        else
            j->lanes->enlarge(&j->across, x + r * j->x.width * j->x.inner, y);
    }
}

static void forward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t large = j->y.width * j->y.inner, small = j->x.width * j->x.inner;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *x = j->args->x[0] + plane * j->x.height * small;
        float *y = j->args->y + plane * j->y.height * large;
        if (j->down.bilinear)
            blend_rows(j, x, y, j->rows + plane * 2 * large);
        else
            repeat_rows(j, x, y);
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    call j = call_of(args);
    return share(&j, forward_planes);
}

/* ---- backward ---- */

static void backward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t large = j->y.width * j->y.inner, small = j->x.width * j->x.inner;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *dy = j->args->dy + plane * j->y.height * large;
        float *dx = j->args->dx[0] + plane * j->x.height * small, *sum = j->rows + plane * 2 * large;
        for (int64_t r = 0; r < j->x.height; r++, dx += small) {
            const tdm_upsample_span span = j->down.spans[r];
            if (span.count == 0) memset(sum, 0, (size_t)large * sizeof *sum);
            for (int64_t p = 0; p < span.count; p++)
                j->lanes->gather(sum, p > 0, dy + (span.first + p) * large, span.weight[p], large);
            j->lanes->shrink(&j->across, sum, dx);
        }
    }
}

static tdm_status backward(const tdm_kernel_args *args) {
    call j = call_of(args);
    set_spans(&j.down, j.weight[0]);
    set_spans(&j.across, j.weight[1]);
    return share(&j, backward_planes);
}

const tdm_kernel tdm__upsample_dnnl = {
    .op = "upsample", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
