/* relu6: reference kernel, also the one that runs on the CPU. NaN passes through, as in PyTorch. */
#include "ops/elementwise.h"
#include "ops/ops.h"

/* y = min(max(0, x), 6) */
static tdm_status forward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    const float *x = args->x[0];
    float *y = args->y;
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i] > 6.0f ? 6.0f : x[i];
    return TDM_OK;
}

/* dx = 0 where y <= 0 or y >= 6, else dy */
static tdm_status backward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    const float *y = args->y, *dy = args->dy;
    float *dx = args->dx[0];
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) dx[i] = y[i] <= 0.0f || y[i] >= 6.0f ? 0.0f : dy[i];
    return TDM_OK;
}

TDM_REF_KERNEL(relu6, tdm__elementwise_fits);
