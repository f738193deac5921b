/* batchnorm2d: reference kernel. It computes in double and rounds to float once per result. The batch's mean and 1 /
 * sqrt(var + eps) are saved as doubles for backward. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d.h"
#include "ops/dot.h"
#include "ops/ops.h"

typedef struct {
    const tdm_kernel_args *args;
    const tdm_batchnorm2d_attrs *attrs;
    int64_t channels, plane; /* plane: elements of one channel in one row */
    double *mean, *invstd;   /* of the batch, one per channel */
} norm;

typedef struct {
    double mean, variance; /* biased */
} moments;

static norm norm_of(const tdm_kernel_args *args) {
    const int64_t *x = args->desc->x[0].dim;
    return (norm){.args = args,
                  .attrs = args->desc->attrs,
                  .channels = x[1],
                  .plane = x[2] * x[3],
                  .mean = args->saved,
                  .invstd = args->saved != NULL ? (double *)args->saved + x[1] : NULL};
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)desc->x[0].dim[1] * 2 * sizeof(double);
    return true;
}

static moments batch_moments(const norm *b, int64_t channel) {
    const float *x = b->args->x[0] + channel * b->plane;
    double count = (double)(b->args->rows * b->plane), sum = 0, squares = 0;
    for (int64_t n = 0; n < b->args->rows; n++) sum += tdm__sum(x + n * b->channels * b->plane, b->plane);
    double mean = sum / count;
    for (int64_t n = 0; n < b->args->rows; n++) {
        for (int64_t i = 0; i < b->plane; i++) {
            double d = (double)x[n * b->channels * b->plane + i] - mean;
            squares += d * d;
        }
    }
    return (moments){mean, squares / count};
}

/* y = (x - mean) * invstd * w + b */
static void normalize(const norm *b, int64_t channel, double mean, double invstd) {
    const float *const *param = b->args->param;
    double scale = b->attrs->affine ? invstd * (double)param[0][channel] : invstd;
    double shift = b->attrs->affine ? (double)param[1][channel] : 0.0;
    for (int64_t n = 0; n < b->args->rows; n++) {
        int64_t at = (n * b->channels + channel) * b->plane;
        for (int64_t i = at; i < at + b->plane; i++)
            b->args->y[i] = (float)(((double)b->args->x[0][i] - mean) * scale + shift);
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    norm b = norm_of(args);
    bool of_batch = args->training || !b.attrs->track_running_stats;
    if (of_batch && args->rows * b.plane == 1)
        TDM_FAIL(TDM_E_CONFIG, TDM_BATCHNORM2D_LACKS_ROWS, (long long)b.channels);
    const bool tracks = args->training && b.attrs->track_running_stats;
    const double momentum = tracks ? tdm__batchnorm2d_momentum(b.attrs, ++*args->counter) : 0;
    for (int64_t c = 0; c < b.channels; c++) {
        moments m = of_batch ? batch_moments(&b, c) : (moments){(double)args->buffer[0][c], (double)args->buffer[1][c]};
        double invstd = 1.0 / sqrt(m.variance + b.attrs->eps);
        if (args->training) {
            b.mean[c] = m.mean;
            b.invstd[c] = invstd;
        }
        if (tracks)
            tdm__batchnorm2d_run(&args->buffer[0][c], &args->buffer[1][c], momentum, m.mean, m.variance,
                                 (double)(args->rows * b.plane));
        normalize(&b, c, m.mean, invstd);
    }
    return TDM_OK;
}

/* By evaluation rules the statistics are constants: dx = w * invstd * dy. */
static tdm_status backward_running(const tdm_kernel_args *args) {
    norm b = norm_of(args);
    for (int64_t c = 0; args->dx[0] != NULL && c < b.channels; c++) {
        const double invstd = 1.0 / sqrt((double)args->buffer[1][c] + b.attrs->eps);
        const double scale = b.attrs->affine ? invstd * (double)args->param[0][c] : invstd;
        for (int64_t n = 0; n < args->rows; n++) {
            const int64_t at = (n * b.channels + c) * b.plane;
            for (int64_t i = at; i < at + b.plane; i++) args->dx[0][i] = (float)((double)args->dy[i] * scale);
        }
    }
    return TDM_OK;
}

/* dx = w * invstd * (dy - sum dy / N - (x - mean) * invstd^2 * sum dy (x - mean) / N)
 * dw = invstd * sum dy (x - mean);  db = sum dy */
static tdm_status backward(const tdm_kernel_args *args) {
    if (!args->training) return backward_running(args);
    norm b = norm_of(args);
    double count = (double)(args->rows * b.plane);
    for (int64_t c = 0; c < b.channels; c++) {
        double mean = b.mean[c], invstd = b.invstd[c], sum = 0, dot = 0;
        for (int64_t n = 0; n < args->rows; n++) {
            int64_t at = (n * b.channels + c) * b.plane;
            for (int64_t i = at; i < at + b.plane; i++) {
                sum += (double)args->dy[i];
                dot += (double)args->dy[i] * ((double)args->x[0][i] - mean);
            }
        }
        if (args->dparam[0] != NULL) {
            args->dparam[0][c] = (float)(dot * invstd);
            args->dparam[1][c] = (float)sum;
        }
        if (args->dx[0] == NULL) continue;
        double scale = b.attrs->affine ? invstd * (double)args->param[0][c] : invstd;
        double slope = dot * invstd * invstd / count, level = sum / count;
        for (int64_t n = 0; n < args->rows; n++) {
            int64_t at = (n * b.channels + c) * b.plane;
            for (int64_t i = at; i < at + b.plane; i++)
                args->dx[0][i] =
                    (float)(((double)args->dy[i] - level - ((double)args->x[0][i] - mean) * slope) * scale);
        }
    }
    return TDM_OK;
}

TDM_REF_KERNEL(batchnorm2d, fits);
