/* bce_with_logits: definition and the CPU's kernel. */
#include "ops/loss/bce_with_logits/bce_with_logits.h"

#include "ops/ops.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    const int count = section->pos_weight.count;
    (void)classes;
    if (count > 1 && count != tdm__shape_count(output))
        TDM_FAIL_AT(
            origin, TDM_E_CONFIG,
            "loss.pos_weight has %d numbers, but the model gives %lld outputs; write one number, or one for each",
            count, (long long)tdm__shape_count(output));
    return TDM_OK;
}

TDM_VALUE_LOSS_RUN(bce_with_logits, tdm__pos_weights(args))

const tdm_loss_def tdm__bce_with_logits_loss = {
    .name = "bce_with_logits",
    .also_called = "bce BCEWithLogitsLoss BCELoss binary_cross_entropy",
    .doc = "cross-entropy of independent yes-or-no outputs, before their sigmoid (torch.nn.BCEWithLogitsLoss)",
    .doc_zh = "各输出独立的二元交叉熵，输入为 sigmoid 之前的值（torch.nn.BCEWithLogitsLoss）",
    .target = TDM_TARGET_VALUES,
    .is_logit = true,
    .keys = {"pos_weight"},
    .infer = infer,
    .denominator = denominator,
    .run = run,
};
