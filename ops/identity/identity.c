/* identity: definition. torch.nn.Identity: the same numbers. It costs nothing: the plan gives y the memory of x. */
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    infer->output = infer->input[0];
    infer->flops = 0;
    return TDM_OK;
}

TDM_ONNX_UNARY("Identity")

/* A Cast between floats only says how they are kept. */
static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    const bool casts =
        tdm__onnx_is(node, output, "Cast", 1) && from->calls->integer(from, node, "to", 0) == TDM_ONNX_FLOAT;
    out->is_view = casts;
    return (casts || tdm__onnx_is(node, output, "Identity", 1)) && tdm__onnx_keeps_view(from, node, out);
}

const tdm_op_def tdm__identity_op = {
    .name = "identity",
    .doc = "y = x (torch.nn.Identity)",
    .doc_zh = "y = x（torch.nn.Identity）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_ALIAS,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
