/* layernorm in the dnnl module, and the passes that groupnorm shares. Threads share the segments. */
#include "ops/layernorm/layernorm_dnnl.h"

#include <math.h>
#include <string.h>

#include "ops/layernorm/layernorm.h"
#include "ops/layernorm/layernorm_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

/* Backward goes through the rows part by part, which the sizes alone decide: parts of few rows are at most four,
 * because each has sums of its own. */
enum { PART_NUMBERS = 16384, FEW_ROWS = 16, FEW_PARTS = 4 };

typedef struct {
    const tdm_kernel_args *args;
    tdm_segments of;
    double eps;
    const tdm_segment_lanes *lanes;
    const float *w, *b; /* NULL: none */
} call;

static int64_t part_rows(const tdm_segments *of) {
    const int64_t rows = of->count / of->groups, in_cache = PART_NUMBERS / (of->groups * of->channels);
    const int64_t share = (rows + FEW_PARTS - 1) / FEW_PARTS, least = share < FEW_ROWS ? share : FEW_ROWS;
    return in_cache > least ? in_cache : least;
}

static int64_t part_count(const tdm_segments *of) {
    return (of->count / of->groups + part_rows(of) - 1) / part_rows(of);
}

/* Sums of dy and of dy (x - center), for each channel: where a channel is one value of a part, else of a segment. Fewer
 * rows may have more parts, up to four. */
static int64_t sums_count(const tdm_segments *of) {
    const int64_t parts = part_count(of);
    if (of->points > 1) return of->count * of->channels;
    return (parts > FEW_PARTS ? parts : FEW_PARTS) * of->groups * of->channels;
}

bool tdm__segments_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_segments *of) {
    (void)desc;
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = tdm__segments_saved(of);
    fit->scratch_bytes = (size_t)sums_count(of) * 2 * sizeof(double);
    return true;
}

static call call_of(const tdm_kernel_args *args, const tdm_segments *of) {
    return (call){.args = args,
                  .of = *of,
                  .lanes = TDM_LANES(tdm__segment_lanes),
                  .w = args->desc->param_count > 0 ? args->param[0] : NULL,
                  .b = args->desc->param_count > 1 ? args->param[1] : NULL};
}

static tdm_status share(call *j, int64_t count, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->of.count * tdm__segment_length(&j->of);
    return tdm__dnnl_share(j->args->device, tdm__dnnl_threads(j->args->desc->threads, numbers), count, work, j);
}

static tdm_segment_norm norm_of(double mean, double invstd) {
    const float center = (float)mean;
    return (tdm_segment_norm){center, (float)invstd, (float)(((double)center - mean) * invstd)};
}

static tdm_segment_norm saved_norm(const call *j, int64_t s) {
    const double *saved = j->args->saved;
    return norm_of(saved[2 * s], saved[2 * s + 1]);
}

static int64_t first_channel(const call *j, int64_t s) {
    return s % j->of.groups * j->of.channels;
}

/* ---- forward ---- */

static void apply(const call *j, int64_t s, const tdm_segment_norm *norm) {
    const tdm_segments *of = &j->of;
    const int64_t at = s * tdm__segment_length(of), c = first_channel(j, s);
    const float *x = j->args->x[0] + at, *w = j->w != NULL ? j->w + c : NULL, *b = j->b != NULL ? j->b + c : NULL;
    float *y = j->args->y + at;
    if (of->points == 1) {
        j->lanes->apply(y, x, of->channels, norm, w, b);
        return;
    }
    for (int64_t k = 0; k < of->channels; k++)
        j->lanes->apply_one(y + k * of->points, x + k * of->points, of->points, norm, w != NULL ? w[k] : 1.0f,
                            b != NULL ? b[k] : 0.0f);
}

static void forward_segments(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t length = tdm__segment_length(&j->of);
    double *saved = j->args->training ? j->args->saved : NULL;
    for (int64_t s = begin; s < end; s++) {
        double mean, variance;
        j->lanes->moments(j->args->x[0] + s * length, length, &mean, &variance);
        const double invstd = 1.0 / sqrt(variance + j->eps);
        if (saved != NULL) saved[2 * s] = mean, saved[2 * s + 1] = invstd;
        const tdm_segment_norm norm = norm_of(mean, invstd);
        apply(j, s, &norm);
    }
}

tdm_status tdm__segments_dnnl_forward(const tdm_kernel_args *args, const tdm_segments *of, double eps) {
    call j = call_of(args, of);
    j.eps = eps;
    return share(&j, of->count, forward_segments);
}

/* ---- backward ---- */

/* Sums of g and g (x - center) over a segment, from those of its channels where they are longer than a value. */
static void segment_sums(const call *j, int64_t s, const tdm_segment_norm *norm, double sum[2]) {
    const tdm_segments *of = &j->of;
    const int64_t at = s * tdm__segment_length(of), c = first_channel(j, s);
    const float *w = j->w != NULL ? j->w + c : NULL;
    if (of->points == 1) {
        j->lanes->sums(j->args->x[0] + at, j->args->dy + at, w, of->channels, norm->center, sum);
        return;
    }
    const double *own = (const double *)j->args->scratch + s * of->channels * 2;
    sum[0] = sum[1] = 0.0;
    for (int64_t k = 0; k < of->channels; k++) {
        sum[0] += own[2 * k] * (w != NULL ? (double)w[k] : 1.0);
        sum[1] += own[2 * k + 1] * (w != NULL ? (double)w[k] : 1.0);
    }
}

/* With g = dy w: dx = invstd * (g - sum g / L - (x - mean) * invstd^2 * sum g (x - mean) / L) */
static void segment_gradient(const call *j, int64_t s) {
    const tdm_segments *of = &j->of;
    const int64_t length = tdm__segment_length(of), at = s * length;
    const double *saved = j->args->saved, mean = saved[2 * s], invstd = saved[2 * s + 1];
    const tdm_segment_norm norm = saved_norm(j, s);
    const double off = mean - (double)norm.center;
    const float *x = j->args->x[0] + at, *dy = j->args->dy + at;
    const float *w = j->w != NULL ? j->w + first_channel(j, s) : NULL;
    float *dx = j->args->dx[0] + at;
    double sum[2];
    segment_sums(j, s, &norm, sum);
    const double slope = (sum[1] - sum[0] * off) * invstd * invstd / (double)length;
    const float level = (float)(sum[0] / (double)length - off * slope), k = (float)slope;
    if (of->points == 1) {
        j->lanes->gradient(dx, x, dy, length, &norm, w, level, k);
        return;
    }
    for (int64_t c = 0; c < of->channels; c++)
        j->lanes->gradient_one(dx + c * of->points, x + c * of->points, dy + c * of->points, of->points, &norm,
                               w != NULL ? w[c] : 1.0f, level, k);
}

static void backward_segments(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    for (int64_t s = begin; s < end; s++) segment_gradient(j, s);
}

/* Channels of all segments, in memory's order. */
static void channel_sums(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    double *sums = j->args->scratch;
    for (int64_t i = begin; i < end; i++) {
        const tdm_segment_norm norm = saved_norm(j, i / j->of.channels);
        const int64_t at = i * j->of.points;
        j->lanes->sums(j->args->x[0] + at, j->args->dy + at, NULL, j->of.points, norm.center, sums + 2 * i);
    }
}

static void store(const call *j, int64_t channel, double dw, double db) {
    j->args->dparam[0][channel] = (float)dw;
    if (j->args->dparam[1] != NULL) j->args->dparam[1][channel] = (float)db;
}

/* dw = sum dy (x - mean) invstd; db = sum dy; over rows in their order */
static void add_channels(const call *j) {
    const double *sums = j->args->scratch, *saved = j->args->saved;
    const int64_t channels = j->of.groups * j->of.channels, rows = j->of.count / j->of.groups;
    for (int64_t c = 0; c < channels; c++) {
        double dw = 0.0, db = 0.0;
        for (int64_t n = 0; n < rows; n++) {
            const int64_t s = n * j->of.groups + c / j->of.channels;
            const double *sum = sums + 2 * (n * channels + c), mean = saved[2 * s];
            dw += (sum[1] - sum[0] * (mean - (double)(float)mean)) * saved[2 * s + 1];
            db += sum[0];
        }
        store(j, c, dw, db);
    }
}

/* ---- backward where each channel is one value ---- */

/* Segments from `s` on, up to `end`, that have the same weights: their gradients, and what they add to those of the
 * weights, while they are in the cache. */
static void backward_block(const call *j, int64_t s, int64_t end, double *dw, double *db) {
    const int64_t groups = j->of.groups, channels = j->of.channels, at = s * channels;
    tdm_segment_block block = {.stride = groups * channels};
    for (; block.count < TDM_SEGMENT_BLOCK && s < end; s += groups) {
        block.norm[block.count++] = saved_norm(j, s);
        if (j->args->dx[0] != NULL) segment_gradient(j, s);
    }
    if (j->args->dparam[0] != NULL) j->lanes->columns(dw, db, j->args->x[0] + at, j->args->dy + at, channels, &block);
}

static void backward_parts(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t groups = j->of.groups, channels = j->of.channels, numbers = groups * channels;
    for (int64_t part = begin; part < end; part++) {
        double *dw = (double *)j->args->scratch + part * numbers * 2, *db = dw + numbers;
        const int64_t first = part * part_rows(&j->of) * groups, last = first + part_rows(&j->of) * groups;
        const int64_t stop = last < j->of.count ? last : j->of.count;
        memset(dw, 0, (size_t)numbers * 2 * sizeof *dw);
        for (int64_t g = 0; g < groups; g++)
            for (int64_t s = first + g; s < stop; s += TDM_SEGMENT_BLOCK * groups)
                backward_block(j, s, stop, dw + g * channels, db + g * channels);
    }
}

/* In the order of the parts. */
static void add_parts(const call *j) {
    const int64_t numbers = j->of.groups * j->of.channels;
    double *sums = j->args->scratch;
    for (int64_t part = 1; part < part_count(&j->of); part++)
        for (int64_t i = 0; i < numbers * 2; i++) sums[i] += sums[part * numbers * 2 + i];
    for (int64_t c = 0; c < numbers; c++) store(j, c, sums[c], sums[numbers + c]);
}

tdm_status tdm__segments_dnnl_backward(const tdm_kernel_args *args, const tdm_segments *of) {
    call j = call_of(args, of);
    if (of->points == 1) {
        TDM_MODULE_TRY(share(&j, part_count(of), backward_parts));
        if (args->dparam[0] != NULL) add_parts(&j);
        return TDM_OK;
    }
    TDM_MODULE_TRY(share(&j, of->count * of->channels, channel_sums));
    if (args->dx[0] != NULL) TDM_MODULE_TRY(share(&j, of->count, backward_segments));
    if (args->dparam[0] != NULL) add_channels(&j);
    return TDM_OK;
}

/* ---- layernorm ---- */

TDM_SEGMENTS_PASSES(layernorm, tdm__segments_dnnl)

const tdm_kernel tdm__layernorm_dnnl = {
    .op = "layernorm", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
