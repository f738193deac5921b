/* conv2d with oneDNN.
 *
 * Rows are processed in chunks that stay in the second-level cache: the relu, its mask in backward and the two backward
 * convolutions find their operands there. Weights are in PyTorch's layout, and each call brings them into oneDNN's. The
 * gradient of the weights is summed over the chunks in their order and brought back once.
 *
 * Several threads work on a chunk each. Neither the chunks nor the order of that sum depends on the number of threads,
 * so neither do the bits.
 *
 * `parallel.kernels: fast` uses Winograd's algorithm where oneDNN has it (version 2, 3x3 filters, AVX-512), in chunks
 * of another size. It is more than twice as fast. It is not the default because it does not follow PyTorch: its errors
 * are about four times those of direct sums, which moves relus and maxima, and gradients that are exactly 0 come out as
 * 1e-9, from which Adam makes whole steps.
 *
 * The relu is a pass of its own: oneDNN's relu turns NaN into 0, and PyTorch's lets it through. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/conv2d/conv2d.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

enum { PASSES = 3, CHUNK_BYTES = 512 * 1024, CHUNK_TILES = 80 };

/* oneDNN's view of one chunk. */
typedef struct {
    dnnl_memory_desc_t x, y, weights, any_weights, bias;
    dnnl_primitive_desc_t pass[PASSES]; /* indexed by tdm_dnnl_pass; NULL if not needed */
    dnnl_primitive_desc_t
        reorder[PASSES]; /* weights into the pass's layout, or its gradient back; NULL: PyTorch's layout will do */
    int64_t chunk;       /* rows */
    bool winograd;
    bool any; /* oneDNN's slow reference code is accepted */
} plans;

/* Byte offsets in scratch. Shared: the weights in oneDNN's layout, the gradient of the weights summed over chunks in
 * oneDNN's layout, and the scratchpad of the reorders. For each chunk in flight (a slot): its own gradients, dy where y
 * > 0, and its scratchpad. */
typedef struct {
    size_t weights, sum, pad;
    size_t slots, slot; /* where the slots begin, the bytes of each; offsets within a slot: */
    size_t part, bias_part, masked, slot_pad;
    size_t total;
} offsets;

/* What one chunk in flight needs for itself. */
typedef struct {
    tdm_dnnl_context context; /* its engine and attributes belong to the state */
    tdm_dnnl_call pass[PASSES];
    dnnl_status_t status;
} slot;

typedef struct {
    tdm_dnnl_context context;
    slot *slots;
    int64_t slot_count, chunk_count;
    tdm_dnnl_call reorder[PASSES];
    offsets at;
    int64_t chunk_x, chunk_y; /* elements of x and of y in one chunk */
    size_t weight_count;      /* elements of the gradient in oneDNN's layout */
    void *scratch; /* the state's own scratch, if the plan has booked less than this number of rows needs; else NULL */
} conv;

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
    if (status == dnnl_success && !p->any) status = tdm__dnnl_refuse_fallback(p->pass[pass]);
    if (status != dnnl_success) return status;
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

/* Whether to try another algorithm or layout. Not after a lack of memory: that would decide the choice, and so the
 * bits. */
static bool is_refused(dnnl_status_t status) {
    return status != dnnl_success && status != dnnl_out_of_memory;
}

/* The layouts were chosen for the most rows; for fewer rows they may have only slow code. `any` accepts that code if
 * there is nothing else. */
static dnnl_status_t plans_choose(plans *p, const tdm_dnnl_context *context, const tdm_kernel_desc *desc, int64_t rows,
                                  tdm_layout x_layout, tdm_layout y_layout, bool any, bool training) {
    const int64_t *y = desc->y.dim;
    dnnl_status_t status = dnnl_unimplemented;
    if (desc->fast && y[2] >= 8 && y[3] >= 8)
        status = plans_init(p, context, desc, rows, x_layout, y_layout, true, false, training);
    if (is_refused(status)) status = plans_init(p, context, desc, rows, x_layout, y_layout, false, false, training);
    if (is_refused(status) && any)
        status = plans_init(p, context, desc, rows, x_layout, y_layout, false, true, training);
    return status;
}

/* ---- scratch ---- */

static size_t weight_bytes(const plans *p, tdm_dnnl_pass pass) {
    const int argument = pass == TDM_DNNL_BACKWARD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    return p->pass[pass] != NULL ? tdm__dnnl_bytes(tdm__dnnl_argument(p->pass[pass], argument)) : 0;
}

static int64_t slots_of(const plans *p, const tdm_kernel_desc *desc, int64_t rows) {
    const int64_t chunks = rows / p->chunk;
    return chunks < desc->threads ? chunks : desc->threads;
}

static offsets offsets_of(const plans *p, const tdm_kernel_desc *desc, int64_t rows) {
    const bool backward = p->pass[TDM_DNNL_BACKWARD_WEIGHTS] != NULL;
    size_t weights = 0, pad = 0, slot_pad = 0;
    for (int i = 0; i < PASSES; i++) {
        if (p->pass[i] != NULL) slot_pad = tdm__larger(slot_pad, tdm__dnnl_scratchpad_bytes(p->pass[i]));
        if (p->reorder[i] == NULL) continue;
        pad = tdm__larger(pad, tdm__dnnl_scratchpad_bytes(p->reorder[i]));
        if (i != TDM_DNNL_BACKWARD_WEIGHTS) weights = tdm__larger(weights, weight_bytes(p, (tdm_dnnl_pass)i));
    }
    const size_t gradient = weight_bytes(p, TDM_DNNL_BACKWARD_WEIGHTS);
    offsets at = {.sum = tdm__dnnl_round(weights)};
    at.pad = at.sum + (p->reorder[TDM_DNNL_BACKWARD_WEIGHTS] != NULL ? tdm__dnnl_round(gradient) : 0);
    at.slots = at.pad + tdm__dnnl_round(pad);
    at.bias_part = at.part + tdm__dnnl_round(gradient);
    at.masked = at.bias_part + tdm__dnnl_round((size_t)desc->y.dim[1] * sizeof(float));
    at.slot_pad = at.masked + (backward && tdm_has_epilogue(desc, TDM_EPILOGUE_RELU)
                                   ? tdm__dnnl_round(tdm__dnnl_bytes(tdm__dnnl_ref(&p->y)))
                                   : 0);
    at.slot = at.slot_pad + tdm__dnnl_round(slot_pad);
    at.total = at.slots + (size_t)slots_of(p, desc, rows) * at.slot;
    return at;
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
 * the same order. */
static dnnl_status_t fits_layouts(const tdm_kernel_desc *desc, const tdm_dnnl_context *context, tdm_kernel_fit *fit) {
    const int64_t in = desc->x[0].dim[1], out = desc->y.dim[1];
    const tdm_layout candidate[][2] = {
        {blocked(in, TDM_LAYOUT_PLAIN), blocked(out, TDM_LAYOUT_NHWC)},
        {TDM_LAYOUT_NHWC, TDM_LAYOUT_NHWC},
        {TDM_LAYOUT_PLAIN, TDM_LAYOUT_PLAIN},
    };
    dnnl_status_t status = dnnl_unimplemented;
    for (size_t i = 0; i < sizeof candidate / sizeof candidate[0] && is_refused(status); i++) {
        plans p;
        status = plans_choose(&p, context, desc, desc->y.dim[0], candidate[i][0], candidate[i][1], false, true);
        if (status != dnnl_success) continue;
        fit->x_layout[0] = candidate[i][0];
        fit->y_layout = candidate[i][1];
        fit->scratch_bytes = offsets_of(&p, desc, desc->y.dim[0]).total;
        plans_deinit(&p);
    }
    return status;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    tdm_dnnl_context context = {0};
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

/* ---- open and close ---- */

static void close_slot(slot *own) {
    for (int i = 0; i < PASSES; i++) tdm__dnnl_call_deinit(&own->pass[i]);
    if (own->context.stream != NULL) dnnl_stream_destroy(own->context.stream);
}

static void close_state(void *state) {
    conv *c = state;
    if (c == NULL) return;
    for (int64_t i = 0; c->slots != NULL && i < c->slot_count; i++) close_slot(&c->slots[i]);
    for (int i = 0; i < PASSES; i++) tdm__dnnl_call_deinit(&c->reorder[i]);
    tdm__dnnl_context_deinit(&c->context);
    free(c->slots);
    free(c->scratch);
    free(c);
}

static dnnl_status_t open_slot(slot *own, const conv *c, const plans *p) {
    static const int argument[PASSES][TDM_DNNL_MAX_ARGS + 1] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_SCRATCHPAD},
    };
    own->context = c->context;
    dnnl_status_t status =
        TDM_DNNL(dnnl_stream_create)(&own->context.stream, c->context.engine, dnnl_stream_default_flags);
    if (status != dnnl_success) own->context.stream = NULL;
    for (int i = 0; i < PASSES && status == dnnl_success; i++) {
        if (p->pass[i] != NULL) status = tdm__dnnl_call_init(&own->pass[i], &own->context, p->pass[i], argument[i]);
    }
    return status;
}

static dnnl_status_t make_calls(conv *c, const plans *p) {
    static const int reorder[] = {DNNL_ARG_FROM, DNNL_ARG_TO, DNNL_ARG_SCRATCHPAD, 0};
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < c->slot_count && status == dnnl_success; i++) status = open_slot(&c->slots[i], c, p);
    for (int i = 0; i < PASSES && status == dnnl_success; i++) {
        if (p->reorder[i] != NULL) status = tdm__dnnl_call_init(&c->reorder[i], &c->context, p->reorder[i], reorder);
    }
    return status;
}

/* Allocates scratch of its own if the plan has booked too little: it was computed for the most rows, and another number
 * of rows has other chunks. */
static tdm_status book_scratch(conv *c, const tdm_kernel_desc *desc, int64_t rows) {
    plans most;
    if (rows == desc->y.dim[0]) return TDM_OK;
    TDM_DNNL_TRY(tdm__dnnl_check(
        plans_choose(&most, &c->context, desc, desc->y.dim[0], desc->x_layout[0], desc->y_layout, true, true),
        "conv2d"));
    const size_t booked = offsets_of(&most, desc, desc->y.dim[0]).total;
    plans_deinit(&most);
    if (c->at.total <= booked) return TDM_OK;
    c->scratch = aligned_alloc(64, tdm__dnnl_round(c->at.total));
    if (c->scratch == NULL)
        TDM_DNNL_FAIL(
            TDM_E_MEMORY,
            "conv2d: out of memory for %zu bytes of scratch; make train.batch.per_device or eval.batch smaller",
            c->at.total);
    return TDM_OK;
}

static tdm_status prepare(conv *c, const tdm_kernel_desc *desc, int64_t rows, bool training) {
    plans p;
    TDM_DNNL_TRY(tdm__dnnl_check(tdm__dnnl_context_init(&c->context), "conv2d"));
    TDM_DNNL_TRY(tdm__dnnl_check(
        plans_choose(&p, &c->context, desc, rows, desc->x_layout[0], desc->y_layout, true, training), "conv2d"));
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    c->at = offsets_of(&p, desc, rows);
    c->slot_count = slots_of(&p, desc, rows);
    c->chunk_count = rows / p.chunk;
    c->chunk_x = p.chunk * x[1] * x[2] * x[3];
    c->chunk_y = p.chunk * y[1] * y[2] * y[3];
    c->slots = calloc((size_t)c->slot_count, sizeof *c->slots);
    c->weight_count = weight_bytes(&p, TDM_DNNL_BACKWARD_WEIGHTS) / sizeof(float);
    const dnnl_status_t status = c->slots != NULL ? make_calls(c, &p) : dnnl_out_of_memory;
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
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
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

/* Brings the weights into the layout of `pass`. */
static dnnl_status_t bring_weights(conv *c, const tdm_kernel_args *args, char *scratch, tdm_dnnl_pass pass,
                                   const float **out) {
    *out = args->param[0];
    if (c->reorder[pass].primitive == NULL) return dnnl_success;
    *out = (const float *)(scratch + c->at.weights);
    return tdm__dnnl_call_run(&c->reorder[pass], &c->context,
                              (const void *const[]){args->param[0], *out, scratch + c->at.pad});
}

/* Chunks [first, first + count) of one pass over the rows. */
typedef struct {
    conv *c;
    const tdm_kernel_args *args;
    char *scratch;
    const float *weights;
    float *sum;
    int64_t first, count;
} work;

static char *slot_scratch(const work *w, int64_t index) {
    return w->scratch + w->c->at.slots + (size_t)index * w->c->at.slot;
}

static dnnl_status_t first_failure(const conv *c) {
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < c->slot_count && status == dnnl_success; i++) status = c->slots[i].status;
    return status;
}

static dnnl_status_t forward_chunk(const work *w, int64_t index, int64_t chunk) {
    const tdm_kernel_args *args = w->args;
    const float *bias = args->desc->param_count > 1 ? args->param[1] : NULL;
    float *y = args->y + chunk * w->c->chunk_y;
    slot *own = &w->c->slots[index];
    const dnnl_status_t status =
        tdm__dnnl_call_run(&own->pass[TDM_DNNL_FORWARD], &own->context,
                           (const void *const[]){args->x[0] + chunk * w->c->chunk_x, w->weights, bias, y,
                                                 slot_scratch(w, index) + w->c->at.slot_pad});
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) TDM_LANES(tdm__dnnl_passes)->relu(y, w->c->chunk_y);
    return status;
}

static void forward_slots(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t i = begin; i < end; i++) {
        slot *own = &w->c->slots[i];
        const int64_t last = w->count * (i + 1) / w->c->slot_count;
        own->status = dnnl_success;
        for (int64_t chunk = w->count * i / w->c->slot_count; chunk < last && own->status == dnnl_success; chunk++)
            own->status = forward_chunk(w, i, chunk);
    }
}

static tdm_status run_forward(conv *c, const tdm_kernel_args *args) {
    static const char what[] = "conv2d forward";
    work w = {.c = c, .args = args, .count = c->chunk_count};
    w.scratch = c->scratch != NULL ? c->scratch : args->scratch;
    TDM_DNNL_TRY(tdm__dnnl_check(bring_weights(c, args, w.scratch, TDM_DNNL_FORWARD, &w.weights), what));
    TDM_DNNL_TRY(tdm__dnnl_share(args->desc->threads, c->slot_count, forward_slots, &w));
    return tdm__dnnl_check(first_failure(c), what);
}

/* Return where one chunk writes its gradients of the weights and of the bias. The first chunk writes straight into the
 * sum, to which the others are added. */
static float *weights_part(const work *w, int64_t index) {
    return w->first + index == 0 ? w->sum : (float *)(slot_scratch(w, index) + w->c->at.part);
}

static float *bias_part(const work *w, int64_t index) {
    if (w->first + index == 0 && w->args->desc->param_count > 1) return w->args->dparam[1];
    return (float *)(slot_scratch(w, index) + w->c->at.bias_part);
}

static dnnl_status_t backward_chunk(const work *w, int64_t index) {
    const conv *c = w->c;
    const tdm_kernel_args *args = w->args;
    const int64_t chunk = w->first + index;
    char *scratch = slot_scratch(w, index), *pad = scratch + c->at.slot_pad;
    const float *dy = args->dy + chunk * c->chunk_y;
    slot *own = &c->slots[index];
    dnnl_status_t status = dnnl_success;
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
        float *masked = (float *)(scratch + c->at.masked);
        TDM_LANES(tdm__dnnl_passes)->mask(masked, dy, args->y + chunk * c->chunk_y, c->chunk_y);
        dy = masked;
    }
    if (args->dx[0] != NULL)
        status = tdm__dnnl_call_run(&own->pass[TDM_DNNL_BACKWARD_DATA], &own->context,
                                    (const void *const[]){dy, w->weights, args->dx[0] + chunk * c->chunk_x, pad});
    if (status != dnnl_success) return status;
    return tdm__dnnl_call_run(
        &own->pass[TDM_DNNL_BACKWARD_WEIGHTS], &own->context,
        (const void *const[]){args->x[0] + chunk * c->chunk_x, dy, weights_part(w, index), bias_part(w, index), pad});
}

static void backward_slots(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t i = begin; i < end; i++) w->c->slots[i].status = backward_chunk(w, i);
}

enum { ADDED_TOGETHER = 4096 }; /* elements: a range stays in the first-level cache while all parts are added to it */

static void add_ranges(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    const int64_t total = (int64_t)w->c->weight_count;
    for (int64_t at = begin * ADDED_TOGETHER; at < total && at < end * ADDED_TOGETHER; at += ADDED_TOGETHER) {
        const int64_t count = total - at < ADDED_TOGETHER ? total - at : ADDED_TOGETHER;
        for (int64_t i = w->first == 0; i < w->count; i++)
            TDM_LANES(tdm__dnnl_passes)->add(w->sum + at, weights_part(w, i) + at, count);
    }
}

/* Adds the chunks' gradients, in the order of the chunks. */
static tdm_status add_gradients(work *w) {
    const int64_t count = (int64_t)w->c->weight_count, ranges = (count + ADDED_TOGETHER - 1) / ADDED_TOGETHER;
    const int threads = tdm__dnnl_threads(w->args->desc->threads, count * w->count);
    TDM_DNNL_TRY(tdm__dnnl_share(threads, ranges, add_ranges, w));
    for (int64_t i = w->first == 0; w->args->desc->param_count > 1 && i < w->count; i++)
        TDM_LANES(tdm__dnnl_passes)->add(w->args->dparam[1], bias_part(w, i), w->args->desc->y.dim[1]);
    return TDM_OK;
}

static tdm_status run_backward(conv *c, const tdm_kernel_args *args) {
    static const char what[] = "conv2d backward";
    const bool back = c->reorder[TDM_DNNL_BACKWARD_WEIGHTS].primitive != NULL;
    work w = {.c = c, .args = args};
    w.scratch = c->scratch != NULL ? c->scratch : args->scratch;
    w.sum = back ? (float *)(w.scratch + c->at.sum) : args->dparam[0];
    if (args->dx[0] != NULL)
        TDM_DNNL_TRY(tdm__dnnl_check(bring_weights(c, args, w.scratch, TDM_DNNL_BACKWARD_DATA, &w.weights), what));
    for (; w.first < c->chunk_count; w.first += w.count) {
        const int64_t left = c->chunk_count - w.first;
        w.count = left < c->slot_count ? left : c->slot_count;
        TDM_DNNL_TRY(tdm__dnnl_share(args->desc->threads, w.count, backward_slots, &w));
        TDM_DNNL_TRY(tdm__dnnl_check(first_failure(c), what));
        TDM_DNNL_TRY(add_gradients(&w));
    }
    if (!back) return TDM_OK;
    return tdm__dnnl_check(tdm__dnnl_call_run(&c->reorder[TDM_DNNL_BACKWARD_WEIGHTS], &c->context,
                                              (const void *const[]){w.sum, args->dparam[0], w.scratch + c->at.pad}),
                           what);
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = run_forward(args->state, args);
    tdm__dnnl_leave(&caller);
    return status;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = run_backward(args->state, args);
    tdm__dnnl_leave(&caller);
    return status;
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
