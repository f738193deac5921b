/* mse: definition and the CPU's kernel. */
#include "ops/loss/mse/mse.h"

#include "ops/ops.h"

TDM_VALUE_LOSS_RUN(mse, tdm__one_setting(0))

const tdm_loss_def tdm__mse_loss = {
    .name = "mse",
    .also_called = "MSELoss l2",
    .doc = "mean squared difference (torch.nn.MSELoss)",
    .doc_zh = "均方误差（torch.nn.MSELoss）",
    .target = TDM_TARGET_VALUES,
    .denominator = denominator,
    .run = run,
};
