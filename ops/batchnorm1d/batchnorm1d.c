/* batchnorm1d: definition. torch.nn.BatchNorm1d. The attributes are those of batchnorm2d. */
#include "ops/batchnorm2d/batchnorm2d.h"
#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    const tdm_shape *x = &infer->input[0];
    if (x->ndim != 1 && x->ndim != 2)
        TDM_INFER_FAIL(infer, "%s needs an input of channels, or of channels x points, got %s%s", infer->layer,
                       tdm__shape_text(x).text, x->ndim == 3 ? "; batchnorm2d takes that" : "");
    return tdm__batchnorm2d_infer(infer, x->ndim == 2 ? x->dim[1] : 1);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__batchnorm2d_from_onnx(from, node, output, out, 1, 2);
}

const tdm_op_def tdm__batchnorm1d_op = {
    .name = "batchnorm1d",
    .also_called = "bn1d batchnorm_1d batch_norm_1d",
    .doc = "normalises each feature, or each channel of a series, over the batch (torch.nn.BatchNorm1d)",
    .doc_zh = "对每个特征或序列的每个通道在批次上归一化（torch.nn.BatchNorm1d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = tdm__batchnorm2d_fields,
    .attrs_bytes = sizeof(tdm_batchnorm2d_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(tdm__batchnorm2d_onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
