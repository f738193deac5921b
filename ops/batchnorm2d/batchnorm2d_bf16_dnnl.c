/* batchnorm2d in bf16 with neighbouring channels. Threads share the rows; the sums of each row are added in the order
 * of the rows, so their number changes no bit. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d_dnnl.h"

#include "ops/batchnorm2d/batchnorm2d_bf16_lanes.h"
#include "runtime/base/bf16.h"

/* In scratch: two sums for each row and channel, and what is computed once per channel. */
typedef struct {
    const tdm_batchnorm2d_call *call;
    const tdm_batchnorm2d_bf16_lanes *lanes;
    int64_t channels;
    double *sum, *product, *mean;
    float *of[4];
} work;

enum { GROUP = 16 };

bool tdm__batchnorm2d_bf16_fits(const tdm_kernel_desc *desc) {
    return tdm__batchnorm2d_channels_last(desc, desc->x_layout[0]) && desc->x[0].dim[1] % GROUP == 0;
}

size_t tdm__batchnorm2d_bf16_scratch(const tdm_kernel_desc *desc) {
    const size_t channels = (size_t)desc->x[0].dim[1], rows = (size_t)desc->x[0].dim[0];
    return channels * ((2 * rows + 1) * sizeof(double) + 4 * sizeof(float));
}

static work work_of(const tdm_batchnorm2d_call *call) {
    const int64_t channels = call->norm.channels, rows = call->norm.rows;
    work w = {.call = call, .lanes = TDM_LANES(tdm__batchnorm2d_bf16_lanes), .channels = channels};
    w.sum = call->args->scratch;
    w.product = w.sum + rows * channels;
    w.mean = w.product + rows * channels;
    for (int i = 0; i < 4; i++) w.of[i] = (float *)(void *)(w.mean + channels) + i * channels;
    return w;
}

/* Pointers of tdm_kernel_args are to 16-bit numbers here. */
static const uint16_t *numbers(const float *tensor) {
    return (const uint16_t *)(const void *)tensor;
}

static uint16_t *written(float *tensor) {
    return (uint16_t *)(void *)tensor;
}

static tdm_batchnorm2d_row row_of(const work *w, int64_t n) {
    const tdm_batchnorm2d_call *j = w->call;
    const int64_t at = n * j->norm.points * w->channels;
    tdm_batchnorm2d_row row = {.points = j->norm.points, .channels = w->channels, .relu = j->norm.relu};
    row.x = numbers(j->args->x[0]) + at;
    if (j->args->dy != NULL) row.dy = numbers(j->args->dy) + at;
    if (j->args->dy != NULL && j->norm.relu) row.relu_y = numbers(j->args->y) + at;
    if (j->norm.other != NULL) row.other = numbers(j->norm.other) + at;
    if (j->norm.dother != NULL) row.dother = written(j->norm.dother) + at;
    return row;
}

static tdm_status share(work *w, tdm_dnnl_work_fn run) {
    const tdm_batchnorm2d_planes *norm = &w->call->norm;
    const int threads = tdm__dnnl_threads(w->call->args->desc->threads, norm->rows * norm->points * w->channels);
    return tdm__dnnl_share(w->call->args->device, threads, norm->rows, run, w);
}

/* Adds the sums of the rows, in their order, to those of row 0. */
static void add_rows(const work *w) {
    for (int64_t n = 1; n < w->call->norm.rows; n++) {
        for (int64_t c = 0; c < w->channels; c++) {
            w->sum[c] += w->sum[n * w->channels + c];
            w->product[c] += w->product[n * w->channels + c];
        }
    }
}

/* ---- forward ---- */

static void moments(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t n = begin; n < end; n++) {
        const tdm_batchnorm2d_row row = row_of(w, n);
        w->lanes->moments(&row, w->of[0], w->sum + n * w->channels, w->product + n * w->channels);
    }
}

static void apply(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t n = begin; n < end; n++) {
        const tdm_batchnorm2d_row row = row_of(w, n);
        uint16_t *y = written(w->call->args->y) + n * row.points * row.channels;
        w->lanes->apply(&row, y, w->of[0], w->of[1], w->of[2]);
    }
}

/* Distances are taken from each channel's first value: it is close enough to the mean that nothing cancels in double.
 * From 0 where that value is infinite or NaN, as in batchnorm2d_lanes.inc.c. */
static tdm_status take_moments(work *w) {
    for (int64_t c = 0; c < w->channels; c++) {
        const float first = tdm__bf16_float(numbers(w->call->args->x[0])[c]);
        w->of[0][c] = isfinite(first) ? first : 0.0f;
    }
    TDM_MODULE_TRY(share(w, moments));
    add_rows(w);
    return TDM_OK;
}

/* After take_moments. */
static double mean_and_variance(const work *w, int64_t c, double *variance) {
    const double shift = w->sum[c] / w->call->count;
    *variance = w->product[c] / w->call->count - shift * shift;
    if (*variance < 0.0) *variance = 0.0;
    return (double)w->of[0][c] + shift;
}

tdm_status tdm__batchnorm2d_bf16_forward(const tdm_batchnorm2d_call *call) {
    work w = work_of(call);
    const bool takes = call->of_batch && !tdm__batchnorm2d_joins(call);
    if (takes) TDM_MODULE_TRY(take_moments(&w));
    for (int64_t c = 0; c < w.channels; c++) {
        double variance = 0;
        const double mean = takes ? mean_and_variance(&w, c, &variance) : 0;
        const tdm_batchnorm2d_forward of = tdm__batchnorm2d_forward_of(call, c, mean, variance);
        w.of[0][c] = (float)of.center, w.of[1][c] = (float)of.scale, w.of[2][c] = (float)of.shift;
    }
    return share(&w, apply);
}

tdm_status tdm__batchnorm2d_bf16_recompute(const tdm_batchnorm2d_call *call) {
    work w = work_of(call);
    for (int64_t c = 0; c < w.channels; c++) {
        const tdm_batchnorm2d_forward of = tdm__batchnorm2d_forward_again(call, c);
        w.of[0][c] = (float)of.center, w.of[1][c] = (float)of.scale, w.of[2][c] = (float)of.shift;
    }
    return share(&w, apply);
}

/* ---- backward ---- */

static void sums(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t n = begin; n < end; n++) {
        const tdm_batchnorm2d_row row = row_of(w, n);
        w->lanes->sums(&row, w->mean, w->sum + n * w->channels, w->product + n * w->channels);
    }
}

static void gradient(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t n = begin; n < end; n++) {
        const tdm_batchnorm2d_row row = row_of(w, n);
        uint16_t *dx = written(w->call->args->dx[0]) + n * row.points * row.channels;
        w->lanes->gradient(&row, dx, w->of[0], w->of[1], w->of[2], w->of[3]);
    }
}

static tdm_status take_sums(work *w) {
    for (int64_t c = 0; c < w->channels; c++) w->mean[c] = tdm__batchnorm2d_center(w->call, c);
    TDM_MODULE_TRY(share(w, sums));
    add_rows(w);
    return TDM_OK;
}

tdm_status tdm__batchnorm2d_bf16_backward(const tdm_batchnorm2d_call *call) {
    work w = work_of(call);
    const bool joins = tdm__batchnorm2d_joins(call);
    if (!joins) TDM_MODULE_TRY(take_sums(&w));
    for (int64_t c = 0; c < w.channels; c++) {
        const tdm_batchnorm2d_sums own = {joins ? 0 : w.sum[c], joins ? 0 : w.product[c]};
        const tdm_batchnorm2d_backward of = tdm__batchnorm2d_backward_of(call, c, own);
        w.of[0][c] = (float)of.mean, w.of[1][c] = (float)of.level;
        w.of[2][c] = (float)of.slope, w.of[3][c] = (float)of.scale;
    }
    return call->args->dx[0] != NULL ? share(&w, gradient) : TDM_OK;
}

/* ---- statistics of several replicas ---- */

tdm_status tdm__batchnorm2d_bf16_statistics(const tdm_batchnorm2d_call *call) {
    work w = work_of(call);
    const bool forward = call->args->dy == NULL;
    TDM_MODULE_TRY(forward ? take_moments(&w) : take_sums(&w));
    for (int64_t c = 0; c < w.channels; c++) {
        double *pair = tdm__batchnorm2d_own_pair(call, c), variance = 0;
        pair[0] = forward ? mean_and_variance(&w, c, &variance) : w.sum[c];
        pair[1] = forward ? variance * call->count : w.product[c];
    }
    return TDM_OK;
}
