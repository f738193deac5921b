/* What batchnorm2d computes once per channel. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d_dnnl.h"

static tdm_batchnorm2d_forward coefficients(const tdm_batchnorm2d_call *j, int64_t c, double mean, double invstd) {
    const tdm_kernel_args *args = j->args;
    return (tdm_batchnorm2d_forward){.center = mean,
                                     .scale = j->attrs->affine ? invstd * (double)args->param[0][c] : invstd,
                                     .shift = j->attrs->affine ? (double)args->param[1][c] : 0.0};
}

tdm_batchnorm2d_forward tdm__batchnorm2d_forward_of(const tdm_batchnorm2d_call *j, int64_t c, double mean,
                                                    double variance) {
    const tdm_kernel_args *args = j->args;
    double count = j->count;
    if (tdm__batchnorm2d_joins(j)) {
        const tdm_batchnorm2d_moments all = tdm__batchnorm2d_join(&j->blocks, c);
        mean = all.mean, variance = all.squares / all.count, count = all.count;
    }
    if (!j->of_batch) mean = (double)args->buffer[0][c], variance = (double)args->buffer[1][c];
    const double invstd = 1.0 / sqrt(variance + j->attrs->eps);
    if (args->training) {
        j->mean[c] = mean;
        j->invstd[c] = invstd;
        if (c == 0) *j->saved_count = count;
        if (j->attrs->track_running_stats)
            tdm__batchnorm2d_run(&args->buffer[0][c], &args->buffer[1][c], j->momentum, mean, variance, count);
    }
    return coefficients(j, c, mean, invstd);
}

double tdm__batchnorm2d_center(const tdm_batchnorm2d_call *j, int64_t c) {
    return j->args->training ? j->mean[c] : (double)j->args->buffer[0][c];
}

static double invstd_of(const tdm_batchnorm2d_call *j, int64_t c) {
    return j->args->training ? j->invstd[c] : 1.0 / sqrt((double)j->args->buffer[1][c] + j->attrs->eps);
}

tdm_batchnorm2d_forward tdm__batchnorm2d_forward_again(const tdm_batchnorm2d_call *j, int64_t c) {
    return coefficients(j, c, tdm__batchnorm2d_center(j, c), invstd_of(j, c));
}

/* dx = w invstd (dy - sum dy / N - (x - mean) invstd^2 sum dy (x - mean) / N)
 * dw = invstd sum dy (x - mean);  db = sum dy
 * By evaluation rules the statistics are constants: dx = w invstd dy. The sums are taken all the same, because that
 * pass writes the gradient of an added input. */
tdm_batchnorm2d_backward tdm__batchnorm2d_backward_of(const tdm_batchnorm2d_call *j, int64_t c,
                                                      tdm_batchnorm2d_sums own) {
    const tdm_kernel_args *args = j->args;
    const bool constant = !args->training, joins = tdm__batchnorm2d_joins(j);
    if (joins) own = tdm__batchnorm2d_own(&j->blocks, c);
    const tdm_batchnorm2d_sums all = joins ? tdm__batchnorm2d_add(&j->blocks, c) : own;
    const double count = constant ? j->count : *j->saved_count;
    const double invstd = invstd_of(j, c);
    if (args->dparam[0] != NULL) {
        args->dparam[0][c] = (float)(own.product * invstd);
        args->dparam[1][c] = (float)own.dy;
    }
    return (tdm_batchnorm2d_backward){.mean = tdm__batchnorm2d_center(j, c),
                                      .level = constant ? 0.0 : all.dy / count,
                                      .slope = constant ? 0.0 : all.product * invstd * invstd / count,
                                      .scale = j->attrs->affine ? invstd * (double)args->param[0][c] : invstd};
}

double *tdm__batchnorm2d_own_pair(const tdm_batchnorm2d_call *j, int64_t c) {
    double *block = j->args->statistics + j->args->replica * tdm__batchnorm2d_block_numbers(j->norm.channels);
    return tdm__batchnorm2d_pair(block, c);
}
