/* batchnorm2d: reference kernel. It computes in double and rounds to float once per result. The batch's mean and 1 /
 * sqrt(var + eps) are saved as doubles for backward, and the number of values in each channel. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d.h"
#include "ops/dot.h"
#include "ops/ops.h"

typedef struct {
    const tdm_kernel_args *args;
    const tdm_batchnorm2d_attrs *attrs;
    int64_t channels, plane; /* plane: elements of one channel in one row */
    tdm_batchnorm2d_blocks blocks;
    double *mean, *invstd, *count; /* of the batch, one per channel; count: of the values in each */
} norm;

static norm norm_of(const tdm_kernel_args *args) {
    const int64_t *x = args->desc->x[0].dim;
    return (norm){.args = args,
                  .attrs = args->desc->attrs,
                  .channels = x[1],
                  .plane = tdm__batchnorm2d_points(args->desc),
                  .blocks = tdm__batchnorm2d_blocks_of(args),
                  .mean = args->saved,
                  .invstd = args->saved != NULL ? (double *)args->saved + x[1] : NULL,
                  .count = args->saved != NULL ? (double *)args->saved + 2 * x[1] : NULL};
}

bool tdm__batchnorm2d_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)tdm__batchnorm2d_block_numbers(desc->x[0].dim[1]) * sizeof(double);
    return true;
}

static tdm_batchnorm2d_moments batch_moments(const norm *b, int64_t channel) {
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
    return (tdm_batchnorm2d_moments){count, mean, squares};
}

/* Of the batch, on this replica or on all of them. */
static tdm_batchnorm2d_moments moments_of(const norm *b, int64_t channel) {
    return b->blocks.replicas > 1 ? tdm__batchnorm2d_join(&b->blocks, channel) : batch_moments(b, channel);
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

tdm_status tdm__batchnorm2d_forward(const tdm_kernel_args *args) {
    norm b = norm_of(args);
    bool of_batch = args->training || !b.attrs->track_running_stats;
    if (of_batch && tdm__batchnorm2d_is_alone(&b.blocks, args->rows * b.plane))
        TDM_FAIL(TDM_E_CONFIG, TDM_BATCHNORM2D_LACKS_ROWS, args->desc->op, (long long)b.channels);
    const bool tracks = args->training && b.attrs->track_running_stats;
    const double momentum = tracks ? tdm__batchnorm2d_momentum(b.attrs, ++*args->counter) : 0;
    for (int64_t c = 0; c < b.channels; c++) {
        tdm_batchnorm2d_moments m = {1, 0, 0};
        if (of_batch)
            m = moments_of(&b, c);
        else
            m.mean = (double)args->buffer[0][c], m.squares = (double)args->buffer[1][c];
        const double variance = m.squares / m.count, invstd = 1.0 / sqrt(variance + b.attrs->eps);
        if (args->training) {
            b.mean[c] = m.mean;
            b.invstd[c] = invstd;
            *b.count = m.count;
        }
        if (tracks) tdm__batchnorm2d_run(&args->buffer[0][c], &args->buffer[1][c], momentum, m.mean, variance, m.count);
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

static tdm_batchnorm2d_sums channel_sums(const norm *b, int64_t c) {
    const tdm_kernel_args *args = b->args;
    tdm_batchnorm2d_sums sums = {0, 0};
    for (int64_t n = 0; n < args->rows; n++) {
        int64_t at = (n * b->channels + c) * b->plane;
        for (int64_t i = at; i < at + b->plane; i++) {
            sums.dy += (double)args->dy[i];
            sums.product += (double)args->dy[i] * ((double)args->x[0][i] - b->mean[c]);
        }
    }
    return sums;
}

/* dx = w * invstd * (dy - sum dy / N - (x - mean) * invstd^2 * sum dy (x - mean) / N), with sums over all replicas
 * dw = invstd * sum dy (x - mean);  db = sum dy: this replica's own, which the mode adds to those of others */
tdm_status tdm__batchnorm2d_backward(const tdm_kernel_args *args) {
    if (!args->training) return backward_running(args);
    norm b = norm_of(args);
    const bool joins = b.blocks.replicas > 1;
    for (int64_t c = 0; c < b.channels; c++) {
        const tdm_batchnorm2d_sums own = joins ? tdm__batchnorm2d_own(&b.blocks, c) : channel_sums(&b, c);
        const tdm_batchnorm2d_sums all = joins ? tdm__batchnorm2d_add(&b.blocks, c) : own;
        const double mean = b.mean[c], invstd = b.invstd[c], count = *b.count;
        if (args->dparam[0] != NULL) {
            args->dparam[0][c] = (float)(own.product * invstd);
            args->dparam[1][c] = (float)own.dy;
        }
        if (args->dx[0] == NULL) continue;
        double scale = b.attrs->affine ? invstd * (double)args->param[0][c] : invstd;
        double slope = all.product * invstd * invstd / count, level = all.dy / count;
        for (int64_t n = 0; n < args->rows; n++) {
            int64_t at = (n * b.channels + c) * b.plane;
            for (int64_t i = at; i < at + b.plane; i++)
                args->dx[0][i] =
                    (float)(((double)args->dy[i] - level - ((double)args->x[0][i] - mean) * slope) * scale);
        }
    }
    return TDM_OK;
}

tdm_status tdm__batchnorm2d_statistics(const tdm_kernel_args *args) {
    const norm b = norm_of(args);
    double *block = args->statistics + args->replica * tdm__batchnorm2d_block_numbers(b.channels);
    block[0] = (double)(args->rows * b.plane);
    for (int64_t c = 0; c < b.channels; c++) {
        double *pair = tdm__batchnorm2d_pair(block, c);
        if (args->dy != NULL) {
            const tdm_batchnorm2d_sums sums = channel_sums(&b, c);
            pair[0] = sums.dy, pair[1] = sums.product;
        } else {
            const tdm_batchnorm2d_moments m = batch_moments(&b, c);
            pair[0] = m.mean, pair[1] = m.squares;
        }
    }
    return TDM_OK;
}

TDM_BATCHNORM2D_REF(batchnorm2d);
