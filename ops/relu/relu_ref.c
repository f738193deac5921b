/* relu: reference kernel, also the one that runs on the CPU. NaN passes through, as in PyTorch. */
#include "ops/elementwise.h"
#include "ops/ops.h"

/* y = max(0, x) */
static tdm_status forward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    const float *x = args->x[0];
    float *y = args->y;
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
    return TDM_OK;
}

/* dx = 0 where y <= 0, else dy. It is read in any case: else compilers make a branch of it, which takes ten times as
 * long. */
static tdm_status backward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    const float *y = args->y, *dy = args->dy;
    float *dx = args->dx[0];
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) {
        const float d = dy[i];
        dx[i] = y[i] <= 0.0f ? 0.0f : d;
    }
    return TDM_OK;
}

TDM_REF_KERNEL(relu, tdm__elementwise_fits);
