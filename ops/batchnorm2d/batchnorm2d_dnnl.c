/* batchnorm2d for blocked channels, in C, including the addition and the relu that end a residual block. Statistics are
 * in double, as in PyTorch; oneDNN's sums are in float. x is read twice in forward, x and dy twice in backward. */
#include <math.h>
#include <stdio.h>

#include "ops/batchnorm2d/batchnorm2d.h"
#include "ops/batchnorm2d/batchnorm2d_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/planes.h"

typedef struct {
    const tdm_kernel_args *args;
    const tdm_batchnorm2d_attrs *attrs;
    tdm_batchnorm2d_planes norm;
    const tdm_batchnorm2d_lanes *lanes;
    double *mean, *invstd; /* of the batch, one per channel; saved for backward */
    double momentum;
    bool of_batch;
} job;

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t channels = desc->x[0].dim[1];
    const tdm_layout layout = desc->x_layout[0];
    if (layout == TDM_LAYOUT_PLAIN || (layout == TDM_LAYOUT_NHWC && channels % 8 != 0)) {
        snprintf(fit->why, sizeof fit->why, "channels are not in blocks of 8 or 16");
        return false;
    }
    fit->x_layout[0] = fit->x_layout[1] = fit->y_layout = layout;
    fit->epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    fit->saved_bytes = (size_t)channels * 2 * sizeof(double);
    return true;
}

static job job_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const tdm_planes planes = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    const int64_t channels = desc->x[0].dim[1];
    const bool adds = tdm_has_epilogue(desc, TDM_EPILOGUE_ADD);
    job j = {.args = args,
             .attrs = desc->attrs,
             .norm = {.rows = args->rows,
                      .channels = channels,
                      .points = planes.height * planes.width,
                      .inner = planes.inner,
                      .relu = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU),
                      .other = adds ? args->x[1] : NULL,
                      .dother = adds ? args->dx[1] : NULL},
             .mean = args->saved,
             .invstd = args->saved != NULL ? (double *)args->saved + channels : NULL};
    j.lanes = tdm__batchnorm2d_lanes(&j.norm);
    return j;
}

static void forward_lanes(const job *j, int64_t channel, int64_t lanes) {
    const tdm_kernel_args *args = j->args;
    double mean[TDM_BATCHNORM2D_MOST_LANES], variance[TDM_BATCHNORM2D_MOST_LANES];
    float center[TDM_BATCHNORM2D_MOST_LANES], scale[TDM_BATCHNORM2D_MOST_LANES], shift[TDM_BATCHNORM2D_MOST_LANES];
    if (j->of_batch) j->lanes->moments(&j->norm, channel, args->x[0], mean, variance);
    for (int64_t k = 0; k < lanes; k++) {
        const int64_t c = channel + k;
        if (!j->of_batch) mean[k] = (double)args->buffer[0][c], variance[k] = (double)args->buffer[1][c];
        const double invstd = 1.0 / sqrt(variance[k] + j->attrs->eps);
        center[k] = (float)mean[k];
        scale[k] = (float)(j->attrs->affine ? invstd * (double)args->param[0][c] : invstd);
        shift[k] = j->attrs->affine ? args->param[1][c] : 0.0f;
        if (!args->training) continue;
        j->mean[c] = mean[k];
        j->invstd[c] = invstd;
        if (j->attrs->track_running_stats)
            tdm__batchnorm2d_run(&args->buffer[0][c], &args->buffer[1][c], j->momentum, mean[k], variance[k],
                                 (double)(j->norm.rows * j->norm.points));
    }
    j->lanes->apply(&j->norm, channel, args->x[0], args->y, center, scale, shift);
}

static tdm_status share(job *j, tdm_dnnl_work_fn work) {
    const tdm_batchnorm2d_planes *norm = &j->norm;
    const int threads = tdm__dnnl_threads(j->args->desc->threads, norm->rows * norm->channels * norm->points);
    return tdm__dnnl_share(threads, norm->channels / j->lanes->lanes, work, j);
}

static void forward_range(void *data, int64_t begin, int64_t end) {
    const job *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) forward_lanes(j, k * lanes, lanes);
}

static tdm_status forward(const tdm_kernel_args *args) {
    job j = job_of(args);
    j.of_batch = args->training || !j.attrs->track_running_stats;
    if (j.of_batch && j.norm.rows * j.norm.points == 1)
        TDM_MODULE_FAIL(TDM_E_CONFIG, TDM_BATCHNORM2D_LACKS_ROWS, (long long)j.norm.channels);
    if (args->training && j.attrs->track_running_stats)
        j.momentum = tdm__batchnorm2d_momentum(j.attrs, ++*args->counter);
    return share(&j, forward_range);
}

/* dx = w invstd (dy - sum dy / N - (x - mean) invstd^2 sum dy (x - mean) / N)
 * dw = invstd sum dy (x - mean);  db = sum dy
 * By evaluation rules the statistics are constants: dx = w invstd dy. The sums are taken all the same, because that
 * pass writes the gradient of an added input. */
static void backward_lanes(const job *j, int64_t channel, int64_t lanes) {
    const tdm_kernel_args *args = j->args;
    const float *x = args->x[0], *dy = args->dy, *y = j->norm.relu ? args->y : NULL;
    const double count = (double)(j->norm.rows * j->norm.points);
    double sum[TDM_BATCHNORM2D_MOST_LANES], dot[TDM_BATCHNORM2D_MOST_LANES];
    float mean[TDM_BATCHNORM2D_MOST_LANES], level[TDM_BATCHNORM2D_MOST_LANES], slope[TDM_BATCHNORM2D_MOST_LANES],
        scale[TDM_BATCHNORM2D_MOST_LANES];
    const bool constant = !args->training;
    double center[TDM_BATCHNORM2D_MOST_LANES] = {0};
    for (int64_t k = 0; k < lanes; k++)
        center[k] = constant ? (double)args->buffer[0][channel + k] : j->mean[channel + k];
    j->lanes->sums(&j->norm, channel, x, dy, y, center, sum, dot);
    for (int64_t k = 0; k < lanes; k++) {
        const int64_t c = channel + k;
        const double invstd = constant ? 1.0 / sqrt((double)args->buffer[1][c] + j->attrs->eps) : j->invstd[c];
        if (args->dparam[0] != NULL) {
            args->dparam[0][c] = (float)(dot[k] * invstd);
            args->dparam[1][c] = (float)sum[k];
        }
        mean[k] = (float)center[k];
        level[k] = constant ? 0.0f : (float)(sum[k] / count);
        slope[k] = constant ? 0.0f : (float)(dot[k] * invstd * invstd / count);
        scale[k] = (float)(j->attrs->affine ? invstd * (double)args->param[0][c] : invstd);
    }
    if (args->dx[0] != NULL) j->lanes->gradient(&j->norm, channel, x, dy, y, args->dx[0], mean, level, slope, scale);
}

static void backward_range(void *data, int64_t begin, int64_t end) {
    const job *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) backward_lanes(j, k * lanes, lanes);
}

static tdm_status backward(const tdm_kernel_args *args) {
    job j = job_of(args);
    return share(&j, backward_range);
}

const tdm_kernel tdm__batchnorm2d_dnnl = {
    .op = "batchnorm2d",
    .variant = "dnnl",
    .fits = fits,
    .forward = forward,
    .backward = backward,
};
