/* batchnorm2d and batchnorm1d in C, including the addition and the relu that end a residual block. Neighbouring channels
 * go 16 or 8 at a time, else a channel at a time, whose points are neighbours. Statistics are in double, as in PyTorch;
 * oneDNN's sums are in float. x is read twice in forward, x and dy twice in backward. */
#include <stdio.h>

#include "ops/batchnorm2d/batchnorm2d_dnnl.h"

bool tdm__batchnorm2d_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t channels = desc->x[0].dim[1];
    const tdm_layout layout = desc->x_layout[0];
    const bool is_bf16 = desc->precision == TDM_BF16;
    if (is_bf16 && !tdm__batchnorm2d_bf16_fits(desc)) {
        snprintf(fit->why, sizeof fit->why, "bf16 without neighbouring channels in groups of 16");
        return false;
    }
    const bool has_planes = desc->x[0].ndim > 2, odd = channels % 8 != 0;
    if (odd && !has_planes) {
        snprintf(fit->why, sizeof fit->why, "features are no multiple of 8");
        return false;
    }
    fit->x_layout[0] = fit->x_layout[1] = fit->y_layout = odd ? TDM_LAYOUT_PLAIN : layout;
    fit->epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    fit->saved_bytes = (size_t)tdm__batchnorm2d_block_numbers(channels) * sizeof(double);
    if (is_bf16) fit->scratch_bytes = tdm__batchnorm2d_bf16_scratch(desc);
    return true;
}

static bool is_past_cache(const tdm_kernel_args *args, int64_t count) {
    const float *other = tdm_has_epilogue(args->desc, TDM_EPILOGUE_ADD) ? args->dx[1] : NULL;
    return tdm__is_past_cache(args->y, count) && tdm__is_past_cache(args->dx[0], count) &&
           tdm__is_past_cache(other, count);
}

static tdm_batchnorm2d_call job_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const int64_t channels = desc->x[0].dim[1], points = tdm__batchnorm2d_points(desc);
    const bool last = tdm__batchnorm2d_channels_last(desc, desc->x_layout[0]);
    const bool adds = tdm_has_epilogue(desc, TDM_EPILOGUE_ADD);
    tdm_batchnorm2d_call j = {
        .args = args,
        .attrs = desc->attrs,
        .norm = {.rows = args->rows,
                 .channels = channels,
                 .points = points,
                 .inner = last ? channels : tdm__planes_of(&desc->x[0], 1, desc->x_layout[0]).inner,
                 .past_cache = is_past_cache(args, args->rows * channels * points),
                 .relu = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU),
                 .other = adds ? args->x[1] : NULL,
                 .dother = adds ? args->dx[1] : NULL},
        .blocks = tdm__batchnorm2d_blocks_of(args),
        .mean = args->saved,
        .count = (double)(args->rows * points)};
    if (args->saved != NULL) j.invstd = j.mean + channels, j.saved_count = j.invstd + channels;
    j.lanes = tdm__batchnorm2d_lanes(&j.norm);
    return j;
}

static void forward_lanes(const tdm_batchnorm2d_call *j, int64_t channel, int64_t lanes) {
    const tdm_kernel_args *args = j->args;
    double mean[TDM_BATCHNORM2D_MOST_LANES] = {0}, variance[TDM_BATCHNORM2D_MOST_LANES] = {0};
    double center[TDM_BATCHNORM2D_MOST_LANES], scale[TDM_BATCHNORM2D_MOST_LANES], shift[TDM_BATCHNORM2D_MOST_LANES];
    if (j->of_batch && !tdm__batchnorm2d_joins(j)) j->lanes->moments(&j->norm, channel, args->x[0], mean, variance);
    for (int64_t k = 0; k < lanes; k++) {
        const tdm_batchnorm2d_forward of = tdm__batchnorm2d_forward_of(j, channel + k, mean[k], variance[k]);
        center[k] = of.center, scale[k] = of.scale, shift[k] = of.shift;
    }
    j->lanes->apply(&j->norm, channel, args->x[0], args->y, center, scale, shift);
}

static tdm_status share(tdm_batchnorm2d_call *j, tdm_dnnl_work_fn work) {
    const tdm_batchnorm2d_planes *norm = &j->norm;
    const int threads = tdm__dnnl_threads(j->args->desc->threads, norm->rows * norm->channels * norm->points);
    return tdm__dnnl_share(j->args->device, threads, norm->channels / j->lanes->lanes, work, j);
}

static void forward_range(void *data, int64_t begin, int64_t end) {
    const tdm_batchnorm2d_call *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) forward_lanes(j, k * lanes, lanes);
}

tdm_status tdm__batchnorm2d_dnnl_forward(const tdm_kernel_args *args) {
    tdm_batchnorm2d_call j = job_of(args);
    j.of_batch = args->training || !j.attrs->track_running_stats;
    if (j.of_batch && tdm__batchnorm2d_is_alone(&j.blocks, j.norm.rows * j.norm.points))
        TDM_MODULE_FAIL(TDM_E_CONFIG, TDM_BATCHNORM2D_LACKS_ROWS, args->desc->op, (long long)j.norm.channels);
    if (args->training && j.attrs->track_running_stats)
        j.momentum = tdm__batchnorm2d_momentum(j.attrs, ++*args->counter);
    return args->desc->precision == TDM_BF16 ? tdm__batchnorm2d_bf16_forward(&j) : share(&j, forward_range);
}

static void recompute_lanes(const tdm_batchnorm2d_call *j, int64_t channel, int64_t lanes) {
    double center[TDM_BATCHNORM2D_MOST_LANES], scale[TDM_BATCHNORM2D_MOST_LANES], shift[TDM_BATCHNORM2D_MOST_LANES];
    for (int64_t k = 0; k < lanes; k++) {
        const tdm_batchnorm2d_forward of = tdm__batchnorm2d_forward_again(j, channel + k);
        center[k] = of.center, scale[k] = of.scale, shift[k] = of.shift;
    }
    j->lanes->apply(&j->norm, channel, j->args->x[0], j->args->y, center, scale, shift);
}

static void recompute_range(void *data, int64_t begin, int64_t end) {
    const tdm_batchnorm2d_call *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) recompute_lanes(j, k * lanes, lanes);
}

tdm_status tdm__batchnorm2d_dnnl_recompute(const tdm_kernel_args *args) {
    tdm_batchnorm2d_call j = job_of(args);
    return args->desc->precision == TDM_BF16 ? tdm__batchnorm2d_bf16_recompute(&j) : share(&j, recompute_range);
}

/* Also writes the gradient of the added input. */
static void take_sums(const tdm_batchnorm2d_call *j, int64_t channel, int64_t lanes, double *sum, double *dot) {
    const tdm_kernel_args *args = j->args;
    double center[TDM_BATCHNORM2D_MOST_LANES] = {0};
    for (int64_t k = 0; k < lanes; k++) center[k] = tdm__batchnorm2d_center(j, channel + k);
    j->lanes->sums(&j->norm, channel, args->x[0], args->dy, j->norm.relu ? args->y : NULL, center, sum, dot);
}

static void backward_lanes(const tdm_batchnorm2d_call *j, int64_t channel, int64_t lanes) {
    const tdm_kernel_args *args = j->args;
    const float *x = args->x[0], *dy = args->dy, *y = j->norm.relu ? args->y : NULL;
    double sum[TDM_BATCHNORM2D_MOST_LANES] = {0}, dot[TDM_BATCHNORM2D_MOST_LANES] = {0};
    double mean[TDM_BATCHNORM2D_MOST_LANES], level[TDM_BATCHNORM2D_MOST_LANES], slope[TDM_BATCHNORM2D_MOST_LANES],
        scale[TDM_BATCHNORM2D_MOST_LANES];
    if (!tdm__batchnorm2d_joins(j)) take_sums(j, channel, lanes, sum, dot);
    for (int64_t k = 0; k < lanes; k++) {
        const tdm_batchnorm2d_backward of =
            tdm__batchnorm2d_backward_of(j, channel + k, (tdm_batchnorm2d_sums){sum[k], dot[k]});
        mean[k] = of.mean, level[k] = of.level, slope[k] = of.slope, scale[k] = of.scale;
    }
    if (args->dx[0] != NULL) j->lanes->gradient(&j->norm, channel, x, dy, y, args->dx[0], mean, level, slope, scale);
}

static void backward_range(void *data, int64_t begin, int64_t end) {
    const tdm_batchnorm2d_call *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) backward_lanes(j, k * lanes, lanes);
}

tdm_status tdm__batchnorm2d_dnnl_backward(const tdm_kernel_args *args) {
    tdm_batchnorm2d_call j = job_of(args);
    return args->desc->precision == TDM_BF16 ? tdm__batchnorm2d_bf16_backward(&j) : share(&j, backward_range);
}

/* ---- statistics of several replicas ---- */

static void statistics_lanes(const tdm_batchnorm2d_call *j, int64_t channel, int64_t lanes) {
    double first[TDM_BATCHNORM2D_MOST_LANES] = {0}, second[TDM_BATCHNORM2D_MOST_LANES] = {0};
    const bool forward = j->args->dy == NULL;
    if (forward)
        j->lanes->moments(&j->norm, channel, j->args->x[0], first, second);
    else
        take_sums(j, channel, lanes, first, second);
    for (int64_t k = 0; k < lanes; k++) {
        double *pair = tdm__batchnorm2d_own_pair(j, channel + k);
        pair[0] = first[k];
        pair[1] = forward ? second[k] * j->count : second[k];
    }
}

static void statistics_range(void *data, int64_t begin, int64_t end) {
    const tdm_batchnorm2d_call *j = data;
    const int64_t lanes = j->lanes->lanes;
    for (int64_t k = begin; k < end; k++) statistics_lanes(j, k * lanes, lanes);
}

tdm_status tdm__batchnorm2d_dnnl_statistics(const tdm_kernel_args *args) {
    tdm_batchnorm2d_call j = job_of(args);
    args->statistics[args->replica * tdm__batchnorm2d_block_numbers(j.norm.channels)] = j.count;
    return args->desc->precision == TDM_BF16 ? tdm__batchnorm2d_bf16_statistics(&j) : share(&j, statistics_range);
}

TDM_BATCHNORM2D_DNNL(batchnorm2d);
