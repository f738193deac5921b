/* add: reference kernel, also used by default. It includes a relu that follows, as in residual networks. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/ops.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->epilogue = TDM_EPILOGUE_RELU;
    return tdm__elementwise_fits(desc, fit);
}

/* y = ((x0 + x1) + x2) + ..., element by element, because y may share memory with any x. */
static tdm_status forward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    int inputs = args->desc->input_count;
    const float *const *x = args->x, *a = x[0], *b = x[1];
    float *y = args->y;
    if (inputs == 2) {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
    } else {
        for (int64_t i = 0; i < count; i++) {
            float sum = a[i] + b[i];
            for (int k = 2; k < inputs; k++) sum += x[k][i];
            y[i] = sum;
        }
    }
    if (!tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) return TDM_OK;
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
    return TDM_OK;
}

/* dx_k = dy; with a relu, 0 where y <= 0, else dy. Applying the mask twice changes nothing, so a dx may share memory
 * with dy. */
static tdm_status backward(const tdm_kernel_args *args) {
    int64_t count = tdm__elementwise_count(args);
    const float *y = args->y, *dy = args->dy;
    for (int k = 0; k < args->desc->input_count; k++) {
        float *dx = args->dx[k];
        if (dx == NULL) continue;
        if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
            TDM_SAME_OR_APART
            for (int64_t i = 0; i < count; i++) {
                const float d = dy[i]; /* read in any case, see relu_ref.c */
                dx[i] = y[i] <= 0.0f ? 0.0f : d;
            }
        } else if (dx != dy) {
            memcpy(dx, dy, (size_t)count * sizeof(float));
        }
    }
    return TDM_OK;
}

TDM_REF_KERNEL(add, fits);
