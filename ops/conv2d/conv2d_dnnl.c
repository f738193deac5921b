/* conv2d with oneDNN.
 *
 * Rows are worked off in chunks that stay in the second-level cache: the relu, its mask in backward and the two
 * backward convolutions find their operands there. Weights lie in PyTorch's layout and are brought into oneDNN's at
 * each call; the gradient of the weights is summed over the chunks in their order and brought back once.
 *
 * `parallel.kernels: fast` uses Winograd's algorithm where oneDNN has it (version 2, 3x3 filters, AVX-512): more than
 * twice as fast, in chunks of other sizes. It is not the default because it does not follow PyTorch: its errors are
 * some four times those of direct sums, which moves relus and maxima, and gradients that are exactly 0 come out as
 * 1e-9, from which Adam makes whole steps.
 *
 * The relu is a pass of its own, not oneDNN's: oneDNN turns NaN into 0, and PyTorch lets it through. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/conv2d/conv2d.h"
#include "ops/dnnl_module/dnnl_module.h"

enum { PASSES = 3, CHUNK_BYTES = 512 * 1024, CHUNK_TILES = 80 };

/* oneDNN's view of one chunk. */
typedef struct {
    dnnl_memory_desc_t x, y, weights, any_weights, bias;
    dnnl_primitive_desc_t pass[PASSES]; /* of tdm_dnnl_pass; NULL where not wanted */
    dnnl_primitive_desc_t
        reorder[PASSES]; /* weights to the pass, or its gradient back; NULL: PyTorch's layout serves */
    int64_t chunk;       /* rows */
    bool winograd;
    bool any; /* oneDNN's slow reference code is good enough */
} plans;

/* Byte offsets in scratch: weights in oneDNN's layout, the gradient of the weights summed over chunks in oneDNN's
 * layout, those of one chunk, dy where y > 0, and what oneDNN wants. */
typedef struct {
    size_t weights, sum, part, bias_part, masked, pad, total;
} places;

typedef struct {
    tdm_dnnl_context context;
    tdm_dnnl_call pass[PASSES], reorder[PASSES];
    places at;
    int64_t chunk, chunk_x, chunk_y; /* rows, numbers of x, of y */
    size_t weight_count;             /* numbers in oneDNN's layout of the gradient */
    void *scratch;                   /* own, where the plan has booked less than this number of rows needs; else NULL */
} conv;

static dnnl_format_tag_t tag_of(tdm_layout layout) {
    static const dnnl_format_tag_t tag[TDM_LAYOUT_COUNT] = {dnnl_nchw, dnnl_nhwc, dnnl_nChw8c, dnnl_nChw16c};
    return tag[layout];
}

/* ---- chunks ---- */

/* The divisor of `rows` nearest to `wanted`, as a ratio; the smaller of two that are equally near. */
static int64_t divisor_near(int64_t rows, double wanted) {
    int64_t best = 1;
    double best_distance = INFINITY;
    for (int64_t d = 1; d <= rows; d++) {
        if (rows % d != 0) continue;
        const double distance = fabs(log((double)d / wanted));
        if (distance < best_distance) best_distance = distance, best = d;
    }
    return best;
}

static int64_t chunk_rows(const tdm_kernel_desc *desc, int64_t rows, bool winograd) {
    const int64_t *y = desc->y.dim;
    const double tiles = (double)(((y[2] + 3) / 4) * ((y[3] + 3) / 4));
    const double bytes = (double)(y[1] * y[2] * y[3]) * sizeof(float);
    return divisor_near(rows, (winograd ? CHUNK_TILES / tiles : CHUNK_BYTES / bytes) * desc->threads);
}

/* ---- plans ---- */

static void plans_deinit(plans *p) {
    for (int i = 0; i < PASSES; i++) {
        tdm__dnnl_plan_free(p->pass[i]);
        tdm__dnnl_plan_free(p->reorder[i]);
    }
    dnnl_memory_desc_t *desc[] = {&p->x, &p->y, &p->weights, &p->any_weights, &p->bias};
    for (size_t i = 0; i < sizeof desc / sizeof desc[0]; i++) tdm__dnnl_desc_deinit(desc[i]);
}

static dnnl_status_t describe(plans *p, const tdm_kernel_desc *desc, tdm_layout x_layout, tdm_layout y_layout) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim, *w = desc->param[0].dim, groups = attrs->groups;
    const dnnl_dims_t x_dims = {p->chunk, x[1], x[2], x[3]}, y_dims = {p->chunk, y[1], y[2], y[3]}, bias = {w[0]};
    const dnnl_dims_t dense = {w[0], w[1], w[2], w[3]}, grouped = {groups, w[0] / groups, w[1], w[2], w[3]};
    const int ndims = groups == 1 ? 4 : 5;
    const dnnl_dim_t *weights = groups == 1 ? dense : grouped;
    dnnl_status_t status = tdm__dnnl_desc_init(&p->x, 4, x_dims, tag_of(x_layout));
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->y, 4, y_dims, tag_of(y_layout));
    if (status == dnnl_success)
        status = tdm__dnnl_desc_init(&p->weights, ndims, weights, groups == 1 ? dnnl_oihw : dnnl_goihw);
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->any_weights, ndims, weights, dnnl_format_tag_any);
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->bias, 1, bias, dnnl_a);
    return status;
}

static dnnl_status_t plan_pass(plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc,
                               tdm_dnnl_pass pass) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const tdm_window *window = &attrs->window;
    const tdm_dnnl_conv c = {
        .algorithm = p->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
        .x = tdm__dnnl_ref(&p->x),
        .weights = tdm__dnnl_ref(&p->any_weights),
        .bias = desc->param_count > 1 ? tdm__dnnl_ref(&p->bias) : NULL,
        .y = tdm__dnnl_ref(&p->y),
        .stride = {window->stride[0], window->stride[1]},
        .dilation = {window->dilation[0] - 1, window->dilation[1] - 1},
        .padding = {window->padding[0], window->padding[1]},
    };
    dnnl_status_t status =
        tdm__dnnl_conv_plan(&p->pass[pass], context->engine, context->attr, pass, &c, p->pass[TDM_DNNL_FORWARD]);
    if (status != dnnl_success) return status;
    if (!p->any && tdm__dnnl_is_fallback(p->pass[pass])) return dnnl_unimplemented;
    const tdm_dnnl_ref plain = tdm__dnnl_ref(&p->weights);
    const bool gradient = pass == TDM_DNNL_BACKWARD_WEIGHTS;
    const tdm_dnnl_ref own = tdm__dnnl_argument(p->pass[pass], gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS);
    if (tdm__dnnl_same(plain, own)) return dnnl_success;
    return tdm__dnnl_reorder_plan(&p->reorder[pass], context->engine, context->attr, gradient ? own : plain,
                                  gradient ? plain : own);
}

static dnnl_status_t plans_init(plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc, int64_t rows,
                                tdm_layout x_layout, tdm_layout y_layout, bool winograd, bool any, bool training) {
    *p = (plans){.winograd = winograd, .any = any, .chunk = chunk_rows(desc, rows, winograd)};
    dnnl_status_t status = describe(p, desc, x_layout, y_layout);
    if (status == dnnl_success) status = plan_pass(p, context, desc, TDM_DNNL_FORWARD);
    if (status == dnnl_success && training && desc->wants_dx[0])
        status = plan_pass(p, context, desc, TDM_DNNL_BACKWARD_DATA);
    if (status == dnnl_success && training) status = plan_pass(p, context, desc, TDM_DNNL_BACKWARD_WEIGHTS);
    if (status != dnnl_success) plans_deinit(p);
    return status;
}

/* What layouts were chosen for the most rows may have only slow code for fewer: `any` takes that where nothing else is
 * left. */
static dnnl_status_t plans_choose(plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc, int64_t rows,
                                  tdm_layout x_layout, tdm_layout y_layout, bool any, bool training) {
    const int64_t *y = desc->y.dim;
    dnnl_status_t status = dnnl_unimplemented;
    if (desc->fast && y[2] >= 8 && y[3] >= 8)
        status = plans_init(p, context, desc, rows, x_layout, y_layout, true, false, training);
    if (status != dnnl_success) status = plans_init(p, context, desc, rows, x_layout, y_layout, false, false, training);
    if (status != dnnl_success && any)
        status = plans_init(p, context, desc, rows, x_layout, y_layout, false, true, training);
    return status;
}

/* ---- scratch ---- */

static size_t weight_bytes(const plans *p, tdm_dnnl_pass pass) {
    const int argument = pass == TDM_DNNL_BACKWARD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    return p->pass[pass] != NULL ? tdm__dnnl_bytes(tdm__dnnl_argument(p->pass[pass], argument)) : 0;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static places places_of(const plans *p, const tdm_kernel_desc *desc) {
    const bool backward = p->pass[TDM_DNNL_BACKWARD_WEIGHTS] != NULL;
    size_t weights = 0, pad = 0;
    for (int i = 0; i < PASSES; i++) {
        if (p->pass[i] != NULL) pad = larger(pad, tdm__dnnl_scratchpad_bytes(p->pass[i]));
        if (p->reorder[i] == NULL) continue;
        pad = larger(pad, tdm__dnnl_scratchpad_bytes(p->reorder[i]));
        if (i != TDM_DNNL_BACKWARD_WEIGHTS) weights = larger(weights, weight_bytes(p, (tdm_dnnl_pass)i));
    }
    const size_t gradient = weight_bytes(p, TDM_DNNL_BACKWARD_WEIGHTS);
    places at = {.sum = tdm__dnnl_round(weights)};
    at.part = at.sum + (p->reorder[TDM_DNNL_BACKWARD_WEIGHTS] != NULL ? tdm__dnnl_round(gradient) : 0);
    at.bias_part = at.part + tdm__dnnl_round(gradient);
    at.masked = at.bias_part + tdm__dnnl_round((size_t)desc->y.dim[1] * sizeof(float));
    at.pad = at.masked + (backward && desc->relu ? tdm__dnnl_round(tdm__dnnl_bytes(tdm__dnnl_ref(&p->y))) : 0);
    at.total = at.pad + tdm__dnnl_round(pad);
    return at;
}

/* ---- fits ---- */

static tdm_layout blocked(int64_t channels, tdm_layout otherwise) {
    const int64_t block = tdm__dnnl_channel_block();
    if (block == 1 || channels % block != 0) return otherwise;
    return block == 16 ? TDM_LAYOUT_C16 : TDM_LAYOUT_C8;
}

/* Blocks of channels where they divide (the input of a first layer may be planes), else neighbouring channels, else
 * planes: the first that oneDNN has code for. Planes come last because they take the slow way over im2col, and because
 * PyTorch does not: it blocks the channels, as the others do, and adds in the same order. */
static bool fits_layouts(const tdm_kernel_desc *desc, const tdm_dnnl_context *context, tdm_kernel_fit *fit) {
    const int64_t in = desc->x[0].dim[1], out = desc->y.dim[1];
    const tdm_layout candidate[][2] = {
        {blocked(in, TDM_LAYOUT_PLAIN), blocked(out, TDM_LAYOUT_NHWC)},
        {TDM_LAYOUT_NHWC, TDM_LAYOUT_NHWC},
        {TDM_LAYOUT_PLAIN, TDM_LAYOUT_PLAIN},
    };
    for (size_t i = 0; i < sizeof candidate / sizeof candidate[0]; i++) {
        plans p;
        if (plans_choose(&p, context, desc, desc->y.dim[0], candidate[i][0], candidate[i][1], false, true) !=
            dnnl_success)
            continue;
        fit->x_layout[0] = candidate[i][0];
        fit->y_layout = candidate[i][1];
        fit->scratch_bytes = places_of(&p, desc).total;
        plans_deinit(&p);
        return true;
    }
    return false;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    tdm_dnnl_context context = {0};
    const tdm_dnnl_caller caller = tdm__dnnl_enter(desc->threads);
    const bool found = tdm__dnnl_context_init(&context) == dnnl_success && fits_layouts(desc, &context, fit);
    tdm__dnnl_context_deinit(&context);
    tdm__dnnl_leave(&caller);
    fit->relu = true;
    if (!found) snprintf(fit->why, sizeof fit->why, "oneDNN has only its slow reference code for this shape");
    return found;
}

/* ---- open and close ---- */

static void close_state(void *state) {
    conv *c = state;
    if (c == NULL) return;
    for (int i = 0; i < PASSES; i++) {
        tdm__dnnl_call_deinit(&c->pass[i]);
        tdm__dnnl_call_deinit(&c->reorder[i]);
    }
    tdm__dnnl_context_deinit(&c->context);
    free(c->scratch);
    free(c);
}

static dnnl_status_t make_calls(conv *c, const plans *p) {
    static const int argument[PASSES][TDM_DNNL_MAX_ARGS + 1] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_SCRATCHPAD},
    };
    static const int reorder[] = {DNNL_ARG_FROM, DNNL_ARG_TO, DNNL_ARG_SCRATCHPAD, 0};
    for (int i = 0; i < PASSES; i++) {
        dnnl_status_t status = dnnl_success;
        if (p->pass[i] != NULL) status = tdm__dnnl_call_init(&c->pass[i], &c->context, p->pass[i], argument[i]);
        if (status == dnnl_success && p->reorder[i] != NULL)
            status = tdm__dnnl_call_init(&c->reorder[i], &c->context, p->reorder[i], reorder);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

/* What the plan has booked was computed for the most rows; other numbers of rows have other chunks. */
static tdm_status book_scratch(conv *c, const tdm_kernel_desc *desc, int64_t rows) {
    plans most;
    if (rows == desc->y.dim[0]) return TDM_OK;
    TDM_DNNL_TRY(tdm__dnnl_check(
        plans_choose(&most, &c->context, desc, desc->y.dim[0], desc->x_layout[0], desc->y_layout, true, true),
        "conv2d"));
    const size_t booked = places_of(&most, desc).total;
    plans_deinit(&most);
    if (c->at.total <= booked) return TDM_OK;
    c->scratch = aligned_alloc(64, tdm__dnnl_round(c->at.total));
    if (c->scratch == NULL) TDM_DNNL_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of scratch", c->at.total);
    return TDM_OK;
}

static tdm_status prepare(conv *c, const tdm_kernel_desc *desc, int64_t rows, bool training) {
    plans p;
    TDM_DNNL_TRY(tdm__dnnl_check(tdm__dnnl_context_init(&c->context), "conv2d"));
    TDM_DNNL_TRY(tdm__dnnl_check(
        plans_choose(&p, &c->context, desc, rows, desc->x_layout[0], desc->y_layout, true, training), "conv2d"));
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    c->at = places_of(&p, desc);
    c->chunk = p.chunk;
    c->chunk_x = c->chunk * x[1] * x[2] * x[3];
    c->chunk_y = c->chunk * y[1] * y[2] * y[3];
    c->weight_count = weight_bytes(&p, TDM_DNNL_BACKWARD_WEIGHTS) / sizeof(float);
    const dnnl_status_t status = make_calls(c, &p);
    plans_deinit(&p);
    TDM_DNNL_TRY(tdm__dnnl_check(status, "conv2d"));
    return book_scratch(c, desc, rows);
}

static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                             void **state) {
    (void)device;
    conv *c = calloc(1, sizeof *c);
    *state = NULL;
    if (c == NULL) TDM_DNNL_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    const tdm_dnnl_caller caller = tdm__dnnl_enter(desc->threads);
    const tdm_status status = prepare(c, desc, rows, training);
    tdm__dnnl_leave(&caller);
    if (status != TDM_OK) {
        close_state(c);
        return status;
    }
    *state = c;
    return TDM_OK;
}

/* ---- running ---- */

/* The weights as `pass` wants them. */
static dnnl_status_t bring_weights(conv *c, const tdm_kernel_args *args, char *scratch, tdm_dnnl_pass pass,
                                   const float **out) {
    *out = args->param[0];
    if (c->reorder[pass].primitive == NULL) return dnnl_success;
    *out = (const float *)(scratch + c->at.weights);
    return tdm__dnnl_call_run(&c->reorder[pass], &c->context,
                              (const void *const[]){args->param[0], *out, scratch + c->at.pad});
}

static dnnl_status_t run_forward(conv *c, const tdm_kernel_args *args) {
    char *scratch = c->scratch != NULL ? c->scratch : args->scratch;
    const float *weights, *bias = args->desc->param_count > 1 ? args->param[1] : NULL, *x = args->x[0];
    float *y = args->y;
    dnnl_status_t status = bring_weights(c, args, scratch, TDM_DNNL_FORWARD, &weights);
    for (int64_t row = 0; row < args->rows && status == dnnl_success; row += c->chunk) {
        status = tdm__dnnl_call_run(&c->pass[TDM_DNNL_FORWARD], &c->context,
                                    (const void *const[]){x, weights, bias, y, scratch + c->at.pad});
        if (args->desc->relu) tdm__dnnl_relu(y, c->chunk_y, args->desc->threads);
        x += c->chunk_x, y += c->chunk_y;
    }
    return status;
}

/* The gradient of the weights and the bias from one chunk, written for the first and added for the others. */
static dnnl_status_t add_gradient(conv *c, const tdm_kernel_args *args, char *scratch, int64_t row, const float *x,
                                  const float *dy, float *sum) {
    const tdm_dnnl_passes *passes = tdm__dnnl_passes();
    const bool biased = args->desc->param_count > 1;
    float *weights = row == 0 ? sum : (float *)(scratch + c->at.part);
    float *bias = row == 0 && biased ? args->dparam[1] : (float *)(scratch + c->at.bias_part);
    const dnnl_status_t status = tdm__dnnl_call_run(&c->pass[TDM_DNNL_BACKWARD_WEIGHTS], &c->context,
                                                    (const void *const[]){x, dy, weights, bias, scratch + c->at.pad});
    if (row == 0 || status != dnnl_success) return status;
    passes->add(sum, weights, (int64_t)c->weight_count);
    if (biased) passes->add(args->dparam[1], bias, args->desc->y.dim[1]);
    return status;
}

static dnnl_status_t run_backward(conv *c, const tdm_kernel_args *args) {
    char *scratch = c->scratch != NULL ? c->scratch : args->scratch;
    const bool back = c->reorder[TDM_DNNL_BACKWARD_WEIGHTS].primitive != NULL;
    const float *weights = NULL, *x = args->x[0], *y = args->y, *dy = args->dy;
    float *dx = args->dx[0], *sum = back ? (float *)(scratch + c->at.sum) : args->dparam[0];
    dnnl_status_t status =
        dx != NULL ? bring_weights(c, args, scratch, TDM_DNNL_BACKWARD_DATA, &weights) : dnnl_success;
    for (int64_t row = 0; row < args->rows && status == dnnl_success; row += c->chunk) {
        const float *masked = dy;
        if (args->desc->relu) {
            masked = (const float *)(scratch + c->at.masked);
            tdm__dnnl_mask((float *)(scratch + c->at.masked), dy, y, c->chunk_y, args->desc->threads);
        }
        if (dx != NULL) {
            status = tdm__dnnl_call_run(&c->pass[TDM_DNNL_BACKWARD_DATA], &c->context,
                                        (const void *const[]){masked, weights, dx, scratch + c->at.pad});
            dx += c->chunk_x;
        }
        if (status == dnnl_success) status = add_gradient(c, args, scratch, row, x, masked, sum);
        x += c->chunk_x, y += c->chunk_y, dy += c->chunk_y;
    }
    if (!back || status != dnnl_success) return status;
    return tdm__dnnl_call_run(&c->reorder[TDM_DNNL_BACKWARD_WEIGHTS], &c->context,
                              (const void *const[]){sum, args->dparam[0], scratch + c->at.pad});
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter(args->desc->threads);
    const dnnl_status_t status = run_forward(args->state, args);
    tdm__dnnl_leave(&caller);
    return tdm__dnnl_check(status, "conv2d forward");
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter(args->desc->threads);
    const dnnl_status_t status = run_backward(args->state, args);
    tdm__dnnl_leave(&caller);
    return tdm__dnnl_check(status, "conv2d backward");
}

const tdm_kernel tdm__conv2d_dnnl = {
    .op = "conv2d",
    .variant = "dnnl",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
};
