/* lstm and gru in ONNX: one node for each layer, over [steps, batch, features], with its gates in ONNX's order. */
#include "ops/onnx/onnx.h"
#include "ops/recurrent/recurrent.h"
#include "runtime/base/memory.h"

/* PyTorch's gate at each place of ONNX: input, output, forget, cell; update, reset, new. */
static const int order_of_lstm[] = {0, 3, 1, 2}, order_of_gru[] = {1, 0, 2};

static void copy_gates(float *out, const float *from, const int *order, int gates, int64_t each) {
    for (int g = 0; g < gates; g++)
        for (int64_t i = 0; i < each; i++) out[g * each + i] = from[order[g] * each + i];
}

/* A weight [1, gates * hidden, columns], or both biases one behind the other, [1, 2 * gates * hidden]. */
static tdm_status add_weight(tdm_onnx *to, const int *order, int gates, int64_t hidden, int64_t columns,
                             const float *first, const float *second, const char **name) {
    const int64_t count = gates * hidden * columns;
    const tdm_shape weight = {3, {1, gates * hidden, columns}}, bias = {2, {1, 2 * count}};
    float *numbers;
    TDM_TRY(tdm__new(to->host, &numbers, (size_t)(second != NULL ? 2 * count : count), sizeof(float), "weights"));
    copy_gates(numbers, first, order, gates, hidden * columns);
    if (second != NULL) copy_gates(numbers + count, second, order, gates, hidden * columns);
    *name = to->calls->floats(to, second != NULL ? &bias : &weight, numbers);
    tdm__delete(to->host, numbers);
    return TDM_OK;
}

/* Squeezes dimension `axis` away. */
static void squeeze(tdm_onnx *to, const char *y, const char *x, int64_t axis) {
    TDM_ONNX_NODE(to, "Squeeze", y, x, to->calls->indices(to, 1, &axis));
}

static tdm_status add_layer(tdm_onnx *to, const tdm_onnx_layer *layer, int index, bool is_gru, const char *x,
                            const char *y) {
    const tdm_recurrent_attrs *attrs = layer->attrs;
    const int *order = is_gru ? order_of_gru : order_of_lstm, gates = is_gru ? 3 : 4, at = index * TDM_RECURRENT_PARAMS;
    const float *const *w = layer->weight + at;
    const char *states = to->calls->value(to);
    const char *ih, *hh, *biases;
    TDM_TRY(add_weight(to, order, gates, attrs->hidden, layer->param_shape[at].dim[1], w[0], NULL, &ih));
    TDM_TRY(add_weight(to, order, gates, attrs->hidden, attrs->hidden, w[1], NULL, &hh));
    TDM_TRY(add_weight(to, order, gates, attrs->hidden, 1, w[2], w[3], &biases));
    TDM_ONNX_NODE(to, is_gru ? "GRU" : "LSTM", states, x, ih, hh, biases);
    to->calls->integer(to, "hidden_size", attrs->hidden);
    if (is_gru) to->calls->integer(to, "linear_before_reset", 1);
    squeeze(to, y, states, 1);
    return TDM_OK;
}

tdm_status tdm__recurrent_onnx(tdm_onnx *to, const tdm_onnx_layer *layer, bool is_gru) {
    const tdm_recurrent_attrs *attrs = layer->attrs;
    const int64_t first[3] = {1, 0, 2}, last = layer->input[0].dim[0] - 1;
    const char *x = to->calls->value(to);
    TDM_ONNX_NODE(to, "Transpose", x, layer->x[0]);
    to->calls->integers(to, "perm", 3, first);
    for (int i = 0; i < attrs->layers; i++) {
        const char *y = to->calls->value(to);
        TDM_TRY(add_layer(to, layer, i, is_gru, x, y));
        x = y;
    }
    if (attrs->outputs == TDM_RECURRENT_ALL) {
        TDM_ONNX_NODE(to, "Transpose", layer->y, x);
        to->calls->integers(to, "perm", 3, first);
        return TDM_OK;
    }
    const char *step = to->calls->value(to);
    TDM_ONNX_NODE(to, "Gather", step, x, to->calls->indices(to, 1, &last));
    to->calls->integer(to, "axis", 0);
    squeeze(to, layer->y, step, 0);
    return TDM_OK;
}
