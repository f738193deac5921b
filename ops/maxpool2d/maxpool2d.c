/* maxpool2d: definition. torch.nn.MaxPool2d. */
#include "ops/maxpool2d/maxpool2d.h"

#include "ops/ops.h"
#include "ops/window.h"

static const tdm_field fields[] = {
    {.key = "kernel",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_maxpool2d_attrs, kernel),
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .flags = TDM_FIELD_REQUIRED | TDM_FIELD_MAIN,
     .help = "height and width of the window",
     .help_zh = "窗口的高和宽"},
    {.key = "stride",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_maxpool2d_attrs, stride),
     .initial = "null",
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .flags = TDM_FIELD_NULLABLE,
     .help = "step from one window to the next; null: the kernel size",
     .help_zh = "相邻窗口之间的步幅；null 表示等于窗口大小"},
    {.key = "padding",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_maxpool2d_attrs, padding),
     .initial = "0",
     .min = 0,
     .max = TDM_MAX_WINDOW,
     .help = "padding on each side; it is never the maximum",
     .help_zh = "每侧填充的点数，填充点不参与取最大值"},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_maxpool2d_attrs *attrs = infer->attrs;
    tdm_window window = tdm__pool_window(attrs->kernel, attrs->stride, attrs->padding);
    return tdm__pool_infer(infer, &window);
}

const tdm_op_def tdm__maxpool2d_op = {
    .name = "maxpool2d",
    .also_called = "maxpool max_pool2d",
    .doc = "largest value of each window (torch.nn.MaxPool2d)",
    .doc_zh = "每个窗口的最大值（torch.nn.MaxPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_maxpool2d_attrs),
    .infer = infer,
};
