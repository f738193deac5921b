/* embedding: definition. torch.nn.Embedding. */
#include "ops/embedding/embedding.h"

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

enum { MOST = 1 << 24 }; /* floats have every whole number up to this */

static const tdm_field fields[] = {
    {FIELD(INT, tdm_embedding_attrs, vocabulary, NULL), RANGE(1, MOST), FLAGS(REQUIRED),
     HELP("how many different numbers there are: 0 to vocabulary - 1", "不同编号的个数：0 至 vocabulary - 1")},
    {FIELD(INT, tdm_embedding_attrs, dim, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED),
     HELP("features that stand for each number", "每个编号对应的特征数")},
    {FIELD(INT, tdm_embedding_attrs, padding_idx, "null"), RANGE(0, MOST), FLAGS(NULLABLE),
     HELP("the number whose features are 0 and stay so; null: none", "该编号的特征恒为 0；null 表示没有")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_embedding_attrs *attrs = infer->attrs;
    const tdm_shape *x = &infer->input[0];
    if (x->ndim + 1 >= TDM_MAX_DIMS)
        TDM_INFER_FAIL(infer, "%s adds a dimension, and %s has too many for that", infer->layer,
                       tdm__shape_text(x).text);
    if (attrs->padding_idx != TDM_INT_NULL && attrs->padding_idx >= attrs->vocabulary)
        TDM_INFER_FAIL(infer, "%s: padding_idx must be below the vocabulary, %lld, got %lld", infer->layer,
                       (long long)attrs->vocabulary, (long long)attrs->padding_idx);
    infer->output = *x;
    infer->output.dim[infer->output.ndim++] = attrs->dim;
    infer->param_count = 1;
    infer->param[0] = (tdm_param_def){.suffix = "weight",
                                      .shape = {2, {attrs->vocabulary, attrs->dim}},
                                      .init = TDM_INIT_NORMAL,
                                      .std = 1.0,
                                      .has_zero_row = attrs->padding_idx != TDM_INT_NULL,
                                      .zero_row = attrs->padding_idx};
    infer->index_below = attrs->vocabulary;
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const char *rows = to->calls->value(to);
    TDM_ONNX_NODE(to, "Cast", rows, layer->x[0]);
    to->calls->integer(to, "to", TDM_ONNX_INT64);
    TDM_ONNX_NODE(to, "Gather", layer->y, layer->param[0], rows);
    return TDM_OK;
}

/* Whole numbers may come as they are, or be cast. */
static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_onnx_constant table;
    tdm_shape shape;
    if (!tdm__onnx_is(node, output, "Gather", 2) || from->calls->integer(from, node, "axis", 0) != 0 ||
        !from->calls->constant(from, node->input[0], &table) || table.shape.ndim != 2)
        return false;
    const tdm_onnx_node *cast = tdm__onnx_made_by(from, node->input[1], "Cast", 1);
    const char *x = cast != NULL ? cast->input[0] : node->input[1];
    if (!from->calls->plain(from, x, &shape)) return false;
    out->x[out->input_count++] = x;
    out->param[0] = tdm__onnx_weight_of(node->input[0]);
    from->calls->set_integer(from, "vocabulary", table.shape.dim[0]);
    from->calls->set_integer(from, "dim", table.shape.dim[1]);
    return true;
}

const tdm_op_def tdm__embedding_op = {
    .name = "embedding",
    .also_called = "embed lookup",
    .doc = "features for each whole number, learned: a table of vocabulary rows (torch.nn.Embedding)",
    .doc_zh = "把每个整数编号换成可学习的特征：vocabulary 行的表（torch.nn.Embedding）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_embedding_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
