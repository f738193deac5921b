/* A row of `columns` holds what one point of y reads: its taps, and in each the channels of x. With the weights as
 * [out][taps][channels],
 *     y = columns weights^T + bias,  dweights = dy^T columns,  dcolumns = dy weights,
 * and a number of dx is the sum of those of dcolumns that were copied from it, in the order of the taps. */
#include "ops/conv2d/conv2d_columns_dnnl.h"

#include <stdio.h>
#include <string.h>

#include "runtime/backends/dnnl/kit/product.h"
#include "runtime/base/bf16.h"

enum { FORWARD, DATA, WEIGHTS, PASSES };
enum { LEAST_WEIGHTS = 1 << 20, GROUP = 64, BLOCK = 32 };

typedef struct {
    int64_t rows, in[3], out[3]; /* channels, height, width */
    int64_t points, taps, terms; /* of y in all rows; of the window; of a sum */
    tdm_window window;
    int threads;
    bool biased;
    bool is_plain; /* 1 x 1, and each point once: x itself is the columns, and the weights lie as PyTorch has them */
} sizes;

/* Byte offsets in scratch. */
typedef struct {
    size_t weights, dweights, columns, dcolumns, masked, pad, total;
    tdm_dnnl_needs needs;
} offsets;

struct tdm_conv_columns {
    tdm_dnnl_context context;
    tdm_dnnl_parts pass[PASSES];
    tdm_dnnl_call bring, back; /* the weights into [out][taps][channels], and their gradient out of it */
    sizes s;
    offsets at;
    void *scratch; /* its own, if the plan has booked less than this number of rows needs; else NULL */
};

/* ---- sizes ---- */

static sizes sizes_of(const tdm_kernel_desc *desc, int64_t rows) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    sizes s = {.rows = rows, .in = {x[1], x[2], x[3]}, .out = {y[1], y[2], y[3]}, .window = tdm__conv2d_window(attrs)};
    s.points = rows * y[2] * y[3];
    s.taps = attrs->window.kernel[0] * attrs->window.kernel[1];
    s.terms = s.taps * x[1];
    s.biased = desc->param_count > 1;
    s.threads = desc->threads;
    s.is_plain =
        s.taps == 1 && s.window.stride[0] == 1 && s.window.stride[1] == 1 && s.in[1] == s.out[1] && s.in[2] == s.out[2];
    return s;
}

bool tdm__conv_columns_wanted(const tdm_kernel_desc *desc) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const sizes s = sizes_of(desc, 1);
    const bool is_plain = s.is_plain && s.in[0] % BLOCK == 0 && s.out[0] % BLOCK == 0;
    return desc->precision == TDM_BF16 && attrs->groups == 1 && (is_plain || s.out[0] * s.terms >= LEAST_WEIGHTS);
}

/* Each is cut along the longer side of its result. */
static tdm_dnnl_product product_of(const sizes *s, int pass) {
    const int64_t out = s->out[0];
    tdm_dnnl_product p = {.m = s->points, .n = out, .k = s->terms, .c = {out, 1}};
    switch (pass) {
    case FORWARD:
        p.a[0] = s->terms, p.a[1] = 1, p.b[0] = 1, p.b[1] = s->terms;
        p.biased = s->biased;
        break;
    case DATA:
        p.n = s->terms, p.k = out;
        p.a[0] = out, p.a[1] = 1, p.b[0] = p.c[0] = s->terms, p.b[1] = 1;
        p.floats = !s->is_plain;
        break;
    default:
        p.m = out, p.n = s->terms, p.k = s->points;
        p.a[0] = 1, p.a[1] = out, p.b[0] = p.c[0] = s->terms, p.b[1] = 1;
        p.floats = true;
    }
    p.by_rows = p.m >= p.n;
    return p;
}

static size_t numbers(int64_t count, size_t bytes) {
    return tdm__dnnl_round((size_t)count * bytes);
}

static dnnl_status_t offsets_of(offsets *at, const tdm_dnnl_context *context, const sizes *s, bool training) {
    const int64_t weights = s->is_plain ? 0 : s->out[0] * s->terms, columns = s->is_plain ? 0 : s->points * s->terms;
    dnnl_status_t status = dnnl_success;
    tdm_dnnl_needs needs = {0};
    for (int i = 0; i < (training ? PASSES : DATA) && status == dnnl_success; i++) {
        const tdm_dnnl_product product = product_of(s, i);
        status = tdm__dnnl_product_needs(&needs, context, &product, s->threads);
    }
    *at = (offsets){.columns = numbers(weights, sizeof(uint16_t)), .needs = needs};
    at->pad = at->columns + numbers(columns, sizeof(uint16_t));
    at->dweights = at->pad + tdm__dnnl_round(needs.scratch);
    at->total = at->dweights;
    if (!training) return status;
    at->dcolumns = at->dweights + numbers(weights, sizeof(float));
    at->masked = at->dcolumns + numbers(columns, sizeof(float));
    at->total = at->masked + numbers(s->points * s->out[0], sizeof(uint16_t));
    return status;
}

/* ---- open and close ---- */

bool tdm__conv_columns_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const sizes s = sizes_of(desc, desc->y.dim[0]);
    tdm_dnnl_context context = {0};
    offsets at = {0};
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    dnnl_status_t status = tdm__dnnl_context_init(&context);
    if (status == dnnl_success) status = offsets_of(&at, &context, &s, true);
    tdm__dnnl_context_deinit(&context);
    tdm__dnnl_leave(&caller);
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_NHWC;
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->scratch_bytes = at.total;
    fit->call_bytes = at.needs.call;
    fit->kept_bytes = at.needs.kept + (s.is_plain ? 0 : TDM_DNNL_REORDER_BYTES);
    fit->no_memory = status == dnnl_out_of_memory;
    if (status != dnnl_success)
        snprintf(fit->why, sizeof fit->why, "oneDNN %s",
                 fit->no_memory ? "is out of memory" : "has only its slow reference code for this shape in bf16");
    return status == dnnl_success;
}

/* `number` of the weights; `back`: into PyTorch's layout. */
static dnnl_status_t open_reorder(tdm_dnnl_call *out, const tdm_conv_columns *c, dnnl_data_type_t number, bool back) {
    static const int arguments[] = {DNNL_ARG_FROM, DNNL_ARG_TO, DNNL_ARG_SCRATCHPAD, 0};
    const int64_t *kernel = c->s.window.kernel;
    const dnnl_dims_t dims = {c->s.out[0], c->s.in[0], kernel[0], kernel[1]};
    dnnl_memory_desc_t plain = {0}, own = {0};
    dnnl_primitive_desc_t plan = NULL;
    dnnl_status_t status = tdm__dnnl_desc_init(&plain, 4, dims, number, dnnl_oihw);
    if (status == dnnl_success) status = tdm__dnnl_desc_init(&own, 4, dims, number, dnnl_ohwi);
    const tdm_dnnl_ref from = tdm__dnnl_ref(back ? &own : &plain), to = tdm__dnnl_ref(back ? &plain : &own);
    if (status == dnnl_success)
        status = TDM_DNNL(dnnl_reorder_primitive_desc_create)(&plan, from, c->context.engine, to, c->context.engine,
                                                              c->context.attr);
    if (status == dnnl_success) status = tdm__dnnl_call_init(out, &c->context, plan, arguments);
    tdm__dnnl_plan_free(plan);
    tdm__dnnl_desc_deinit(&plain);
    tdm__dnnl_desc_deinit(&own);
    return status;
}

static dnnl_status_t prepare(tdm_conv_columns *c, bool training) {
    dnnl_status_t status = tdm__dnnl_context_init(&c->context);
    if (status == dnnl_success) status = offsets_of(&c->at, &c->context, &c->s, training);
    for (int i = 0; i < (training ? PASSES : DATA) && status == dnnl_success; i++) {
        const tdm_dnnl_product product = product_of(&c->s, i);
        status = tdm__dnnl_parts_open(&c->pass[i], &c->context, &product);
    }
    if (status == dnnl_success && !c->s.is_plain) status = open_reorder(&c->bring, c, dnnl_bf16, false);
    if (status == dnnl_success && !c->s.is_plain && training) status = open_reorder(&c->back, c, dnnl_f32, true);
    return status;
}

/* The plan has booked scratch for the most rows; for fewer, oneDNN may need more. */
static tdm_status book(tdm_conv_columns *c, const tdm_host *host, const tdm_kernel_desc *desc) {
    const sizes most = sizes_of(desc, desc->y.dim[0]);
    offsets booked = {0};
    if (c->s.rows == most.rows) return TDM_OK;
    TDM_MODULE_TRY(tdm__dnnl_check(offsets_of(&booked, &c->context, &most, true), "conv2d"));
    if (c->at.total <= booked.total) return TDM_OK;
    c->scratch = tdm__module_new(host, c->at.total);
    if (c->scratch == NULL)
        TDM_MODULE_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of scratch", c->at.total);
    return TDM_OK;
}

tdm_status tdm__conv_columns_open(tdm_conv_columns **out, const tdm_host *host, const tdm_kernel_desc *desc,
                                  int64_t rows, bool training) {
    tdm_conv_columns *c = tdm__module_new(host, sizeof *c);
    *out = c;
    if (c == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    c->s = sizes_of(desc, rows);
    TDM_MODULE_TRY(tdm__dnnl_check(prepare(c, training), "conv2d"));
    return book(c, host, desc);
}

void tdm__conv_columns_close(tdm_conv_columns *c) {
    if (c == NULL) return;
    for (int i = 0; i < PASSES; i++) tdm__dnnl_parts_close(&c->pass[i]);
    tdm__dnnl_call_deinit(&c->bring);
    tdm__dnnl_call_deinit(&c->back);
    tdm__dnnl_context_deinit(&c->context);
    tdm__module_delete(c->scratch);
    tdm__module_delete(c);
}

/* ---- columns ---- */

/* One call. */
typedef struct {
    tdm_conv_columns *c;
    const tdm_kernel_args *args;
    char *scratch;
    const uint16_t *dy; /* where the relu passed */
} work;

static uint16_t *words(const work *w, size_t offset) {
    return (uint16_t *)(void *)(w->scratch + offset);
}

static float *floats(const work *w, size_t offset) {
    return (float *)(void *)(w->scratch + offset);
}

/* What point (p, q) of y reads in one row of x. */
static void copy_taps(uint16_t *restrict to, const uint16_t *restrict x, const sizes *s, int64_t p, int64_t q) {
    const tdm_window *w = &s->window;
    for (int64_t i = 0; i < w->kernel[0]; i++) {
        const int64_t y = p * w->stride[0] - w->padding[0] + i * w->dilation[0];
        for (int64_t j = 0; j < w->kernel[1]; j++, to += s->in[0]) {
            const int64_t at = q * w->stride[1] - w->padding[1] + j * w->dilation[1];
            const bool is_inside = y >= 0 && y < s->in[1] && at >= 0 && at < s->in[2];
            if (is_inside)
                memcpy(to, x + (y * s->in[2] + at) * s->in[0], (size_t)s->in[0] * sizeof *to);
            else
                memset(to, 0, (size_t)s->in[0] * sizeof *to);
        }
    }
}

static void fill_columns(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    const sizes *s = &w->c->s;
    const uint16_t *x = (const uint16_t *)(const void *)w->args->x[0];
    uint16_t *to = words(w, w->c->at.columns) + begin * s->out[1] * s->out[2] * s->terms;
    for (int64_t n = begin; n < end; n++)
        for (int64_t p = 0; p < s->out[1]; p++)
            for (int64_t q = 0; q < s->out[2]; q++, to += s->terms)
                copy_taps(to, x + n * s->in[0] * s->in[1] * s->in[2], s, p, q);
}

/* The point of y whose tap i reads coordinate `at` of x; -1: none. */
static int64_t reader(const tdm_window *w, int axis, int64_t at, int64_t i, int64_t out) {
    const int64_t from = at + w->padding[axis] - i * w->dilation[axis];
    if (from < 0 || from % w->stride[axis] != 0 || from / w->stride[axis] >= out) return -1;
    return from / w->stride[axis];
}

/* Channels [channel, channel + count) of one point of dx. */
static void gather(const sizes *s, const float *row, int64_t y, int64_t x, int64_t channel, int64_t count,
                   uint16_t *dx) {
    float sum[GROUP] = {0};
    for (int64_t i = 0; i < s->window.kernel[0]; i++) {
        const int64_t p = reader(&s->window, 0, y, i, s->out[1]);
        for (int64_t j = 0; p >= 0 && j < s->window.kernel[1]; j++) {
            const int64_t q = reader(&s->window, 1, x, j, s->out[2]);
            if (q < 0) continue;
            const float *from =
                row + (p * s->out[2] + q) * s->terms + (i * s->window.kernel[1] + j) * s->in[0] + channel;
            for (int64_t k = 0; k < count; k++) sum[k] += from[k];
        }
    }
    for (int64_t k = 0; k < count; k++) dx[k] = tdm__bf16_of(sum[k]);
}

static void gather_rows(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    const sizes *s = &w->c->s;
    uint16_t *dx = (uint16_t *)(void *)w->args->dx[0] + begin * s->in[0] * s->in[1] * s->in[2];
    for (int64_t n = begin; n < end; n++) {
        const float *row = floats(w, w->c->at.dcolumns) + n * s->out[1] * s->out[2] * s->terms;
        for (int64_t y = 0; y < s->in[1]; y++) {
            for (int64_t x = 0; x < s->in[2]; x++, dx += s->in[0]) {
                for (int64_t c = 0; c < s->in[0]; c += GROUP)
                    gather(s, row, y, x, c, s->in[0] - c < GROUP ? s->in[0] - c : GROUP, dx + c);
            }
        }
    }
}

/* ---- running ---- */

static work begin(tdm_conv_columns *c, const tdm_kernel_args *args) {
    return (work){.c = c, .args = args, .scratch = c->scratch != NULL ? c->scratch : args->scratch};
}

static tdm_status share(work *w, tdm_dnnl_work_fn run) {
    return tdm__dnnl_share(w->args->device, w->args->desc->threads, w->c->s.rows, run, w);
}

static tdm_status multiply(const work *w, int pass, const void *a, const void *b, const void *bias, void *c) {
    return tdm__dnnl_parts_run(&w->c->pass[pass], w->args->device, w->args->desc->threads, w->scratch + w->c->at.pad, a,
                               b, bias, c, "conv2d");
}

static tdm_status reorder_weights(tdm_conv_columns *c, const tdm_kernel_args *args, void *to) {
    const void *const both[] = {args->param_bf16[0], to, NULL};
    return tdm__dnnl_check(tdm__dnnl_call_run(&c->bring, &c->context, both), "conv2d");
}

/* The weights as the products read them; *out is theirs. */
static tdm_status bring_weights(const work *w, const void **out) {
    *out = w->args->packed != NULL ? w->args->packed : w->args->param_bf16[0];
    if (w->c->s.is_plain || w->args->packed != NULL) return TDM_OK;
    *out = words(w, 0);
    return reorder_weights(w->c, w->args, words(w, 0));
}

static tdm_status find_columns(work *w, const void **out) {
    *out = w->args->x[0];
    if (w->c->s.is_plain) return TDM_OK;
    *out = words(w, w->c->at.columns);
    return share(w, fill_columns);
}

tdm_status tdm__conv_columns_forward(tdm_conv_columns *c, const tdm_kernel_args *args) {
    work w = begin(c, args);
    const void *weights, *columns;
    TDM_MODULE_TRY(bring_weights(&w, &weights));
    TDM_MODULE_TRY(find_columns(&w, &columns));
    TDM_MODULE_TRY(multiply(&w, FORWARD, columns, weights, c->s.biased ? args->param_bf16[1] : NULL, args->y));
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU))
        TDM_LANES(tdm__dnnl_passes)->clamp_bf16((uint16_t *)(void *)args->y, c->s.points * c->s.out[0]);
    return TDM_OK;
}

/* db[o] = the sum of dy over points, in their order */
static void sum_points(float *restrict db, const work *w) {
    const sizes *s = &w->c->s;
    memset(db, 0, (size_t)s->out[0] * sizeof *db);
    for (int64_t i = 0; i < s->points; i++)
        for (int64_t o = 0; o < s->out[0]; o++) db[o] += tdm__bf16_float(w->dy[i * s->out[0] + o]);
}

static tdm_status find_weights(work *w) {
    const tdm_conv_columns *c = w->c;
    float *own = c->s.is_plain ? w->args->dparam[0] : floats(w, c->at.dweights);
    const void *columns;
    TDM_MODULE_TRY(find_columns(w, &columns));
    TDM_MODULE_TRY(multiply(w, WEIGHTS, w->dy, columns, NULL, own));
    if (c->s.biased && w->args->dparam[1] != NULL) sum_points(w->args->dparam[1], w);
    if (c->s.is_plain) return TDM_OK;
    return tdm__dnnl_check(
        tdm__dnnl_call_run(&w->c->back, &w->c->context, (const void *const[]){own, w->args->dparam[0], NULL}),
        "conv2d");
}

tdm_status tdm__conv_columns_backward(tdm_conv_columns *c, const tdm_kernel_args *args) {
    work w = begin(c, args);
    w.dy = (const uint16_t *)(const void *)args->dy;
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
        TDM_LANES(tdm__dnnl_passes)
            ->mask_bf16(words(&w, c->at.masked), w.dy, (const uint16_t *)(const void *)args->y,
                        c->s.points * c->s.out[0]);
        w.dy = words(&w, c->at.masked);
    }
    if (args->dparam[0] != NULL) TDM_MODULE_TRY(find_weights(&w));
    const void *weights;
    if (args->dx[0] == NULL) return TDM_OK;
    TDM_MODULE_TRY(bring_weights(&w, &weights));
    if (c->s.is_plain) return multiply(&w, DATA, w.dy, weights, NULL, args->dx[0]);
    TDM_MODULE_TRY(multiply(&w, DATA, w.dy, weights, NULL, floats(&w, c->at.dcolumns)));
    return share(&w, gather_rows);
}

size_t tdm__conv_columns_packed_bytes(const tdm_conv_columns *c) {
    return c->s.is_plain ? 0 : (size_t)(c->s.out[0] * c->s.terms) * sizeof(uint16_t);
}

tdm_status tdm__conv_columns_pack(tdm_conv_columns *c, const tdm_kernel_args *args) {
    return reorder_weights(c, args, args->packed);
}
