/* What batchnorm2d computes once per channel. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d_dnnl.h"

static tdm_batchnorm2d_forward coefficients(const tdm_batchnorm2d_job *j, int64_t c, double mean, double invstd) {
    const tdm_kernel_args *args = j->args;
    return (tdm_batchnorm2d_forward){.center = (float)mean,
                                     .scale = (float)(j->attrs->affine ? invstd * (double)args->param[0][c] : invstd),
                                     .shift = j->attrs->affine ? args->param[1][c] : 0.0f};
}

tdm_batchnorm2d_forward tdm__batchnorm2d_forward_of(const tdm_batchnorm2d_job *j, int64_t c, double mean,
                                                    double variance) {
    const tdm_kernel_args *args = j->args;
    if (!j->of_batch) mean = (double)args->buffer[0][c], variance = (double)args->buffer[1][c];
    const double invstd = 1.0 / sqrt(variance + j->attrs->eps);
    if (args->training) {
        j->mean[c] = mean;
        j->invstd[c] = invstd;
        if (j->attrs->track_running_stats)
            tdm__batchnorm2d_run(&args->buffer[0][c], &args->buffer[1][c], j->momentum, mean, variance,
                                 (double)(j->norm.rows * j->norm.points));
    }
    return coefficients(j, c, mean, invstd);
}

double tdm__batchnorm2d_center(const tdm_batchnorm2d_job *j, int64_t c) {
    return j->args->training ? j->mean[c] : (double)j->args->buffer[0][c];
}

static double invstd_of(const tdm_batchnorm2d_job *j, int64_t c) {
    return j->args->training ? j->invstd[c] : 1.0 / sqrt((double)j->args->buffer[1][c] + j->attrs->eps);
}

tdm_batchnorm2d_forward tdm__batchnorm2d_forward_again(const tdm_batchnorm2d_job *j, int64_t c) {
    return coefficients(j, c, tdm__batchnorm2d_center(j, c), invstd_of(j, c));
}

/* dx = w invstd (dy - sum dy / N - (x - mean) invstd^2 sum dy (x - mean) / N)
 * dw = invstd sum dy (x - mean);  db = sum dy
 * By evaluation rules the statistics are constants: dx = w invstd dy. The sums are taken all the same, because that
 * pass writes the gradient of an added input. */
tdm_batchnorm2d_backward tdm__batchnorm2d_backward_of(const tdm_batchnorm2d_job *j, int64_t c, double sum, double dot) {
    const tdm_kernel_args *args = j->args;
    const bool constant = !args->training;
    const double count = (double)(j->norm.rows * j->norm.points);
    const double invstd = invstd_of(j, c);
    if (args->dparam[0] != NULL) {
        args->dparam[0][c] = (float)(dot * invstd);
        args->dparam[1][c] = (float)sum;
    }
    return (tdm_batchnorm2d_backward){.mean = (float)tdm__batchnorm2d_center(j, c),
                                      .level = constant ? 0.0f : (float)(sum / count),
                                      .slope = constant ? 0.0f : (float)(dot * invstd * invstd / count),
                                      .scale = (float)(j->attrs->affine ? invstd * (double)args->param[0][c] : invstd)};
}
