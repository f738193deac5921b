/* log_softmax: reference kernel, also the one that runs on the CPU. It computes in double and rounds to float once per
 * result. */
#include <math.h>

#include "ops/ops.h"

/* y = (x - max) - log(sum exp(x - max)): no exp overflows. A NaN, or an infinity as the largest, makes its row NaN, as
 * in PyTorch. */
static tdm_status forward(const tdm_kernel_args *args) {
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t n = 0; n < args->rows; n++) {
        const float *x = args->x[0] + n * classes;
        float *y = args->y + n * classes;
        double max = x[0], sum = 0;
        for (int64_t c = 1; c < classes; c++) max = (double)x[c] > max ? (double)x[c] : max;
        for (int64_t c = 0; c < classes; c++) sum += exp((double)x[c] - max);
        const double log_sum = log(sum);
        for (int64_t c = 0; c < classes; c++) y[c] = (float)((double)x[c] - max - log_sum);
    }
    return TDM_OK;
}

/* dx = dy - softmax(x) sum dy, where softmax(x) = exp(y) */
static tdm_status backward(const tdm_kernel_args *args) {
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * classes, *dy = args->dy + n * classes;
        float *dx = args->dx[0] + n * classes;
        double sum = 0;
        for (int64_t c = 0; c < classes; c++) sum += (double)dy[c];
        for (int64_t c = 0; c < classes; c++) dx[c] = (float)((double)dy[c] - exp((double)y[c]) * sum);
    }
    return TDM_OK;
}

TDM_REF_KERNEL(log_softmax, NULL);
