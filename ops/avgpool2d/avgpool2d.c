/* avgpool2d: definition. torch.nn.AvgPool2d. */
#include "ops/avgpool2d/avgpool2d.h"

#include "ops/ops.h"
#include "ops/window.h"

static const tdm_field fields[] = {
    {.key = "kernel",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_avgpool2d_attrs, kernel),
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .flags = TDM_FIELD_REQUIRED | TDM_FIELD_MAIN,
     .help = "height and width of the window",
     .help_zh = "窗口的高和宽"},
    {.key = "stride",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_avgpool2d_attrs, stride),
     .initial = "null",
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .flags = TDM_FIELD_NULLABLE,
     .help = "step from one window to the next; null: the kernel size",
     .help_zh = "相邻窗口之间的步幅；null 表示等于窗口大小"},
    {.key = "padding",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_avgpool2d_attrs, padding),
     .initial = "0",
     .min = 0,
     .max = TDM_MAX_WINDOW,
     .help = "zeros added on each side",
     .help_zh = "每侧补零的数目"},
    {.key = "count_include_pad",
     .kind = TDM_FIELD_BOOL,
     .offset = offsetof(tdm_avgpool2d_attrs, count_include_pad),
     .initial = "true",
     .help = "whether padded zeros count in the mean",
     .help_zh = "求平均时是否计入填充的零"},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_avgpool2d_attrs *attrs = infer->attrs;
    tdm_window window = tdm__pool_window(attrs->kernel, attrs->stride, attrs->padding);
    return tdm__pool_infer(infer, &window);
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
