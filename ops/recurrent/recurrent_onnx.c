/* lstm and gru in ONNX and back: one node for each layer, over [steps, batch, features], with its gates in ONNX's
 * order. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/recurrent/recurrent.h"
#include "ops/ops.h"
#include "runtime/base/memory.h"

/* PyTorch's gate at each position of ONNX: input, output, forget, cell; update, reset, new. */
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

/* ---- back ---- */

/* Are the functions of the gates those that ONNX has where none are given? */
static bool has_usual_functions(tdm_onnx_reader *from, const tdm_onnx_node *node, bool is_gru) {
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const char *word[3];
    const int wanted = is_gru ? 2 : 3;
    if (from->calls->has(from, node, "activation_alpha") || from->calls->has(from, node, "activation_beta"))
        return false;
    if (!from->calls->has(from, node, "activations")) return true;
    if (from->calls->words(from, node, "activations", wanted, word) != wanted) return false;
    for (int i = 0; i < wanted; i++)
        if (strcasecmp(word[i], usual[i]) != 0) return false;
    return true;
}

/* One node: x with the steps in front, weights, and what tandem has no key for as its defaults. */
static bool is_known(tdm_onnx_reader *from, const tdm_onnx_node *node, bool is_gru, char why[TDM_ONNX_WHY]) {
    const char *problem = NULL;
    if (strcmp(from->calls->word(from, node, "direction", "forward"), "forward") != 0)
        problem = "tandem's go forward through the steps only, in one direction";
    if (is_gru && from->calls->integer(from, node, "linear_before_reset", 0) == 0)
        problem = "tandem's resets behind the product, as PyTorch's does (linear_before_reset=1)";
    if (tdm__onnx_input_of(node, 4)[0] != '\0') problem = "tandem's has no lengths of sequences";
    if (!tdm__onnx_is_full_of(from, tdm__onnx_input_of(node, 5), 0.0) ||
        !tdm__onnx_is_full_of(from, tdm__onnx_input_of(node, 6), 0.0))
        problem = "tandem's begins with a state of zeros";
    if (tdm__onnx_input_of(node, 7)[0] != '\0') problem = "tandem's has no peepholes";
    if (from->calls->number(from, node, "clip", 0.0) != 0.0 || from->calls->integer(from, node, "layout", 0) != 0 ||
        from->calls->integer(from, node, "input_forget", 0) != 0)
        problem = "tandem's has no clip, layout or input_forget";
    if (!has_usual_functions(from, node, is_gru))
        problem = "tandem's has the functions that PyTorch's has: Sigmoid for the gates, Tanh for the rest";
    const int64_t hidden = from->calls->integer(from, node, "hidden_size", 0);
    if (hidden < 1 || hidden > TDM_MAX_FEATURES) problem = "tandem's has a hidden_size of 1 to 16777216";
    if (problem != NULL) snprintf(why, TDM_ONNX_WHY, "%s", problem);
    return problem == NULL;
}

/* The gates of PyTorch's order, in which `order` finds those of ONNX's. */
static tdm_onnx_weight gates_of(const char *value, const int *order, int gates, int64_t each, int64_t first) {
    tdm_onnx_weight weight = {.value = value, .runs = gates, .each = each, .first = first};
    for (int g = 0; g < gates; g++) weight.order[order[g]] = g;
    return weight;
}

static void set_weights(tdm_onnx_found *out, const tdm_onnx_node *node, int layer, bool is_gru, int64_t hidden,
                        int64_t in) {
    const int *order = is_gru ? order_of_gru : order_of_lstm, gates = is_gru ? 3 : 4;
    const char *biases = tdm__onnx_input_of(node, 3);
    tdm_onnx_weight *param = out->param + layer * TDM_RECURRENT_PARAMS;
    param[0] = gates_of(node->input[1], order, gates, hidden * in, 0);
    param[1] = gates_of(node->input[2], order, gates, hidden * hidden, 0);
    if (biases[0] == '\0') return; /* zeros */
    param[2] = gates_of(biases, order, gates, hidden, 0);
    param[3] = gates_of(biases, order, gates, hidden, gates * hidden);
}

/* Its x, if nodes see it with the steps in front. */
static bool is_series(tdm_onnx_reader *from, const char *value, tdm_onnx_view *view) {
    return from->calls->view(from, value, view) && view->ndim == 3 && view->shape.ndim == 2 && view->axis[0] == 0 &&
           view->axis[1] == TDM_ONNX_BATCH && view->axis[2] == 1;
}

typedef struct stack {
    const tdm_onnx_node *node[TDM_RECURRENT_LAYERS]; /* the last first */
    int count;
    int64_t hidden;
} stack;

/* The node, and those of the same size in front of it. */
static bool find_stack(tdm_onnx_reader *from, const tdm_onnx_node *node, bool is_gru, stack *out,
                       char why[TDM_ONNX_WHY]) {
    const char *op = is_gru ? "GRU" : "LSTM";
    tdm_onnx_view view;
    *out = (stack){.hidden = from->calls->integer(from, node, "hidden_size", 0)};
    while (node != NULL && out->count < TDM_RECURRENT_LAYERS && tdm__onnx_is(node, 0, op, 3) &&
           from->calls->integer(from, node, "hidden_size", 0) == out->hidden &&
           is_series(from, node->input[0], &view)) {
        if (!is_known(from, node, is_gru, why)) break;
        out->node[out->count++] = node;
        node = from->calls->maker(from, node->input[0]);
    }
    return out->count > 0;
}

static bool set_layer(tdm_onnx_reader *from, const tdm_onnx_node *node, bool is_gru, bool gives_all,
                      tdm_onnx_found *out) {
    stack found;
    tdm_onnx_view view;
    if (!find_stack(from, node, is_gru, &found, out->why)) return false;
    const tdm_onnx_node *first = found.node[found.count - 1];
    (void)is_series(from, first->input[0], &view);
    if (view.shape.dim[1] > TDM_MAX_FEATURES) {
        snprintf(out->why, sizeof(out->why), "tandem's has 16777216 features of a step at most");
        return false;
    }
    out->x[out->input_count++] = first->input[0];
    out->named = first;
    for (int i = 0; i < found.count; i++)
        set_weights(out, found.node[found.count - 1 - i], i, is_gru, found.hidden,
                    i == 0 ? view.shape.dim[1] : found.hidden);
    from->calls->set_integer(from, "hidden", found.hidden);
    from->calls->set_integer(from, "layers", found.count);
    from->calls->set_word(from, "outputs", gives_all ? "all" : "last");
    return true;
}

/* The last step of all, which a Gather takes: [.., steps, ..] without that dimension, or with 1 in its place. */
static bool takes_last(tdm_onnx_reader *from, const tdm_onnx_node *gather, tdm_onnx_found *out) {
    tdm_onnx_view x;
    tdm_onnx_constant index;
    int64_t at;
    if (!from->calls->view(from, gather->input[0], &x) || x.shape.ndim != 2 ||
        !from->calls->constant(from, gather->input[1], &index) || index.shape.ndim > 1 ||
        from->calls->integers(from, gather->input[1], 1, &at) != 1)
        return false;
    int64_t axis = from->calls->integer(from, gather, "axis", 0);
    if (axis < 0) axis += x.ndim;
    if (axis < 0 || axis >= x.ndim || x.axis[axis] != 0 || (at != -1 && at != x.shape.dim[0] - 1)) return false;
    for (int i = 0; i < x.ndim; i++) {
        if (i == axis && index.shape.ndim == 0) continue;
        out->view.axis[out->view.ndim++] = i == axis ? TDM_ONNX_ONE : x.axis[i] > 0 ? 0 : x.axis[i];
    }
    return true;
}

/* Is the last part of a Concat the one that an index counted from the first takes? Each is one state then. */
static bool are_states(tdm_onnx_reader *from, const tdm_onnx_node *joined) {
    tdm_onnx_view x;
    if (joined->input_count > TDM_ONNX_FEW) return false;
    for (int i = 0; i < joined->input_count; i++)
        if (!from->calls->view(from, joined->input[i], &x) || x.axis[0] != TDM_ONNX_ONE) return false;
    return true;
}

/* One of the states that nodes give beside all steps: of several layers the last, which a Concat has last. */
static bool picks_state(tdm_onnx_reader *from, const tdm_onnx_node *gather, tdm_onnx_found *out) {
    const tdm_onnx_node *joined = tdm__onnx_made_by(from, gather->input[0], "Concat", 1);
    const char *state = joined != NULL ? joined->input[joined->input_count - 1] : gather->input[0];
    const int64_t count = joined != NULL ? joined->input_count : 1;
    tdm_onnx_constant index;
    tdm_onnx_view x;
    int64_t at;
    if (from->calls->integer(from, gather, "axis", 0) != 0 || !from->calls->view(from, state, &x) || x.ndim != 3 ||
        x.axis[0] != TDM_ONNX_ONE || !from->calls->constant(from, gather->input[1], &index) || index.shape.ndim != 0 ||
        from->calls->integers(from, gather->input[1], 1, &at) != 1 || (at != -1 && at != count - 1) ||
        (joined != NULL &&
         (from->calls->integer(from, joined, "axis", -1) != 0 || (at != -1 && !are_states(from, joined)))))
        return false;
    out->x[out->input_count++] = state;
    out->is_view = true;
    out->view = (tdm_onnx_view){.ndim = 2, .axis = {x.axis[1], x.axis[2]}};
    return true;
}

bool tdm__recurrent_from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out,
                              bool is_gru) {
    if (strcmp(node->op, is_gru ? "GRU" : "LSTM") == 0) {
        static const tdm_onnx_view all = {.ndim = 4, .axis = {0, TDM_ONNX_ONE, TDM_ONNX_BATCH, 1}},
                                   last = {.ndim = 3, .axis = {TDM_ONNX_ONE, TDM_ONNX_BATCH, 0}};
        out->view = output == 0 ? all : last;
        return output < 2 && set_layer(from, node, is_gru, output == 0, out);
    }
    if (!tdm__onnx_is(node, output, "Gather", 2)) return false;
    const tdm_onnx_node *maker = from->calls->maker(from, node->input[0]);
    if (maker != NULL && tdm__onnx_is(maker, 0, is_gru ? "GRU" : "LSTM", 3) && takes_last(from, node, out))
        return set_layer(from, maker, is_gru, false, out);
    return picks_state(from, node, out);
}
