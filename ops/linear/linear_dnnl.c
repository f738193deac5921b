/* linear with oneDNN's sgemm, on PyTorch's layout of the weights.
 *
 * y = x w^T reads both matrices along their rows, which costs sgemm up to half its speed for the few rows of a batch.
 * Forward therefore computes y^T = w x^T with a transposed copy of x, unless the rows are so few that this does not
 * pay, or so many that the copy would be large. Forward of one row is linear_row_lanes.h, with the bits of sgemm. It
 * waits for memory to bring the weights; behind a relu many of them meet zeros, and if they do not change any more and
 * are known to be finite, these are not read. */
#include <string.h>

#include "runtime/backends/dnnl/kit/passes.h"
#include "runtime/backends/dnnl/kit/sgemm.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_dnnl.h"
#include "ops/linear/linear_row_lanes.h"

/* Byte offsets in scratch. */
typedef struct {
    int64_t rows, in, out; /* rows: of the matrices */
    size_t x, y;           /* forward: x^T, y^T */
    size_t masked, room;   /* backward: dy, 0 where y <= 0; and room for the gradient of the weights */
    size_t total;
} offsets;

enum { TILE = 16, LEAST_TRANSPOSED = 16, MOST_TRANSPOSED = 256 }; /* rows */

static offsets offsets_of(const tdm_kernel_desc *desc, int64_t rows) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, rows);
    const int64_t transposed = of.points < MOST_TRANSPOSED ? of.points : MOST_TRANSPOSED;
    offsets at = {.rows = of.points, .in = of.in, .out = of.out};
    at.y = at.x + tdm__dnnl_round((size_t)(transposed * at.in) * sizeof(float));
    const size_t forward = at.y + tdm__dnnl_round((size_t)(transposed * at.out) * sizeof(float));
    at.room = at.masked + tdm__dnnl_round((size_t)(at.rows * at.out) * sizeof(float));
    const size_t backward = at.room + (size_t)tdm__dnnl_sgemm_room(at.out, at.rows) * sizeof(float);
    at.total = forward > backward ? forward : backward;
    return at;
}

/* Of a product in oneDNN's sgemm. */
static size_t call_bytes(const tdm_kernel_desc *desc, int64_t m, int64_t n, int64_t k) {
    return tdm__dnnl_sgemm_bytes(&(tdm_dnnl_sgemm){.m = m, .n = n, .k = k}, desc->threads);
}

static bool takes_row(const tdm_kernel_desc *desc, int64_t rows) {
    return tdm__linear_sizes_of(desc, rows).points == 1 && tdm__dnnl_sums_rows_by_avx2() &&
           TDM_LANES(tdm__linear_row_lanes)->row != NULL;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    if (desc->precision == TDM_BF16) return tdm__linear_bf16_fits(desc, fit);
    const offsets at = offsets_of(desc, desc->y.dim[0]);
    size_t most = 0;
    if (desc->training || !takes_row(desc, desc->y.dim[0]))
        most = tdm__larger(call_bytes(desc, at.rows, at.out, at.in), call_bytes(desc, at.out, at.rows, at.in));
    if (desc->training) most = tdm__larger(most, call_bytes(desc, at.out, at.in, at.rows));
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->scratch_bytes = at.total;
    fit->call_bytes = most;
    return true;
}

enum { LEAST_SKIPPED = 1 << 19 }; /* weights: 2 MB; fewer are in a cache */

typedef struct {
    bool is_row; /* forward is linear_row_lanes.h */
    bool skips;  /* and passes over zeros, if the weights are finite */
    void *bf16;  /* the state of linear_bf16_dnnl.c, which then does all; else NULL */
} linear;

/* oneDNN generates all code of its sgemm at the first call that is not tiny, which takes some 20 ms. Open makes that
 * call. */
static tdm_status warm_up(void) {
    float a[TILE * TILE] = {0}, b[TILE * TILE] = {0}, c[TILE * TILE];
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    dnnl_status_t status = tdm__dnnl_room();
    if (status == dnnl_success)
        status = TDM_DNNL(dnnl_sgemm)('N', 'N', TILE, TILE, TILE, 1.0f, a, TILE, b, TILE, 0.0f, c, TILE);
    tdm__dnnl_leave(&caller);
    return tdm__dnnl_check(status, "linear");
}

static void close_kernel(void *state) {
    linear *l = state;
    if (l != NULL) tdm__linear_bf16_close(l->bf16);
    tdm__module_delete(l);
}

static tdm_status open_kernel(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                              void **state) {
    linear *l = tdm__module_new(device->host, sizeof *l);
    *state = NULL;
    if (l == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "linear: out of memory for %zu bytes of state", sizeof *l);
    tdm_status status = TDM_OK;
    if (desc->precision == TDM_BF16)
        status = tdm__linear_bf16_open(device, desc, rows, training, &l->bf16);
    else
        l->is_row = takes_row(desc, rows);
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, rows);
    l->skips = l->is_row && of.in * of.out >= LEAST_SKIPPED;
    if (desc->precision != TDM_BF16 && (training || !l->is_row)) status = warm_up();
    if (status == TDM_OK)
        *state = l;
    else
        close_kernel(l);
    return status;
}

/* Adds the bias and applies the relu, in place. */
static void finish_rows(void *data, int64_t begin, int64_t end) {
    const tdm_kernel_args *args = data;
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    const int64_t out = offsets_of(args->desc, args->rows).out;
    for (int64_t n = begin; args->desc->param_count > 1 && n < end; n++)
        passes->add(args->y + n * out, args->param[1], out);
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) passes->clamp(args->y + begin * out, (end - begin) * out);
}

static tdm_status finish(const tdm_kernel_args *args, const offsets *at) {
    tdm_kernel_args shared = *args;
    return tdm__dnnl_share(args->device, tdm__dnnl_threads(args->desc->threads, at->rows * at->out), at->rows,
                           finish_rows, &shared);
}

/* ---- weights that do not change any more ---- */

static size_t packed_bytes(const void *state) {
    return ((const linear *)state)->skips ? sizeof(bool) : 0;
}

static tdm_status pack(const tdm_kernel_args *args) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(args->desc, args->rows);
    *(bool *)args->packed = TDM_LANES(tdm__linear_row_lanes)->are_finite(args->param[0], of.in * of.out);
    return TDM_OK;
}

/* ---- forward and backward ---- */

static tdm_status multiply(const tdm_kernel_args *args, const tdm_dnnl_sgemm *product) {
    return tdm__dnnl_sgemm_share(args->device, args->desc->threads, product, "linear");
}

static tdm_status forward_transposed(const tdm_kernel_args *args, const offsets *at) {
    float *x = (float *)((char *)args->scratch + at->x), *y = (float *)((char *)args->scratch + at->y);
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    passes->transpose(x, args->x[0], at->rows, at->in, at->in);
    const tdm_dnnl_sgemm p = {'N',    'N', at->out,  at->rows, at->in,   args->param[0],
                              at->in, x,   at->rows, y,        at->rows, false};
    TDM_MODULE_TRY(multiply(args, &p));
    passes->transpose(args->y, y, at->out, at->rows, at->rows);
    return finish(args, at);
}

static tdm_status forward_straight(const tdm_kernel_args *args, const offsets *at) {
    const tdm_dnnl_sgemm p = {'N',    'T',     at->rows, at->out, at->in, args->x[0], at->in, args->param[0],
                              at->in, args->y, at->out,  false};
    TDM_MODULE_TRY(multiply(args, &p));
    return finish(args, at);
}

typedef struct {
    const tdm_kernel_args *args;
    tdm_linear_steps steps; /* at NULL: all */
} row_work;

static void multiply_row(void *data, int64_t begin, int64_t end) {
    const row_work *work = data;
    const tdm_kernel_args *args = work->args;
    const tdm_linear_row_lanes *lanes = TDM_LANES(tdm__linear_row_lanes);
    const int64_t in = tdm__linear_sizes_of(args->desc, args->rows).in;
    if (work->steps.at == NULL)
        lanes->row(args->y, args->x[0], args->param[0], in, begin, end);
    else
        lanes->row_of_steps(args->y, args->x[0], args->param[0], in, begin, end, &work->steps);
}

static tdm_status forward_row(const tdm_kernel_args *args, const offsets *at) {
    row_work work = {.args = args};
    if (args->packed != NULL && *(const bool *)args->packed) {
        int32_t *steps = (int32_t *)((char *)args->scratch + at->x); /* where x^T has more room, and is not needed */
        work.steps.count = TDM_LANES(tdm__linear_row_lanes)->list_steps(steps, args->x[0], at->in);
        work.steps.at = steps;
    }
    TDM_MODULE_TRY(tdm__dnnl_share(args->device, tdm__dnnl_threads(args->desc->threads, at->in * at->out), at->out,
                                   multiply_row, &work));
    return finish(args, at);
}

static tdm_status forward(const tdm_kernel_args *args) {
    const offsets at = offsets_of(args->desc, args->rows);
    const linear *l = args->state;
    if (l->is_row) return forward_row(args, &at);
    const bool transposed = at.rows >= LEAST_TRANSPOSED && at.rows <= MOST_TRANSPOSED;
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = args->desc->precision == TDM_BF16 ? tdm__linear_bf16_forward(args, l->bf16)
                              : transposed                      ? forward_transposed(args, &at)
                                                                : forward_straight(args, &at);
    tdm__dnnl_leave(&caller);
    return status;
}

typedef struct {
    float *db;
    const float *dy;
    int64_t rows, out;
} columns;

/* db[o] = sum_n dy[n][o], in row order */
static void sum_columns(void *data, int64_t begin, int64_t end) {
    const columns *of = data;
    memset(of->db + begin, 0, (size_t)(end - begin) * sizeof *of->db);
    for (int64_t n = 0; n < of->rows; n++)
        TDM_LANES(tdm__dnnl_passes)->add(of->db + begin, of->dy + n * of->out + begin, end - begin);
}

static tdm_status sum_rows(const tdm_kernel_args *args, const float *dy, const offsets *at) {
    columns of = {args->dparam[1], dy, at->rows, at->out};
    return tdm__dnnl_share(args->device, tdm__dnnl_threads(args->desc->threads, at->rows * at->out), at->out,
                           sum_columns, &of);
}

/* 0 where y <= 0, else dy, into scratch. */
static void mask_rows(void *data, int64_t begin, int64_t end) {
    const tdm_kernel_args *args = data;
    const offsets at = offsets_of(args->desc, args->rows);
    float *masked = (float *)((char *)args->scratch + at.masked);
    const int64_t first = begin * at.out;
    TDM_LANES(tdm__dnnl_passes)->mask(masked + first, args->dy + first, args->y + first, end * at.out - first);
}

static tdm_status run_backward(const tdm_kernel_args *args) {
    const offsets at = offsets_of(args->desc, args->rows);
    const float *dy = args->dy;
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
        tdm_kernel_args shared = *args;
        const int threads = tdm__dnnl_threads(args->desc->threads, at.rows * at.out);
        TDM_MODULE_TRY(tdm__dnnl_share(args->device, threads, at.rows, mask_rows, &shared));
        dy = (const float *)((const char *)args->scratch + at.masked);
    }
    if (args->dparam[0] != NULL) {
        const tdm_dnnl_sgemm dw = {'T',    'N',        at.out, at.in,           at.rows, dy,
                                   at.out, args->x[0], at.in,  args->dparam[0], at.in,   false};
        float *room = tdm__dnnl_sgemm_room(at.out, at.rows) > 0 ? (float *)((char *)args->scratch + at.room) : NULL;
        TDM_MODULE_TRY(tdm__dnnl_sgemm_share_long(args->device, args->desc->threads, &dw, room, "linear"));
    }
    if (args->dparam[1] != NULL) TDM_MODULE_TRY(sum_rows(args, dy, &at));
    if (args->dx[0] == NULL) return TDM_OK;
    const tdm_dnnl_sgemm dx = {'N',   'N',         at.rows, at.in, at.out, dy, at.out, args->param[0],
                               at.in, args->dx[0], at.in,   false};
    return multiply(args, &dx);
}

static tdm_status backward(const tdm_kernel_args *args) {
    const linear *l = args->state;
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status =
        args->desc->precision == TDM_BF16 ? tdm__linear_bf16_backward(args, l->bf16) : run_backward(args);
    tdm__dnnl_leave(&caller);
    return status;
}

const tdm_kernel tdm__linear_dnnl = {
    .op = "linear",
    .variant = "dnnl",
    .fits = fits,
    .open = open_kernel,
    .close = close_kernel,
    .forward = forward,
    .backward = backward,
    .takes_bf16 = true,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .keeps_param = true,
};
