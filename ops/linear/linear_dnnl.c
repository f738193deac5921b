/* linear with oneDNN's sgemm, on PyTorch's layout of the weights.
 *
 * Forward multiplies transposed: y^T = w x^T, with x transposed aside, because sgemm is fastest when its large operand
 * is read along its rows. The bias and the relu are added while y^T is transposed back. */
#include <stdio.h>
#include <string.h>

#include "ops/dnnl_module/dnnl_module.h"
#include "ops/linear/linear.h"

/* Byte offsets in scratch. */
typedef struct {
    int64_t rows, in, out;
    size_t x, y, masked, total; /* x^T, y^T; dy where y > 0 */
} places;

static places places_of(const tdm_kernel_desc *desc, int64_t rows) {
    places at = {.rows = rows, .in = desc->x[0].dim[1], .out = desc->y.dim[1]};
    at.y = at.x + tdm__dnnl_round((size_t)(at.rows * at.in) * sizeof(float));
    at.masked = 0; /* backward only */
    at.total = at.y + tdm__dnnl_round((size_t)(at.rows * at.out) * sizeof(float));
    return at;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    if (desc->x[0].ndim != 2) {
        snprintf(fit->why, sizeof fit->why, "inputs with more than one dimension");
        return false;
    }
    fit->relu = true;
    fit->scratch_bytes = places_of(desc, desc->y.dim[0]).total;
    return true;
}

enum { TILE = 16 };

/* to[c][r] = from[r][c] */
static void transpose(float *restrict to, const float *restrict from, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r += TILE) {
        const int64_t r_end = r + TILE < rows ? r + TILE : rows;
        for (int64_t c = 0; c < columns; c++)
            for (int64_t k = r; k < r_end; k++) to[c * rows + k] = from[k * columns + c];
    }
}

/* y[n][o] = y^T[o][n] + b[o], then the relu. NaN passes through. */
static void finish(const tdm_kernel_args *args, const places *at, const float *transposed) {
    const float *bias = args->desc->param_count > 1 ? args->param[1] : NULL;
    const bool relu = args->desc->relu;
    for (int64_t o = 0; o < at->out; o += TILE) {
        const int64_t end = o + TILE < at->out ? o + TILE : at->out;
        for (int64_t n = 0; n < at->rows; n++) {
            for (int64_t k = o; k < end; k++) {
                const float v = transposed[k * at->rows + n] + (bias != NULL ? bias[k] : 0.0f);
                args->y[n * at->out + k] = relu && v < 0.0f ? 0.0f : v;
            }
        }
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    const places at = places_of(args->desc, args->rows);
    float *x = (float *)((char *)args->scratch + at.x), *y = (float *)((char *)args->scratch + at.y);
    const int before = tdm__dnnl_threads_enter(args->desc->threads);
    transpose(x, args->x[0], at.rows, at.in);
    const dnnl_status_t status =
        dnnl_sgemm('N', 'N', at.out, at.rows, at.in, 1.0f, args->param[0], at.in, x, at.rows, 0.0f, y, at.rows);
    if (status == dnnl_success) finish(args, &at, y);
    tdm__dnnl_threads_leave(before);
    return tdm__dnnl_check(status, "linear forward");
}

/* db[o] = sum_n dy[n][o], in row order */
static void sum_rows(float *restrict db, const float *restrict dy, const places *at) {
    memset(db, 0, (size_t)at->out * sizeof *db);
    for (int64_t n = 0; n < at->rows; n++)
        for (int64_t o = 0; o < at->out; o++) db[o] += dy[n * at->out + o];
}

static tdm_status backward(const tdm_kernel_args *args) {
    const places at = places_of(args->desc, args->rows);
    const int before = tdm__dnnl_threads_enter(args->desc->threads);
    const float *dy = args->dy;
    if (args->desc->relu) {
        float *masked = (float *)((char *)args->scratch + at.masked);
        tdm__dnnl_mask(masked, dy, args->y, at.rows * at.out, args->desc->threads);
        dy = masked;
    }
    dnnl_status_t status =
        dnnl_sgemm('T', 'N', at.out, at.in, at.rows, 1.0f, dy, at.out, args->x[0], at.in, 0.0f, args->dparam[0], at.in);
    if (args->desc->param_count > 1) sum_rows(args->dparam[1], dy, &at);
    if (status == dnnl_success && args->dx[0] != NULL)
        status = dnnl_sgemm('N', 'N', at.rows, at.in, at.out, 1.0f, dy, at.out, args->param[0], at.in, 0.0f,
                            args->dx[0], at.in);
    tdm__dnnl_threads_leave(before);
    return tdm__dnnl_check(status, "linear backward");
}

const tdm_kernel tdm__linear_dnnl = {
    .op = "linear",
    .variant = "dnnl",
    .fits = fits,
    .forward = forward,
    .backward = backward,
};
