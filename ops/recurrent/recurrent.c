/* Definition and reference kernel of lstm and gru, see recurrent.h. The weights are transposed first: then the inner
 * loop goes through gates that lie together, and each sum is still added in its own order. */
#include "ops/recurrent/recurrent.h"

#include <string.h>

#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const char *const outputs[] = {"last", "all", NULL};
const tdm_field tdm__recurrent_fields[] = {
    {FIELD(INT, tdm_recurrent_attrs, hidden, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN),
     HELP("features of the state", "状态的特征数")},
    {FIELD(INT, tdm_recurrent_attrs, layers, "1"), RANGE(1, TDM_RECURRENT_LAYERS),
     HELP("layers, each over the states of the one before", "层数，每层以前一层的状态为输入")},
    {FIELD(ENUM, tdm_recurrent_attrs, outputs, "last"), .names = outputs,
     HELP("the state after the last step, or those after all steps", "最后一步的状态，或每一步的状态")},
    {0},
};

tdm_status tdm__recurrent_infer(tdm_infer *infer, int64_t gates) {
    static const char *const suffix[TDM_RECURRENT_LAYERS][TDM_RECURRENT_PARAMS] = {
        {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"},
        {"weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"},
        {"weight_ih_l2", "weight_hh_l2", "bias_ih_l2", "bias_hh_l2"},
        {"weight_ih_l3", "weight_hh_l3", "bias_ih_l3", "bias_hh_l3"}};
    const tdm_recurrent_attrs *attrs = infer->attrs;
    const tdm_shape *x = &infer->input[0];
    const int64_t hidden = attrs->hidden, wide = gates * hidden;
    if (x->ndim != 2)
        TDM_INFER_FAIL(infer, "%s needs a series, [steps, features], got %s", infer->layer, tdm__shape_text(x).text);
    infer->output =
        attrs->outputs == TDM_RECURRENT_ALL ? (tdm_shape){2, {x->dim[0], hidden}} : (tdm_shape){1, {hidden}};
    infer->param_count = (int)attrs->layers * TDM_RECURRENT_PARAMS;
    for (int i = 0; i < infer->param_count; i++) {
        const int layer = i / TDM_RECURRENT_PARAMS, which = i % TDM_RECURRENT_PARAMS;
        const int64_t in = layer == 0 ? x->dim[1] : hidden;
        infer->param[i] = (tdm_param_def){.suffix = suffix[layer][which],
                                          .shape = which >= 2 ? (tdm_shape){1, {wide}}
                                                              : (tdm_shape){2, {wide, which == 0 ? in : hidden}},
                                          .init = TDM_INIT_UNIFORM_FAN_IN,
                                          .fan_in = hidden};
        if (which == 0) infer->flops += 2.0 * (double)x->dim[0] * (double)wide * (double)(in + hidden);
    }
    return TDM_OK;
}

/* ---- memory ---- */

/* Scratch: the transposed weights of a layer, what is carried from step to step, and what is kept where nothing is
 * saved. */
static int64_t transposed_count(const tdm_recurrent *r) {
    const int64_t widest = r->in > r->hidden ? r->in : r->hidden;
    return r->gates * r->hidden * (widest + r->hidden);
}

bool tdm__recurrent_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool is_gru) {
    const tdm_recurrent r = tdm__recurrent_of(desc, is_gru, desc->y.dim[0]);
    return tdm__recurrent_take(desc, fit, &r, transposed_count(&r) + 2 * r.hidden);
}

typedef struct memory {
    float *ih, *hh, *carried, *kept;
} memory;

static memory memory_of(const tdm_kernel_args *args, const tdm_recurrent *r) {
    float *scratch = args->scratch;
    const int64_t of_h = r->gates * r->hidden * r->hidden, both = transposed_count(r);
    memory m = {.hh = scratch, .ih = scratch + of_h, .carried = scratch + both};
    m.kept = args->saved != NULL ? args->saved : m.carried + 2 * r->hidden;
    return m;
}

/* The layer's input of row `n` at step `t`. */
static const float *input_at(const tdm_kernel_args *args, const tdm_recurrent *r, const memory *m, int64_t layer,
                             int64_t n, int64_t t) {
    return layer == 0 ? args->x[0] + (n * r->steps + t) * r->in
                      : m->kept + tdm__recurrent_at(r, layer - 1, n, t) + r->h;
}

static const float *const *params_of(const tdm_kernel_args *args, int64_t layer) {
    return args->param + layer * TDM_RECURRENT_PARAMS;
}

/* ---- forward ---- */

static void transpose(float *to, const float *from, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) to[k * rows + i] = from[i * columns + k];
}

/* sums[j] += x[i] wt[i][j], by rising i */
static void add_products(float *restrict sums, const float *restrict x, const float *restrict wt, int64_t in,
                         int64_t out, int64_t stride) {
    for (int64_t i = 0; i < in; i++)
        for (int64_t j = 0; j < out; j++) sums[j] += x[i] * wt[i * stride + j];
}

static void add_each(float *restrict to, const float *restrict from, int64_t count) {
    for (int64_t j = 0; j < count; j++) to[j] += from[j];
}

static void step_forward(const tdm_recurrent *r, const memory *m, const float *const *param, const float *x, int64_t in,
                         float *now, const float *before) {
    const int64_t wide = r->gates * r->hidden, shared = r->is_gru ? 2 * r->hidden : wide;
    memcpy(now, param[2], (size_t)wide * sizeof(float));
    add_products(now, x, m->ih, in, wide, wide);
    add_each(now, param[3], shared);
    if (before != NULL) add_products(now, before + r->h, m->hh, r->hidden, shared, wide);
    if (r->is_gru) {
        memcpy(now + wide, param[3] + shared, (size_t)r->hidden * sizeof(float));
        if (before != NULL) add_products(now + wide, before + r->h, m->hh + shared, r->hidden, r->hidden, wide);
    }
    for (int64_t j = 0; j < r->hidden; j++) tdm__recurrent_unit(r, now, before, j);
}

static void layer_forward(const tdm_kernel_args *args, const tdm_recurrent *r, const memory *m, int64_t layer) {
    const float *const *param = params_of(args, layer);
    const int64_t wide = r->gates * r->hidden, in = tdm__recurrent_in(r, layer);
    transpose(m->ih, param[0], wide, in);
    transpose(m->hh, param[1], wide, r->hidden);
    for (int64_t n = 0; n < r->rows; n++) {
        const float *before = NULL;
        for (int64_t t = 0; t < r->steps; t++) {
            float *now = m->kept + tdm__recurrent_at(r, layer, n, t);
            step_forward(r, m, param, input_at(args, r, m, layer, n, t), in, now, before);
            before = now;
        }
    }
}

tdm_status tdm__recurrent_forward(const tdm_kernel_args *args, bool is_gru) {
    const tdm_recurrent r = tdm__recurrent_of(args->desc, is_gru, args->rows);
    const memory m = memory_of(args, &r);
    for (int64_t layer = 0; layer < r.layers; layer++) layer_forward(args, &r, &m, layer);
    tdm__recurrent_give_y(args, &r, m.kept);
    return TDM_OK;
}

/* ---- backward ---- */

/* Through the cell and the weights: to the step before, and to the layer's input, if `dx` is not NULL. */
static void step_backward(const tdm_recurrent *r, const memory *m, const float *const *param, float *now,
                          const float *before, float *dx, int64_t in) {
    const int64_t wide = r->gates * r->hidden;
    for (int64_t j = 0; j < r->hidden; j++) tdm__recurrent_unit_back(r, now, before, m->carried, j);
    for (int64_t k = 0; k < wide && before != NULL; k++) {
        const float d = now[tdm__recurrent_of_h(r, k)];
        for (int64_t i = 0; i < r->hidden; i++) m->carried[i] += d * param[1][k * r->hidden + i];
    }
    if (dx == NULL) return;
    memset(dx, 0, (size_t)in * sizeof(float));
    for (int64_t k = 0; k < wide; k++)
        for (int64_t i = 0; i < in; i++) dx[i] += now[k] * param[0][k * in + i];
}

static void add_outer(float *restrict to, float d, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += d * x[i];
}

/* By rising row, then step. */
static void add_weights(const tdm_kernel_args *args, const tdm_recurrent *r, const memory *m, int64_t layer) {
    float *const *to = args->dparam + layer * TDM_RECURRENT_PARAMS;
    const int64_t wide = r->gates * r->hidden, in = tdm__recurrent_in(r, layer);
    if (to[0] == NULL) return;
    memset(to[0], 0, (size_t)(wide * in) * sizeof(float));
    memset(to[1], 0, (size_t)(wide * r->hidden) * sizeof(float));
    memset(to[2], 0, (size_t)wide * sizeof(float));
    memset(to[3], 0, (size_t)wide * sizeof(float));
    for (int64_t n = 0; n < r->rows; n++) {
        const float *before = NULL;
        for (int64_t t = 0; t < r->steps; t++) {
            const float *now = m->kept + tdm__recurrent_at(r, layer, n, t), *x = input_at(args, r, m, layer, n, t);
            for (int64_t k = 0; k < wide; k++) {
                const float d = now[k], of_h = now[tdm__recurrent_of_h(r, k)];
                add_outer(to[0] + k * in, d, x, in);
                if (before != NULL) add_outer(to[1] + k * r->hidden, of_h, before + r->h, r->hidden);
                to[2][k] += d;
                to[3][k] += of_h;
            }
            before = now;
        }
    }
}

static void layer_backward(const tdm_kernel_args *args, const tdm_recurrent *r, const memory *m, int64_t layer) {
    const float *const *param = params_of(args, layer);
    for (int64_t n = 0; n < r->rows; n++) {
        memset(m->carried, 0, (size_t)(2 * r->hidden) * sizeof(float));
        for (int64_t t = r->steps - 1; t >= 0; t--) {
            float *now = m->kept + tdm__recurrent_at(r, layer, n, t);
            const float *before = t > 0 ? m->kept + tdm__recurrent_at(r, layer, n, t - 1) : NULL;
            float *dx = layer > 0             ? m->kept + tdm__recurrent_at(r, layer - 1, n, t) + r->dh
                        : args->dx[0] != NULL ? args->dx[0] + (n * r->steps + t) * r->in
                                              : NULL;
            step_backward(r, m, param, now, before, dx, tdm__recurrent_in(r, layer));
        }
    }
    add_weights(args, r, m, layer);
}

tdm_status tdm__recurrent_backward(const tdm_kernel_args *args, bool is_gru) {
    const tdm_recurrent r = tdm__recurrent_of(args->desc, is_gru, args->rows);
    const memory m = memory_of(args, &r);
    tdm__recurrent_take_dy(args, &r, m.kept);
    for (int64_t layer = r.layers - 1; layer >= 0; layer--) layer_backward(args, &r, &m, layer);
    return TDM_OK;
}
