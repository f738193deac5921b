/* What lstm and gru share: their attributes, what they keep of each step, and one step of one unit. A row is a series
 * of `steps` steps; a layer has `hidden` units, each with 4 gates (lstm: input, forget, cell, output) or 3 (gru: reset,
 * update, new), in PyTorch's order.
 *
 *     lstm   c = f * c' + i * g;  h = o * tanh(c)
 *     gru    n = tanh(gate + r * part);  h = (1 - z) * n + z * h',  where `part` comes from h', the gate from x
 *
 * Kept for each layer, row and step, in this order: the gates, what the cell needs beside them (lstm: c, gru: part), h,
 * and the gradient of h; `hidden` numbers each. In backward the gradients of the gates take their place. The reference
 * and CUDA's kernel add in the same order, bias, then products by rising index, so they have the same bits. */
#ifndef TDM_OPS_RECURRENT_H
#define TDM_OPS_RECURRENT_H

#include <tandem/sys/op.h>

#include "ops/activation_math.h"

typedef enum tdm_recurrent_outputs { TDM_RECURRENT_LAST, TDM_RECURRENT_ALL } tdm_recurrent_outputs;

typedef struct tdm_recurrent_attrs {
    int64_t hidden, layers;
    int outputs; /* tdm_recurrent_outputs */
} tdm_recurrent_attrs;

extern const struct tdm_field tdm__recurrent_fields[];
enum { TDM_RECURRENT_PARAMS = 4, TDM_RECURRENT_LAYERS = TDM_MAX_PARAMS / TDM_RECURRENT_PARAMS };

typedef struct tdm_recurrent {
    bool is_gru, gives_all;
    int64_t rows, steps, in, hidden, layers;
    int64_t gates;  /* of a unit */
    int64_t stride; /* numbers kept of a step of a row in a layer */
    int64_t h, dh;  /* where they are among these */
} tdm_recurrent;

static inline tdm_recurrent tdm__recurrent_of(const tdm_kernel_desc *desc, bool is_gru, int64_t rows) {
    const tdm_recurrent_attrs *attrs = (const tdm_recurrent_attrs *)desc->attrs;
    tdm_recurrent r;
    r.is_gru = is_gru;
    r.gives_all = attrs->outputs == TDM_RECURRENT_ALL;
    r.rows = rows;
    r.steps = desc->x[0].dim[1];
    r.in = desc->x[0].dim[2];
    r.hidden = attrs->hidden;
    r.layers = attrs->layers;
    r.gates = is_gru ? 3 : 4;
    r.h = (r.gates + 1) * r.hidden;
    r.dh = r.h + r.hidden;
    r.stride = r.dh + r.hidden;
    return r;
}

static inline int64_t tdm__recurrent_kept(const tdm_recurrent *r) {
    return r->layers * r->rows * r->steps * r->stride;
}

/* Where step `t` of row `n` in a layer is kept. */
TDM_HOST_DEVICE static inline int64_t tdm__recurrent_at(const tdm_recurrent *r, int64_t layer, int64_t n, int64_t t) {
    return ((layer * r->rows + n) * r->steps + t) * r->stride;
}

TDM_HOST_DEVICE static inline float tdm__recurrent_sigmoid(float x) {
    return 1.0f / (1.0f + tdm__expf(-x));
}

/* From the sums in place of the gates; `before`: the step before, NULL at the first. */
TDM_HOST_DEVICE static inline void tdm__recurrent_unit(const tdm_recurrent *r, float *now, const float *before,
                                                       int64_t j) {
    const int64_t n = r->hidden;
    const float a = tdm__recurrent_sigmoid(now[j]), b = tdm__recurrent_sigmoid(now[n + j]);
    const float h = before != NULL ? before[r->h + j] : 0.0f;
    now[j] = a;
    now[n + j] = b;
    if (r->is_gru) {
        const float fresh = tdm__tanhf(now[2 * n + j] + a * now[3 * n + j]);
        now[2 * n + j] = fresh;
        now[r->h + j] = (1.0f - b) * fresh + b * h;
        return;
    }
    const float c = before != NULL ? before[4 * n + j] : 0.0f;
    const float g = tdm__tanhf(now[2 * n + j]), o = tdm__recurrent_sigmoid(now[3 * n + j]);
    const float cell = b * c + a * g;
    now[2 * n + j] = g;
    now[3 * n + j] = o;
    now[4 * n + j] = cell;
    now[r->h + j] = o * tdm__tanhf(cell);
}

/* Gradients take the place of the gates, of gru also that of `part`. `carried` is the gradient of h and, of lstm behind
 * it, of c, that comes from the step after; it becomes what goes to the step before, without what goes through the
 * weights. */
TDM_HOST_DEVICE static inline void tdm__recurrent_unit_back(const tdm_recurrent *r, float *now, const float *before,
                                                            float *carried, int64_t j) {
    const int64_t n = r->hidden;
    const float dh = now[r->dh + j] + carried[j], a = now[j], b = now[n + j], g = now[2 * n + j];
    if (r->is_gru) {
        const float h = before != NULL ? before[r->h + j] : 0.0f;
        const float dn = dh * (1.0f - b) * (1.0f - g * g);
        now[j] = dn * now[3 * n + j] * ((1.0f - a) * a);
        now[n + j] = dh * (h - g) * ((1.0f - b) * b);
        now[2 * n + j] = dn;
        now[3 * n + j] = dn * a;
        carried[j] = dh * b;
        return;
    }
    const float c = before != NULL ? before[4 * n + j] : 0.0f;
    const float o = now[3 * n + j], bent = tdm__tanhf(now[4 * n + j]);
    const float dc = carried[n + j] + dh * o * (1.0f - bent * bent);
    now[j] = dc * g * ((1.0f - a) * a);
    now[n + j] = dc * c * ((1.0f - b) * b);
    now[2 * n + j] = dc * a * (1.0f - g * g);
    now[3 * n + j] = dh * bent * ((1.0f - o) * o);
    carried[j] = 0.0f;
    carried[n + j] = dc * b;
}

/* Where the gradient of gate `k`'s sum with h is: gru's new gate has another one there than with x. */
TDM_HOST_DEVICE static inline int64_t tdm__recurrent_of_h(const tdm_recurrent *r, int64_t k) {
    return r->is_gru && k >= 2 * r->hidden ? k + r->hidden : k;
}

static inline int64_t tdm__recurrent_in(const tdm_recurrent *r, int64_t layer) {
    return layer == 0 ? r->in : r->hidden;
}

/* The layouts and the memory of a kernel: what it keeps from forward to backward, which is scratch where nothing is
 * saved, and behind that `scratch` numbers. */
static inline bool tdm__recurrent_take(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_recurrent *r,
                                       int64_t scratch) {
    const int64_t kept = tdm__recurrent_kept(r);
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)kept * sizeof(float);
    fit->scratch_bytes = (size_t)(scratch + (desc->training ? 0 : kept)) * sizeof(float);
    return true;
}

/* y is the states of the last layer. */
static inline void tdm__recurrent_give_y(const tdm_kernel_args *args, const tdm_recurrent *r, const float *kept) {
    const int64_t given = r->gives_all ? r->steps : 1;
    for (int64_t n = 0; n < r->rows; n++)
        for (int64_t k = 0; k < given; k++)
            memcpy(args->y + (n * given + k) * r->hidden,
                   kept + tdm__recurrent_at(r, r->layers - 1, n, r->steps - given + k) + r->h,
                   (size_t)r->hidden * sizeof(float));
}

/* The gradients of these states are dy, and 0 where y has none. */
static inline void tdm__recurrent_take_dy(const tdm_kernel_args *args, const tdm_recurrent *r, float *kept) {
    for (int64_t n = 0; n < r->rows; n++)
        for (int64_t t = 0; t < r->steps; t++) {
            float *dh = kept + tdm__recurrent_at(r, r->layers - 1, n, t) + r->dh;
            if (r->gives_all)
                memcpy(dh, args->dy + (n * r->steps + t) * r->hidden, (size_t)r->hidden * sizeof(float));
            else if (t == r->steps - 1)
                memcpy(dh, args->dy + n * r->hidden, (size_t)r->hidden * sizeof(float));
            else
                memset(dh, 0, (size_t)r->hidden * sizeof(float));
        }
}

tdm_status tdm__recurrent_infer(tdm_infer *infer, int64_t gates);
bool tdm__recurrent_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool is_gru);
tdm_status tdm__recurrent_forward(const tdm_kernel_args *args, bool is_gru);
tdm_status tdm__recurrent_backward(const tdm_kernel_args *args, bool is_gru);

/* Writes the layer into an ONNX file. */
tdm_status tdm__recurrent_onnx(struct tdm_onnx *to, const struct tdm_onnx_layer *layer, bool is_gru);
/* Is output `output` of the node such a layer, or the last of several? */
bool tdm__recurrent_from_onnx(struct tdm_onnx_reader *from, const struct tdm_onnx_node *node, int output,
                              struct tdm_onnx_found *out, bool is_gru);

#endif
