/* bce_with_logits: -(p t log s + (1 - t) log(1 - s)) of s = 1 / (1 + exp(-y)), computed as (1 - t) y + w (log(1 +
 * exp(-|y|)) + max(-y, 0)) with w = (p - 1) t + 1. p is pos_weight. */
#ifndef TDM_OPS_BCE_WITH_LOGITS_H
#define TDM_OPS_BCE_WITH_LOGITS_H

#include "ops/activation_math.h"
#include "ops/value_loss.h"

/* One weight for all outputs, or one for each. */
static inline tdm_column_settings tdm__pos_weights(const tdm_loss_args *args) {
    const tdm_numbers *weight = &args->section->pos_weight;
    tdm_column_settings s = tdm__one_setting(weight->count == 1 ? weight->item[0] : 1.0);
    if (weight->count > 1) s.item = args->weight != NULL ? args->weight : weight->item;
    return s;
}

TDM_HOST_DEVICE static inline double tdm__bce_with_logits(float y, float t, float p) {
    const float below = y < 0.0f ? -y : 0.0f, weight = (p - 1.0f) * t + 1.0f;
    return (double)((1.0f - t) * y + weight * (log1pf(expf(-fabsf(y))) + below));
}

TDM_HOST_DEVICE static inline float tdm__bce_with_logits_gradient(float y, float t, float p, float seed) {
    const float s = 1.0f / (1.0f + tdm__expf(-y)), weighted = p * t;
    if (p == 1.0f) return (s - t) * seed;
    return ((weighted + 1.0f - t) * s - weighted) * seed;
}

#endif
