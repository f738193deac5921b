/* avgpool2d: definition. torch.nn.AvgPool2d. */
#include "ops/avgpool2d/avgpool2d.h"

#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    POOL_FIELDS(tdm_avgpool2d_attrs, "zeros added on each side", "每侧补零的数目"),
    {FIELD(BOOL, tdm_avgpool2d_attrs, count_include_pad, "true"),
     HELP("whether padded zeros count in the mean", "求平均时是否计入填充的零")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_avgpool2d_attrs *attrs = infer->attrs;
    return tdm__pool_infer(infer, &attrs->pool);
}

const tdm_op_def tdm__avgpool2d_op = {
    .name = "avgpool2d",
    .also_called = "avgpool avg_pool2d",
    .doc = "mean of each window (torch.nn.AvgPool2d)",
    .doc_zh = "每个窗口的平均值（torch.nn.AvgPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_avgpool2d_attrs),
    .infer = infer,
};
