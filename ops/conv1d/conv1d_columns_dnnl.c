/* See conv1d_columns_dnnl.h. Of some outputs of a row at a time, the points under their windows are copied into
 * columns: y = w columns, dw = dy columns^T, and dx is what w^T dy gives back to these points. Rows are divided into
 * parts, which threads share; the sizes alone decide them, because each has a sum of dw of its own. */
#include "ops/conv1d/conv1d_columns_dnnl.h"

#include <string.h>

#include "ops/conv1d/conv1d.h"
#include "ops/dot.h"
#include "runtime/backends/dnnl/kit/gemm.h"
#include "runtime/backends/dnnl/kit/sgemm.h"

enum { LEAST_TERMS = 32, LEAST_OUT = 16, MOST_PARTS = 8 };
enum { TILE_NUMBERS = 1 << 16, LEAST_TILE = 64 }; /* of columns, which then stay in the second-level cache */

typedef struct {
    const tdm_kernel_args *args;
    int64_t rows, in, out, points, outputs; /* points of a channel of x, outputs of one of y */
    int64_t kernel, stride, padding, dilation;
    int64_t terms, tile; /* of a sum; outputs that are computed at once */
    int64_t parts;
    float *turned; /* backward: w^T */
    float *columns, *masked, *dw, *db;
    int64_t each;       /* numbers of scratch of a part, in which the four above are */
    _Atomic int status; /* dnnl_status_t */
} call;

bool tdm__conv1d_columns_wanted(const tdm_kernel_desc *desc) {
    const tdm_conv1d_attrs *attrs = desc->attrs;
    return attrs->groups == 1 && attrs->out >= LEAST_OUT && desc->x[0].dim[1] * attrs->kernel >= LEAST_TERMS;
}

static int64_t tile_of(const call *j) {
    const int64_t fits = TILE_NUMBERS / j->terms / LEAST_TILE * LEAST_TILE;
    const int64_t tile = fits > LEAST_TILE ? fits : LEAST_TILE;
    return tile < j->outputs ? tile : j->outputs;
}

static call call_of(const tdm_kernel_desc *desc, int64_t rows) {
    const tdm_conv2d_attrs attrs = tdm__conv1d_image(desc->attrs);
    const tdm_window window = tdm__conv2d_window(&attrs);
    call j = {.rows = rows,
              .in = desc->x[0].dim[1],
              .out = attrs.out,
              .points = desc->x[0].dim[2],
              .outputs = desc->y.dim[2],
              .kernel = window.kernel[1],
              .stride = window.stride[1],
              .padding = window.padding[1],
              .dilation = window.dilation[1],
              .parts = rows < MOST_PARTS ? rows : MOST_PARTS};
    j.terms = j.in * j.kernel;
    j.tile = tile_of(&j);
    j.each = tdm__dnnl_round_floats(j.terms * j.tile) + tdm__dnnl_round_floats(j.out * j.tile) +
             tdm__dnnl_round_floats(j.out * j.terms) + tdm__dnnl_round_floats(j.out);
    return j;
}

static call job_with_scratch(const tdm_kernel_args *args) {
    call j = call_of(args->desc, args->rows);
    j.args = args;
    j.turned = args->scratch;
    j.columns = j.turned + tdm__dnnl_round_floats(j.out * j.terms);
    j.masked = j.columns + tdm__dnnl_round_floats(j.terms * j.tile);
    j.dw = j.masked + tdm__dnnl_round_floats(j.out * j.tile);
    j.db = j.dw + tdm__dnnl_round_floats(j.out * j.terms);
    return j;
}

size_t tdm__conv1d_columns_scratch(const tdm_kernel_desc *desc) {
    const call j = call_of(desc, desc->y.dim[0]);
    return (size_t)(tdm__dnnl_round_floats(j.out * j.terms) + j.parts * j.each) * sizeof(float);
}

size_t tdm__conv1d_columns_call_bytes(const tdm_kernel_desc *desc) {
    const call j = call_of(desc, desc->y.dim[0]);
    size_t most = tdm__dnnl_gemm_bytes(j.out, j.tile, j.terms, sizeof(float));
    if (desc->training) {
        most = tdm__larger(most, tdm__dnnl_gemm_bytes(j.out, j.terms, j.tile, sizeof(float)));
        most = tdm__larger(most, tdm__dnnl_gemm_bytes(j.terms, j.tile, j.out, sizeof(float)));
    }
    return (size_t)(j.parts < desc->threads ? j.parts : desc->threads) * most;
}

static void multiply(call *j, const tdm_dnnl_sgemm *product) {
    const dnnl_status_t status = tdm__dnnl_sgemm_run(product);
    if (status != dnnl_success) j->status = (int)status;
}

static tdm_status share(call *j, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->rows * j->outputs * j->out;
    TDM_MODULE_TRY(
        tdm__dnnl_share(j->args->device, tdm__dnnl_threads(j->args->desc->threads, numbers), j->parts, work, j));
    return tdm__dnnl_check((dnnl_status_t)j->status, "conv1d");
}

/* ---- columns ---- */

/* Outputs [first, first + count) of a row. */
typedef struct {
    int64_t row, first, count;
} tile;

/* Rows [begin, end) of the tile read a point inside the series under tap `k`; the tile's first row reads point `at`. */
typedef struct {
    int64_t begin, end, at;
} tap;

static tap tap_of(const call *j, const tile *of, int64_t k) {
    const int64_t at = of->first * j->stride + k * j->dilation - j->padding, last = j->points - 1 - at;
    const int64_t begin = at < 0 ? (-at + j->stride - 1) / j->stride : 0, end = last < 0 ? 0 : last / j->stride + 1;
    return (tap){begin < of->count ? begin : of->count, end < of->count ? end : of->count, at};
}

static bool is_pointwise(const call *j) {
    return j->kernel == 1 && j->stride == 1 && j->padding == 0;
}

static void gather(const call *j, const tap *t, int64_t count, float *to, const float *x) {
    const int64_t end = t->end > t->begin ? t->end : t->begin;
    memset(to, 0, (size_t)t->begin * sizeof *to);
    if (j->stride == 1)
        memcpy(to + t->begin, x + t->begin + t->at, (size_t)(end - t->begin) * sizeof *to);
    else
        for (int64_t i = t->begin; i < end; i++) to[i] = x[i * j->stride + t->at];
    memset(to + end, 0, (size_t)(count - end) * sizeof *to);
}

/* Returns the columns, whose rows are *stride numbers apart. */
static const float *columns_of(const call *j, const tile *of, float *columns, int64_t *stride) {
    const float *x = j->args->x[0] + of->row * j->in * j->points;
    *stride = is_pointwise(j) ? j->points : of->count;
    if (is_pointwise(j)) return x + of->first;
    for (int64_t k = 0; k < j->kernel; k++) {
        const tap t = tap_of(j, of, k);
        for (int64_t c = 0; c < j->in; c++)
            gather(j, &t, of->count, columns + (c * j->kernel + k) * of->count, x + c * j->points);
    }
    return columns;
}

/* dx += the gradient of the columns */
static void scatter(const call *j, const tile *of, const float *columns, float *dx) {
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    for (int64_t k = 0; k < j->kernel; k++) {
        const tap t = tap_of(j, of, k);
        for (int64_t c = 0; c < j->in; c++) {
            const float *from = columns + (c * j->kernel + k) * of->count;
            float *to = dx + c * j->points;
            if (j->stride == 1 && t.end > t.begin) passes->add(to + t.begin + t.at, from + t.begin, t.end - t.begin);
            for (int64_t i = t.begin; j->stride > 1 && i < t.end; i++) to[i * j->stride + t.at] += from[i];
        }
    }
}

/* Calls `run` for the tiles of the rows of part `part`. */
static void each_tile(call *j, int64_t part, void (*run)(call *j, const tile *of, int64_t part)) {
    for (int64_t row = j->rows * part / j->parts; row < j->rows * (part + 1) / j->parts; row++) {
        for (int64_t first = 0; first < j->outputs; first += j->tile) {
            const int64_t left = j->outputs - first;
            run(j, &(tile){row, first, left < j->tile ? left : j->tile}, part);
        }
    }
}

/* ---- forward ---- */

static void forward_tile(call *j, const tile *of, int64_t part) {
    const tdm_kernel_args *args = j->args;
    float *y = args->y + of->row * j->out * j->outputs + of->first;
    const bool has_bias = args->desc->param_count > 1;
    int64_t stride;
    const float *columns = columns_of(j, of, j->columns + part * j->each, &stride);
    for (int64_t o = 0; has_bias && o < j->out; o++)
        for (int64_t i = 0; i < of->count; i++) y[o * j->outputs + i] = args->param[1][o];
    multiply(j, &(tdm_dnnl_sgemm){'N', 'N', j->out, of->count, j->terms, args->param[0], j->terms, columns, stride, y,
                                  j->outputs, has_bias});
    for (int64_t o = 0; tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU) && o < j->out; o++)
        TDM_LANES(tdm__dnnl_passes)->clamp(y + o * j->outputs, of->count);
}

static void forward_parts(void *data, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) each_tile(data, part, forward_tile);
}

tdm_status tdm__conv1d_columns_forward(const tdm_kernel_args *args) {
    call j = job_with_scratch(args);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = share(&j, forward_parts);
    tdm__dnnl_leave(&caller);
    return status;
}

/* ---- backward ---- */

/* Returns dy of the tile, where the relu let y through; its rows are *stride numbers apart. */
static const float *dy_of(const call *j, const tile *of, float *masked, int64_t *stride) {
    const int64_t at = of->row * j->out * j->outputs + of->first;
    const float *dy = j->args->dy + at;
    *stride = j->outputs;
    if (!tdm_has_epilogue(j->args->desc, TDM_EPILOGUE_RELU)) return dy;
    *stride = of->count;
    for (int64_t o = 0; o < j->out; o++)
        TDM_LANES(tdm__dnnl_passes)
            ->mask(masked + o * of->count, dy + o * j->outputs, j->args->y + at + o * j->outputs, of->count);
    return masked;
}

static void add_weights(call *j, const tile *of, int64_t part, const float *dy, int64_t dy_stride) {
    int64_t stride;
    const float *columns = columns_of(j, of, j->columns + part * j->each, &stride);
    float *db = j->db + part * j->each;
    multiply(j, &(tdm_dnnl_sgemm){'N', 'T', j->out, j->terms, of->count, dy, dy_stride, columns, stride,
                                  j->dw + part * j->each, j->terms, true});
    for (int64_t o = 0; o < j->out; o++) db[o] += (float)tdm__sum(dy + o * dy_stride, of->count);
}

static void give_dx(call *j, const tile *of, int64_t part, const float *dy, int64_t dy_stride) {
    float *dx = j->args->dx[0] + of->row * j->in * j->points, *columns = j->columns + part * j->each;
    tdm_dnnl_sgemm product = {'N',    'N', j->terms,  of->count, j->out,    j->turned,
                              j->out, dy,  dy_stride, columns,   of->count, false};
    if (is_pointwise(j)) product.c = dx + of->first, product.ldc = j->points;
    multiply(j, &product);
    if (is_pointwise(j)) return;
    if (of->first == 0) memset(dx, 0, (size_t)(j->in * j->points) * sizeof *dx);
    scatter(j, of, columns, dx);
}

static void backward_tile(call *j, const tile *of, int64_t part) {
    int64_t stride;
    const float *dy = dy_of(j, of, j->masked + part * j->each, &stride);
    if (j->args->dparam[0] != NULL) add_weights(j, of, part, dy, stride);
    if (j->args->dx[0] != NULL) give_dx(j, of, part, dy, stride);
}

static void backward_parts(void *data, int64_t begin, int64_t end) {
    call *j = data;
    for (int64_t part = begin; part < end; part++) {
        memset(j->dw + part * j->each, 0, (size_t)(j->out * j->terms) * sizeof(float));
        memset(j->db + part * j->each, 0, (size_t)j->out * sizeof(float));
        each_tile(j, part, backward_tile);
    }
}

/* In the order of the parts. */
static void add_parts(const call *j, float *sum, const float *first, int64_t count) {
    memcpy(sum, first, (size_t)count * sizeof *sum);
    for (int64_t part = 1; part < j->parts; part++)
        TDM_LANES(tdm__dnnl_passes)->add(sum, first + part * j->each, count);
}

tdm_status tdm__conv1d_columns_backward(const tdm_kernel_args *args) {
    call j = job_with_scratch(args);
    TDM_LANES(tdm__dnnl_passes)->transpose(j.turned, args->param[0], j.out, j.terms, j.terms);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = share(&j, backward_parts);
    tdm__dnnl_leave(&caller);
    TDM_MODULE_TRY(status);
    if (args->dparam[0] != NULL) add_parts(&j, args->dparam[0], j.dw, j.out * j.terms);
    if (args->dparam[1] != NULL && args->desc->param_count > 1) add_parts(&j, args->dparam[1], j.db, j.out);
    return TDM_OK;
}
