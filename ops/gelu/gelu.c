/* gelu: definition. torch.nn.GELU. */
#include "ops/gelu/gelu.h"

#include <math.h>
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const char *const forms[] = {"none", "tanh", NULL};
static const tdm_field fields[] = {
    {FIELD(ENUM, tdm_gelu_attrs, approximate, "none"), .names = forms, FLAGS(MAIN),
     HELP("none: by erf; tanh: by an approximation, as in GPT-2", "none：用 erf；tanh：用近似式，同 GPT-2")},
    {0},
};

/* Opset 17 has no node for it. */
static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const bool by_tanh = ((const tdm_gelu_attrs *)layer->attrs)->approximate == TDM_GELU_TANH;
    const char *x = layer->x[0], *v[8];
    for (int i = 0; i < 8; i++) v[i] = to->calls->value(to);
    if (by_tanh) {
        TDM_ONNX_NODE(to, "Mul", v[0], x, x);
        TDM_ONNX_NODE(to, "Mul", v[1], v[0], tdm__onnx_scalar(to, 0.044715f));
        TDM_ONNX_NODE(to, "Mul", v[2], v[1], x);
        TDM_ONNX_NODE(to, "Add", v[3], v[2], x);
        TDM_ONNX_NODE(to, "Mul", v[4], v[3], tdm__onnx_scalar(to, 0.797884561f));
    } else {
        TDM_ONNX_NODE(to, "Mul", v[4], x, tdm__onnx_scalar(to, 0.707106781f));
    }
    TDM_ONNX_NODE(to, by_tanh ? "Tanh" : "Erf", v[5], v[4]);
    TDM_ONNX_NODE(to, "Add", v[6], v[5], tdm__onnx_scalar(to, 1.0f));
    TDM_ONNX_NODE(to, "Mul", v[7], v[6], x);
    TDM_ONNX_NODE(to, "Mul", layer->y, v[7], tdm__onnx_scalar(to, 0.5f));
    return TDM_OK;
}

/* Is the value `number` times x, or x by it? */
static bool is_times(tdm_onnx_reader *from, const char *value, const char *op, double number, const char **x) {
    const tdm_onnx_node *node = tdm__onnx_made_by(from, value, op, 2);
    const char *constant;
    if (node == NULL || !tdm__onnx_split(from, node, x, &constant)) return false;
    if (strcmp(op, "Div") == 0 && constant != node->input[1]) return false; /* by x */
    return tdm__onnx_is_scalar(from, constant, number);
}

/* How often x is a factor of a product, and what its constants give; -1: it has other factors. */
static int powers(tdm_onnx_reader *from, const char *value, const char *x, int depth, double *constant) {
    double number;
    if (strcmp(value, x) == 0) return 1;
    if (from->calls->numbers(from, value, 1, &number) == 1) {
        *constant *= number;
        return 0;
    }
    const tdm_onnx_node *node = from->calls->producer(from, value);
    if (node == NULL || depth == 0 || node->input_count != 2) return -1;
    if (strcmp(node->op, "Pow") == 0)
        return strcmp(node->input[0], x) == 0 && tdm__onnx_is_scalar(from, node->input[1], 3.0) ? 3 : -1;
    if (strcmp(node->op, "Mul") != 0) return -1;
    const int first = powers(from, node->input[0], x, depth - 1, constant),
              second = powers(from, node->input[1], x, depth - 1, constant);
    return first < 0 || second < 0 ? -1 : first + second;
}

/* 0.797884561 (x + 0.044715 x^3) */
static bool is_bent(tdm_onnx_reader *from, const char *value, const char **x) {
    const char *sum;
    if (!is_times(from, value, "Mul", 0.797884561, &sum)) return false;
    const tdm_onnx_node *node = tdm__onnx_made_by(from, sum, "Add", 2);
    for (int i = 0; i < 2 && node != NULL; i++) {
        double constant = 1;
        *x = node->input[i];
        if (powers(from, node->input[1 - i], *x, 3, &constant) == 3 && fabs(constant - 0.044715) < 1e-6) return true;
    }
    return false;
}

/* 1 + erf(x / sqrt(2)), or 1 + tanh(...): which, and of which x. */
static bool is_sum(tdm_onnx_reader *from, const char *value, bool *by_tanh, const char **x) {
    const char *bend;
    if (!is_times(from, value, "Add", 1.0, &bend)) return false;
    const tdm_onnx_node *erf = tdm__onnx_made_by(from, bend, "Erf", 1),
                        *tanh = tdm__onnx_made_by(from, bend, "Tanh", 1);
    *by_tanh = tanh != NULL;
    if (tanh != NULL) return is_bent(from, tanh->input[0], x);
    return erf != NULL && (is_times(from, erf->input[0], "Mul", 0.707106781, x) ||
                           is_times(from, erf->input[0], "Div", 1.414213562, x));
}

/* x times that, or x / 2 times it */
static bool is_product(tdm_onnx_reader *from, const tdm_onnx_node *node, bool is_half, bool *by_tanh, const char **x) {
    for (int i = 0; i < 2; i++) {
        const char *other = node->input[1 - i], *whole;
        if (!is_sum(from, node->input[i], by_tanh, x)) continue;
        if (is_half) return is_times(from, other, "Mul", 0.5, &whole) && strcmp(whole, *x) == 0;
        return strcmp(other, *x) == 0;
    }
    return false;
}

/* One node from opset 20 on; else the product of x, 0.5 and 1 + erf or 1 + tanh, in any order. */
static bool is_gelu(tdm_onnx_reader *from, const tdm_onnx_node *node, bool *by_tanh, const char **x) {
    const char *inner, *half;
    if (strcmp(node->op, "Mul") != 0 || node->input_count != 2) return false;
    if (is_product(from, node, true, by_tanh, x)) return true;
    if (tdm__onnx_split(from, node, &inner, &half) && tdm__onnx_is_scalar(from, half, 0.5)) {
        const tdm_onnx_node *product = tdm__onnx_made_by(from, inner, "Mul", 2);
        return product != NULL && is_product(from, product, false, by_tanh, x);
    }
    for (int i = 0; i < 2; i++)
        if (is_times(from, node->input[i], "Mul", 0.5, &inner) && is_sum(from, inner, by_tanh, x))
            return strcmp(node->input[1 - i], *x) == 0;
    return false;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    const bool whole = tdm__onnx_is(node, output, "Gelu", 1);
    bool by_tanh = whole && strcmp(from->calls->word(from, node, "approximate", "none"), "tanh") == 0;
    const char *x = whole ? node->input[0] : "";
    if (output != 0 || (!whole && !is_gelu(from, node, &by_tanh, &x))) return false;
    out->x[out->input_count++] = x;
    if (by_tanh) from->calls->set_word(from, "approximate", "tanh");
    return from->calls->view(from, x, &out->view);
}

const tdm_op_def tdm__gelu_op = {
    .name = "gelu",
    .doc = "y = x P(X <= x) for a normal X (torch.nn.GELU)",
    .doc_zh = "y = x P(X <= x)，X 服从标准正态分布（torch.nn.GELU）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_gelu_attrs),
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
