/* linear: reference kernel. Products and sums are in double and rounded to float once per result. */
#include <string.h>

#include "ops/dot.h"
#include "ops/linear/linear.h"
#include "ops/ops.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->scratch_bytes =
        (size_t)tdm__linear_sizes_of(desc, 1).in * sizeof(double); /* one row of the input, in backward */
    return true;
}

/* y[n,o] = sum_i x[n,i] w[o,i] + b[o] */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(args->desc, args->rows);
    const int64_t in = of.in, out = of.out;
    const float *w = args->param[0], *b = args->desc->param_count > 1 ? args->param[1] : NULL;
    for (int64_t o = 0; o < out; o++)
        for (int64_t n = 0; n < of.points; n++)
            args->y[n * out + o] =
                (float)(tdm__dot(args->x[0] + n * in, w + o * in, in) + (b != NULL ? (double)b[o] : 0.0));
    return TDM_OK;
}

/* dw[o,i] = sum_n dy[n,o] x[n,i];  db[o] = sum_n dy[n,o];  dx[n,i] = sum_o dy[n,o] w[o,i] */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(args->desc, args->rows);
    const int64_t in = of.in, out = of.out;
    const float *w = args->param[0], *dy = args->dy;
    double *acc = args->scratch;
    for (int64_t o = 0; args->dparam[0] != NULL && o < out; o++) {
        memset(acc, 0, (size_t)in * sizeof *acc);
        double db = 0;
        for (int64_t n = 0; n < of.points; n++) {
            tdm__axpy(acc, (double)dy[n * out + o], args->x[0] + n * in, in);
            db += (double)dy[n * out + o];
        }
        tdm__to_floats(args->dparam[0] + o * in, acc, in);
        if (args->dparam[1] != NULL) args->dparam[1][o] = (float)db;
    }
    if (args->dx[0] == NULL) return TDM_OK;
    for (int64_t n = 0; n < of.points; n++) {
        memset(acc, 0, (size_t)in * sizeof *acc);
        for (int64_t o = 0; o < out; o++) tdm__axpy(acc, (double)dy[n * out + o], w + o * in, in);
        tdm__to_floats(args->dx[0] + n * in, acc, in);
    }
    return TDM_OK;
}

TDM_REF_KERNEL(linear, fits);
