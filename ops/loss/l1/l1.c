/* l1: definition and the CPU's kernel. */
#include "ops/loss/l1/l1.h"

#include "ops/ops.h"

TDM_VALUE_LOSS_RUN(l1, tdm__one_setting(0))

const tdm_loss_def tdm__l1_loss = {
    .name = "l1",
    .also_called = "L1Loss mae",
    .doc = "mean absolute difference (torch.nn.L1Loss)",
    .doc_zh = "平均绝对误差（torch.nn.L1Loss）",
    .target = TDM_TARGET_VALUES,
    .denominator = denominator,
    .run = run,
};
