/* What conv2d asks of oneDNN: the size of chunks, layouts, operations and scratch.
 *
 * `parallel.kernels: fast` uses Winograd's algorithm where oneDNN has it (version 2, 3x3 filters, AVX-512), in chunks
 * of another size. It is more than twice as fast. It is not the default because it does not follow PyTorch: its errors
 * are about four times those of direct sums, which moves relus and maxima, and gradients that are exactly 0 come out as
 * 1e-9, from which Adam makes whole steps. */
#include <math.h>
#include <stdio.h>

#include "ops/conv2d/conv2d_columns_dnnl.h"
#include "ops/conv2d/conv2d_dnnl.h"
#include "runtime/backends/dnnl/kit/gemm.h"

enum { CHUNK_BYTES = 512 * 1024, CHUNK_TILES = 80 };

static dnnl_format_tag_t tag_of(tdm_layout layout) {
    static const dnnl_format_tag_t tag[TDM_LAYOUT_COUNT] = {dnnl_nchw, dnnl_nhwc, dnnl_nChw8c, dnnl_nChw16c};
    return tag[layout];
}

/* ---- chunks ---- */

/* Returns the divisor of `rows` whose ratio to `ideal` is closest to 1; of two equally close ones the smaller. */
static int64_t divisor_near(int64_t rows, double ideal) {
    int64_t best = 1;
    double best_distance = INFINITY;
    for (int64_t d = 1; d <= rows; d++) {
        if (rows % d != 0) continue;
        const double distance = fabs(log((double)d / ideal));
        if (distance < best_distance) best_distance = distance, best = d;
    }
    return best;
}

static int64_t chunk_rows(const tdm_kernel_desc *desc, int64_t rows, bool winograd) {
    const int64_t *y = desc->y.dim;
    const double tiles = (double)(((y[2] + 3) / 4) * ((y[3] + 3) / 4));
    const double bytes = (double)(y[1] * y[2] * y[3]) * sizeof(float);
    return divisor_near(rows, winograd ? CHUNK_TILES / tiles : CHUNK_BYTES / bytes);
}

/* ---- plans ---- */

void tdm__conv_plans_deinit(tdm_conv_plans *p) {
    for (int i = 0; i < TDM_CONV_PASSES; i++) {
        tdm__dnnl_plan_free(p->pass[i]);
        tdm__dnnl_plan_free(p->reorder[i]);
    }
    dnnl_memory_desc_t *desc[] = {&p->x,
                                  &p->y,
                                  &p->param.plain,
                                  &p->param.any,
                                  &p->param.bias,
                                  &p->gradient.plain,
                                  &p->gradient.any,
                                  &p->gradient.bias};
    for (size_t i = 0; i < sizeof desc / sizeof desc[0]; i++) tdm__dnnl_desc_deinit(desc[i]);
}

static dnnl_status_t describe_params(tdm_conv_params *p, const tdm_kernel_desc *desc, dnnl_data_type_t number) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *w = desc->param[0].dim, groups = attrs->groups;
    const dnnl_dims_t bias = {w[0]}, dense = {w[0], w[1], w[2], w[3]};
    const dnnl_dims_t grouped = {groups, w[0] / groups, w[1], w[2], w[3]};
    const int ndims = groups == 1 ? 4 : 5;
    const dnnl_dim_t *dims = groups == 1 ? dense : grouped;
    dnnl_status_t status = tdm__dnnl_desc_init(&p->plain, ndims, dims, number, groups == 1 ? dnnl_oihw : dnnl_goihw);
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->any, ndims, dims, number, dnnl_format_tag_any);
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->bias, 1, bias, number, dnnl_a);
    return status;
}

/* Planes of one channel, or of one point, are neighbouring channels, too. */
static bool is_nhwc(tdm_layout layout, const int64_t dim[4]) {
    return layout == TDM_LAYOUT_NHWC || (layout == TDM_LAYOUT_PLAIN && (dim[1] == 1 || dim[2] * dim[3] == 1));
}

/* oneDNN keeps what it made by descriptors in which strides of dimensions of 1 do not count, but chooses by the
 * strides. So they are the same for the same memory, or its answer would depend on what the process has asked before. */
static dnnl_status_t describe(tdm_conv_plans *p, const tdm_kernel_desc *desc, tdm_layout x_layout,
                              tdm_layout y_layout) {
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    if (is_nhwc(x_layout, x) && is_nhwc(y_layout, y)) x_layout = y_layout = TDM_LAYOUT_NHWC;
    const dnnl_dims_t x_dims = {p->chunk, x[1], x[2], x[3]}, y_dims = {p->chunk, y[1], y[2], y[3]};
    const dnnl_data_type_t number = desc->precision == TDM_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_status_t status = tdm__dnnl_desc_init(&p->x, 4, x_dims, number, tag_of(x_layout));
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&p->y, 4, y_dims, number, tag_of(y_layout));
    if (status == dnnl_success) status = describe_params(&p->param, desc, number);
    if (status == dnnl_success) status = describe_params(&p->gradient, desc, dnnl_f32);
    return status;
}

static dnnl_status_t plan_pass(tdm_conv_plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc,
                               tdm_dnnl_pass pass) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const tdm_window window = tdm__conv2d_window(attrs);
    const bool gradient = pass == TDM_DNNL_BACKWARD_WEIGHTS;
    const tdm_conv_params *params = gradient ? &p->gradient : &p->param;
    const tdm_dnnl_conv c = {
        .algorithm = p->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
        .x = tdm__dnnl_ref(&p->x),
        .weights = tdm__dnnl_ref(&params->any),
        .bias = desc->param_count > 1 ? tdm__dnnl_ref(&params->bias) : NULL,
        .y = tdm__dnnl_ref(&p->y),
        .stride = {window.stride[0], window.stride[1]},
        .dilation = {window.dilation[0] - 1, window.dilation[1] - 1},
        .before = {window.padding[0], window.padding[1]},
        .after = {tdm__conv2d_padding_after(attrs, 0), tdm__conv2d_padding_after(attrs, 1)},
    };
    dnnl_status_t status =
        tdm__dnnl_conv_plan(&p->pass[pass], context->engine, context->attr, pass, &c, p->pass[TDM_DNNL_FORWARD]);
    if (status == dnnl_success && !p->any) status = tdm__dnnl_refuse_fallback(p->pass[pass]);
    if (status != dnnl_success) return status;
    const tdm_dnnl_ref plain = tdm__dnnl_ref(&params->plain);
    const tdm_dnnl_ref own = tdm__dnnl_argument(p->pass[pass], gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS);
    if (dnnl_memory_desc_equal(plain, own) != 0) return dnnl_success;
    return TDM_DNNL(dnnl_reorder_primitive_desc_create)(&p->reorder[pass], gradient ? own : plain, context->engine,
                                                        gradient ? plain : own, context->engine, context->attr);
}

static dnnl_status_t plans_init(tdm_conv_plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc,
                                int64_t rows, tdm_layout x_layout, tdm_layout y_layout, bool winograd, bool any,
                                bool training) {
    *p = (tdm_conv_plans){.winograd = winograd, .any = any, .chunk = chunk_rows(desc, rows, winograd)};
    dnnl_status_t status = describe(p, desc, x_layout, y_layout);
    if (status == dnnl_success) status = plan_pass(p, context, desc, TDM_DNNL_FORWARD);
    if (status == dnnl_success && training && desc->needs_dx[0])
        status = plan_pass(p, context, desc, TDM_DNNL_BACKWARD_DATA);
    if (status == dnnl_success && training) status = plan_pass(p, context, desc, TDM_DNNL_BACKWARD_WEIGHTS);
    if (status != dnnl_success) tdm__conv_plans_deinit(p);
    return status;
}

/* Whether to try another algorithm or layout. Not after a lack of memory: that would decide the choice, and so the
 * bits. */
static bool is_refused(dnnl_status_t status) {
    return status != dnnl_success && status != dnnl_out_of_memory;
}

dnnl_status_t tdm__conv_plans_choose(tdm_conv_plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc,
                                     int64_t rows, tdm_layout x_layout, tdm_layout y_layout, bool any, bool training) {
    const int64_t *y = desc->y.dim;
    dnnl_status_t status = dnnl_unimplemented;
    if (desc->fast && desc->precision != TDM_BF16 && y[2] >= 8 && y[3] >= 8)
        status = plans_init(p, context, desc, rows, x_layout, y_layout, true, false, training);
    if (is_refused(status)) status = plans_init(p, context, desc, rows, x_layout, y_layout, false, false, training);
    if (!is_refused(status) || !any) return status;
    return plans_init(p, context, desc, rows, x_layout, y_layout, false, true, training);
}

/* ---- scratch ---- */

size_t tdm__conv_weight_bytes(const tdm_conv_plans *p, tdm_dnnl_pass pass) {
    const int argument = pass == TDM_DNNL_BACKWARD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    return p->pass[pass] != NULL ? tdm__dnnl_bytes(tdm__dnnl_argument(p->pass[pass], argument)) : 0;
}

int64_t tdm__conv_workers_of(const tdm_conv_plans *p, const tdm_kernel_desc *desc, int64_t rows) {
    const int64_t chunks = rows / p->chunk;
    return chunks < desc->threads ? chunks : desc->threads;
}

tdm_conv_offsets tdm__conv_offsets_of(const tdm_conv_plans *p, const tdm_kernel_desc *desc, int64_t rows) {
    const bool backward = desc->training && p->pass[TDM_DNNL_BACKWARD_WEIGHTS] != NULL;
    const bool has_parts = backward && rows > p->chunk; /* the first chunk writes straight into the sum */
    size_t weights = 0, pad = 0, worker_pad = 0;
    for (int i = 0; i < (desc->training ? TDM_CONV_PASSES : TDM_DNNL_BACKWARD_DATA); i++) {
        if (p->pass[i] != NULL) worker_pad = tdm__larger(worker_pad, tdm__dnnl_scratchpad_bytes(p->pass[i]));
        if (p->reorder[i] == NULL) continue;
        pad = tdm__larger(pad, tdm__dnnl_scratchpad_bytes(p->reorder[i]));
        if (i != TDM_DNNL_BACKWARD_WEIGHTS) weights = tdm__larger(weights, tdm__conv_weight_bytes(p, (tdm_dnnl_pass)i));
    }
    const size_t gradient = backward ? tdm__conv_weight_bytes(p, TDM_DNNL_BACKWARD_WEIGHTS) : 0;
    tdm_conv_offsets at = {.sum = tdm__dnnl_round(weights)};
    at.pad = at.sum + (backward && p->reorder[TDM_DNNL_BACKWARD_WEIGHTS] != NULL ? tdm__dnnl_round(gradient) : 0);
    at.workers = at.pad + tdm__dnnl_round(pad);
    at.bias_part = at.part + (has_parts ? tdm__dnnl_round(gradient) : 0);
    at.masked = at.bias_part + (has_parts ? tdm__dnnl_round((size_t)desc->y.dim[1] * sizeof(float)) : 0);
    at.worker_pad = at.masked + (backward && tdm_has_epilogue(desc, TDM_EPILOGUE_RELU)
                                     ? tdm__dnnl_round(tdm__dnnl_bytes(tdm__dnnl_ref(&p->y)))
                                     : 0);
    at.worker = at.worker_pad + tdm__dnnl_round(worker_pad);
    at.total = at.workers + (size_t)tdm__conv_workers_of(p, desc, rows) * at.worker;
    return at;
}

/* ---- what oneDNN takes ---- */

/* Of code that is many small kernels, with a margin of a third: eight descriptions for each point of a row of y, kernels
 * for each tap of a row that reads beside x, and longer ones for more channels. */
static size_t many_bytes(const tdm_kernel_desc *desc) {
    enum { LEAST = 128 << 10, POINT = 8 << 10, TAP = 32 << 10, CHANNEL = 256 };
    const int64_t *w = desc->param[0].dim;
    return LEAST + (size_t)desc->y.dim[3] * POINT + (size_t)w[3] * TAP + (size_t)w[1] * CHANNEL;
}

static void take_kept(tdm_kernel_fit *fit, const tdm_conv_plans *p, const tdm_kernel_desc *desc) {
    tdm_kernel_desc own = *desc;
    tdm_conv_ways ways;
    own.x_layout[0] = fit->x_layout[0], own.y_layout = fit->y_layout;
    tdm__conv_direct_choose(&ways, p, &own);
    fit->kept_bytes = 0;
    if (!ways.is_direct[TDM_DNNL_FORWARD])
        fit->kept_bytes = tdm__dnnl_kept_bytes(p->pass[TDM_DNNL_FORWARD], many_bytes(desc),
                                               tdm__conv_workers_of(p, desc, desc->y.dim[0]));
    if (p->reorder[TDM_DNNL_FORWARD] != NULL && !ways.packs[TDM_DNNL_FORWARD])
        fit->kept_bytes += TDM_DNNL_REORDER_BYTES;
}

/* Where oneDNN multiplies matrices of columns, one row of a group at a time. */
static size_t call_bytes(const tdm_conv_plans *p, const tdm_kernel_desc *desc) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *w = desc->param[0].dim, *y = desc->y.dim;
    const int64_t out = w[0] / attrs->groups, terms = w[1] * w[2] * w[3], points = y[2] * y[3];
    const size_t number = tdm__conv_element_bytes(desc);
    if (!tdm__dnnl_is_gemm(p->pass[TDM_DNNL_FORWARD])) return 0;
    size_t most = tdm__dnnl_gemm_bytes(out, points, terms, number);
    if (desc->training) {
        most = tdm__larger(most, tdm__dnnl_gemm_bytes(terms, points, out, number));
        most = tdm__larger(most, tdm__dnnl_gemm_bytes(out, terms, points, number));
    }
    return (size_t)tdm__conv_workers_of(p, desc, desc->y.dim[0]) * most;
}

/* ---- fits ---- */

static tdm_layout blocked(int64_t channels, tdm_layout otherwise) {
    const int64_t block = tdm__dnnl_channel_block();
    if (block == 1 || channels % block != 0) return otherwise;
    return block == 16 ? TDM_LAYOUT_C16 : TDM_LAYOUT_C8;
}

/* Tries layouts in this order and takes the first for which oneDNN has code: channels in blocks where they divide
 * evenly (the input of a first layer may be planes), neighbouring channels, planes. Planes come last because they use
 * the slow way over im2col, which PyTorch does not use: it blocks the channels, as the other layouts do, and adds in
 * the same order. In bf16 only neighbouring channels: oneDNN has no other for AMX. A series is always in planes. */
static dnnl_status_t fits_layouts(const tdm_kernel_desc *desc, const tdm_dnnl_context *context, tdm_kernel_fit *fit) {
    const int64_t in = desc->x[0].dim[1], out = desc->y.dim[1];
    const tdm_layout candidate[][2] = {
        {blocked(in, TDM_LAYOUT_PLAIN), blocked(out, TDM_LAYOUT_NHWC)},
        {TDM_LAYOUT_NHWC, TDM_LAYOUT_NHWC},
        {TDM_LAYOUT_PLAIN, TDM_LAYOUT_PLAIN},
    };
    dnnl_status_t status = dnnl_unimplemented;
    const bool is_bf16 = desc->precision == TDM_BF16, series = ((const tdm_conv2d_attrs *)desc->attrs)->is_series;
    const size_t count = sizeof candidate / sizeof candidate[0];
    const size_t first = series ? count - 1 : is_bf16 ? 1 : 0, end = is_bf16 ? 2 : count;
    for (size_t i = first; i < end && is_refused(status); i++) {
        tdm_conv_plans p;
        status =
            tdm__conv_plans_choose(&p, context, desc, desc->y.dim[0], candidate[i][0], candidate[i][1], false, true);
        if (status != dnnl_success) continue;
        fit->x_layout[0] = candidate[i][0];
        fit->y_layout = candidate[i][1];
        fit->scratch_bytes = tdm__conv_offsets_of(&p, desc, desc->y.dim[0]).total;
        fit->call_bytes = call_bytes(&p, desc);
        take_kept(fit, &p, desc);
        tdm__conv_plans_deinit(&p);
    }
    return status;
}

bool tdm__conv_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    tdm_dnnl_context context = {0};
    if (tdm__conv_columns_wanted(desc)) return tdm__conv_columns_fits(desc, fit);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    dnnl_status_t status = tdm__dnnl_context_init(&context);
    if (status == dnnl_success) status = fits_layouts(desc, &context, fit);
    tdm__dnnl_context_deinit(&context);
    tdm__dnnl_leave(&caller);
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->no_memory = status == dnnl_out_of_memory;
    if (status != dnnl_success)
        snprintf(fit->why, sizeof fit->why, "oneDNN %s",
                 fit->no_memory ? "is out of memory" : "has only its slow reference code for this shape");
    return status == dnnl_success;
}
