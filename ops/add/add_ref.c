/* add: reference kernel, also the one that runs. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/ops.h"

/* y = ((x0 + x1) + x2) + ..., element by element, since y may lie on any x. */
static tdm_status forward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    int inputs = args->desc->input_count;
    const float *const *x = args->x, *a = x[0], *b = x[1];
    float *y = args->y;
    if (inputs == 2) {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
        return TDM_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        float sum = a[i] + b[i];
        for (int k = 2; k < inputs; k++) sum += x[k][i];
        y[i] = sum;
    }
    return TDM_OK;
}

/* dx_k = dy */
static tdm_status backward(const tdm_kernel_args *args) {
    size_t bytes = (size_t)tdm__elementwise_count(args) * sizeof(float);
    for (int k = 0; k < args->desc->input_count; k++)
        if (args->dx[k] != NULL && args->dx[k] != args->dy) memcpy(args->dx[k], args->dy, bytes);
    return TDM_OK;
}

const tdm_kernel tdm__add_ref = {
    .op = "add",
    .variant = "ref",
    .fits = tdm__elementwise_fits,
    .forward = forward,
    .backward = backward,
};
