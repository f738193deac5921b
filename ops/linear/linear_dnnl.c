/* linear with oneDNN's sgemm, on PyTorch's layout of the weights.
 *
 * y = x w^T reads both along the rows, which costs sgemm up to half its speed for the few rows of a batch. Forward is
 * therefore y^T = w x^T, with x transposed aside, unless the rows are so few that this does not pay, or so many that
 * the copy of x would be large. */
#include <stdio.h>
#include <string.h>

#include "ops/dnnl_module/dnnl_module.h"
#include "ops/linear/linear.h"

/* Byte offsets in scratch. */
typedef struct {
    int64_t rows, in, out;
    size_t x, y;   /* forward: x^T, y^T */
    size_t masked; /* backward: dy where y > 0 */
    size_t total;
} places;

enum { TILE = 16, LEAST_TRANSPOSED = 16, MOST_TRANSPOSED = 256 }; /* rows */

static places places_of(const tdm_kernel_desc *desc, int64_t rows) {
    const int64_t transposed = rows < MOST_TRANSPOSED ? rows : MOST_TRANSPOSED;
    places at = {.rows = rows, .in = desc->x[0].dim[1], .out = desc->y.dim[1]};
    at.y = at.x + tdm__dnnl_round((size_t)(transposed * at.in) * sizeof(float));
    const size_t forward = at.y + tdm__dnnl_round((size_t)(transposed * at.out) * sizeof(float));
    const size_t backward = at.masked + tdm__dnnl_round((size_t)(rows * at.out) * sizeof(float));
    at.total = forward > backward ? forward : backward;
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

/* oneDNN makes all code of its sgemm, some 20 ms of work, at the first call that is not tiny. */
static tdm_status open_kernel(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                              void **state) {
    (void)device;
    (void)rows;
    (void)training;
    *state = NULL;
    float a[TILE * TILE] = {0}, b[TILE * TILE] = {0}, c[TILE * TILE];
    const tdm_dnnl_caller caller = tdm__dnnl_enter(desc->threads);
    dnnl_status_t status = tdm__dnnl_room();
    if (status == dnnl_success)
        status = TDM_DNNL(dnnl_sgemm)('N', 'N', TILE, TILE, TILE, 1.0f, a, TILE, b, TILE, 0.0f, c, TILE);
    tdm__dnnl_leave(&caller);
    return tdm__dnnl_check(status, "linear");
}

/* to[c][r] = from[r][c] for TILE or fewer rows; with a constant number the loop becomes vector code */
static inline __attribute__((always_inline)) void transpose_rows(float *restrict to, const float *restrict from,
                                                                 int64_t rows, int64_t columns, int64_t row,
                                                                 int64_t count) {
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = row; k < row + count; k++) to[c * rows + k] = from[k * columns + c];
}

static void transpose(float *restrict to, const float *restrict from, int64_t rows, int64_t columns) {
    int64_t row = 0;
    for (; row + TILE <= rows; row += TILE) transpose_rows(to, from, rows, columns, row, TILE);
    if (row < rows) transpose_rows(to, from, rows, columns, row, rows - row);
}

static inline float finished(const tdm_kernel_args *args, const float *bias, int64_t o, float sum) {
    const float v = bias != NULL ? sum + bias[o] : sum;
    return args->desc->relu && v < 0.0f ? 0.0f : v; /* NaN passes through */
}

static dnnl_status_t forward_transposed(const tdm_kernel_args *args, const places *at, const float *bias) {
    float *x = (float *)((char *)args->scratch + at->x), *y = (float *)((char *)args->scratch + at->y);
    transpose(x, args->x[0], at->rows, at->in);
    const dnnl_status_t status = TDM_DNNL(dnnl_sgemm)('N', 'N', at->out, at->rows, at->in, 1.0f, args->param[0], at->in,
                                                      x, at->rows, 0.0f, y, at->rows);
    for (int64_t o = 0; o < at->out; o += TILE) {
        const int64_t end = o + TILE < at->out ? o + TILE : at->out;
        for (int64_t n = 0; n < at->rows; n++)
            for (int64_t k = o; k < end; k++) args->y[n * at->out + k] = finished(args, bias, k, y[k * at->rows + n]);
    }
    return status;
}

static dnnl_status_t forward_straight(const tdm_kernel_args *args, const places *at, const float *bias) {
    const dnnl_status_t status = TDM_DNNL(dnnl_sgemm)('N', 'T', at->rows, at->out, at->in, 1.0f, args->x[0], at->in,
                                                      args->param[0], at->in, 0.0f, args->y, at->out);
    for (int64_t n = 0; n < at->rows; n++)
        for (int64_t o = 0; o < at->out; o++)
            args->y[n * at->out + o] = finished(args, bias, o, args->y[n * at->out + o]);
    return status;
}

static tdm_status forward(const tdm_kernel_args *args) {
    const places at = places_of(args->desc, args->rows);
    const float *bias = args->desc->param_count > 1 ? args->param[1] : NULL;
    const bool transposed = at.rows >= LEAST_TRANSPOSED && at.rows <= MOST_TRANSPOSED;
    const tdm_dnnl_caller caller = tdm__dnnl_enter(args->desc->threads);
    const dnnl_status_t status = (transposed ? forward_transposed : forward_straight)(args, &at, bias);
    tdm__dnnl_leave(&caller);
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
    const tdm_dnnl_caller caller = tdm__dnnl_enter(args->desc->threads);
    const float *dy = args->dy;
    if (args->desc->relu) {
        float *masked = (float *)((char *)args->scratch + at.masked);
        tdm__dnnl_mask(masked, dy, args->y, at.rows * at.out, args->desc->threads);
        dy = masked;
    }
    dnnl_status_t status = TDM_DNNL(dnnl_sgemm)('T', 'N', at.out, at.in, at.rows, 1.0f, dy, at.out, args->x[0], at.in,
                                                0.0f, args->dparam[0], at.in);
    if (args->desc->param_count > 1) sum_rows(args->dparam[1], dy, &at);
    if (status == dnnl_success && args->dx[0] != NULL)
        status = TDM_DNNL(dnnl_sgemm)('N', 'N', at.rows, at.in, at.out, 1.0f, dy, at.out, args->param[0], at.in, 0.0f,
                                      args->dx[0], at.in);
    tdm__dnnl_leave(&caller);
    return tdm__dnnl_check(status, "linear backward");
}

const tdm_kernel tdm__linear_dnnl = {
    .op = "linear",
    .variant = "dnnl",
    .fits = fits,
    .open = open_kernel,
    .forward = forward,
    .backward = backward,
};
