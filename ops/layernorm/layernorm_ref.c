/* layernorm: reference kernel, and that of groupnorm. It computes in double and rounds to float once per result. */
#include <math.h>
#include <string.h>

#include "ops/dot.h"
#include "ops/layernorm/layernorm.h"
#include "ops/ops.h"

bool tdm__segments_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_segments *of) {
    (void)desc;
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = tdm__segments_saved(of);
    fit->scratch_bytes = (size_t)(of->groups * of->channels) * 2 * sizeof(double); /* sums of dw and db */
    return true;
}

static double variance_of(const float *x, int64_t count, double mean) {
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    return squares / (double)count;
}

/* y = (x - mean) * invstd * w + b */
tdm_status tdm__segments_forward(const tdm_kernel_args *args, const tdm_segments *of, double eps) {
    const int64_t length = tdm__segment_length(of);
    const float *w = args->desc->param_count > 0 ? args->param[0] : NULL;
    const float *b = args->desc->param_count > 1 ? args->param[1] : NULL;
    double *saved = args->training ? args->saved : NULL;
    for (int64_t s = 0; s < of->count; s++) {
        const float *x = args->x[0] + s * length;
        float *y = args->y + s * length;
        const int64_t channel = s % of->groups * of->channels;
        const double mean = tdm__sum(x, length) / (double)length;
        const double invstd = 1.0 / sqrt(variance_of(x, length, mean) + eps);
        if (saved != NULL) saved[2 * s] = mean, saved[2 * s + 1] = invstd;
        for (int64_t i = 0; i < length; i++) {
            const int64_t c = channel + i / of->points;
            const double scale = w != NULL ? (double)w[c] : 1.0, shift = b != NULL ? (double)b[c] : 0.0;
            y[i] = (float)(((double)x[i] - mean) * invstd * scale + shift);
        }
    }
    return TDM_OK;
}

/* With g = dy w: dx = invstd * (g - sum g / L - (x - mean) * invstd^2 * sum g (x - mean) / L) */
static void segment_gradient(const tdm_kernel_args *args, const tdm_segments *of, int64_t s) {
    const int64_t length = tdm__segment_length(of), channel = s % of->groups * of->channels;
    const float *x = args->x[0] + s * length, *dy = args->dy + s * length;
    const float *w = args->desc->param_count > 0 ? args->param[0] + channel : NULL;
    const double *saved = args->saved, mean = saved[2 * s], invstd = saved[2 * s + 1];
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < length; i++) {
        const double g = (double)dy[i] * (w != NULL ? (double)w[i / of->points] : 1.0);
        sum += g;
        dot += g * ((double)x[i] - mean);
    }
    const double level = sum / (double)length, slope = dot * invstd * invstd / (double)length;
    for (int64_t i = 0; i < length; i++) {
        const double g = (double)dy[i] * (w != NULL ? (double)w[i / of->points] : 1.0);
        args->dx[0][s * length + i] = (float)((g - level - ((double)x[i] - mean) * slope) * invstd);
    }
}

/* dw[c] = sum dy (x - mean) invstd;  db[c] = sum dy, over the segments in their order */
static void parameter_gradients(const tdm_kernel_args *args, const tdm_segments *of) {
    const int64_t length = tdm__segment_length(of), channels = of->groups * of->channels;
    const double *saved = args->saved;
    double *dw = args->scratch, *db = dw + channels;
    memset(dw, 0, (size_t)channels * 2 * sizeof *dw);
    for (int64_t s = 0; s < of->count; s++) {
        const int64_t channel = s % of->groups * of->channels;
        const float *x = args->x[0] + s * length, *dy = args->dy + s * length;
        for (int64_t i = 0; i < length; i++) {
            dw[channel + i / of->points] += (double)dy[i] * (((double)x[i] - saved[2 * s]) * saved[2 * s + 1]);
            db[channel + i / of->points] += (double)dy[i];
        }
    }
    tdm__to_floats(args->dparam[0], dw, channels);
    if (args->dparam[1] != NULL) tdm__to_floats(args->dparam[1], db, channels);
}

tdm_status tdm__segments_backward(const tdm_kernel_args *args, const tdm_segments *of) {
    if (args->dparam[0] != NULL) parameter_gradients(args, of);
    for (int64_t s = 0; s < of->count && args->dx[0] != NULL; s++) segment_gradient(args, of, s);
    return TDM_OK;
}

TDM_SEGMENTS_PASSES(layernorm, tdm__segments)
TDM_REF_KERNEL(layernorm, fits);
