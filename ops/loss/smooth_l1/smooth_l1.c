/* smooth_l1: definition and the CPU's kernel. */
#include "ops/loss/smooth_l1/smooth_l1.h"

#include "ops/ops.h"

TDM_VALUE_LOSS_RUN(smooth_l1, tdm__one_setting(args->section->beta))

const tdm_loss_def tdm__smooth_l1_loss = {
    .name = "smooth_l1",
    .also_called = "SmoothL1Loss huber HuberLoss",
    .doc = "squared near 0, absolute from beta on (torch.nn.SmoothL1Loss)",
    .doc_zh = "beta 以内为平方、之外为绝对值（torch.nn.SmoothL1Loss）",
    .target = TDM_TARGET_VALUES,
    .keys = {"beta"},
    .denominator = denominator,
    .run = run,
};
