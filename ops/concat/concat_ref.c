/* concat: the reference kernel, which is also the default. It takes every layout that all inputs can have. */
#include <string.h>

#include "ops/concat/concat.h"
#include "ops/ops.h"

/* The first producer's layout; if the channels of some input do not divide into its blocks, channels are last. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    tdm_layout layout = desc->x_layout[0];
    const int64_t block = layout == TDM_LAYOUT_C16 ? 16 : layout == TDM_LAYOUT_C8 ? 8 : 1;
    for (int k = 0; k < desc->input_count; k++)
        if (desc->x[k].dim[1] % block != 0) layout = TDM_LAYOUT_NHWC;
    for (int k = 0; k < desc->input_count; k++) fit->x_layout[k] = layout;
    fit->y_layout = layout;
    return true;
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_concat_runs runs = tdm__concat_runs_of(args->desc, args->rows);
    float *y = args->y;
    for (int64_t n = 0; n < runs.outer; n++) {
        for (int k = 0; k < args->desc->input_count; k++) {
            memcpy(y, args->x[k] + n * runs.length[k], (size_t)runs.length[k] * sizeof *y);
            y += runs.length[k];
        }
    }
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_concat_runs runs = tdm__concat_runs_of(args->desc, args->rows);
    const float *dy = args->dy;
    for (int64_t n = 0; n < runs.outer; n++) {
        for (int k = 0; k < args->desc->input_count; k++) {
            if (args->dx[k] != NULL) memcpy(args->dx[k] + n * runs.length[k], dy, (size_t)runs.length[k] * sizeof *dy);
            dy += runs.length[k];
        }
    }
    return TDM_OK;
}

TDM_REF_KERNEL(concat, fits);
