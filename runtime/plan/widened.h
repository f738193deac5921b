/* Kernels that know only floats, in a plan of bf16: the executor widens what they read and rounds what they write. */
#ifndef TDM_PLAN_WIDENED_H
#define TDM_PLAN_WIDENED_H

#include "runtime/plan/plan.h"

/* Byte offsets in the node's scratch of its tensors as floats, behind what the kernel itself uses. Parameters are there
 * only if the op rounds them. */
typedef struct tdm_widened {
    size_t x[TDM_MAX_INPUTS], y, dy, dx[TDM_MAX_INPUTS], param[TDM_MAX_PARAMS];
    size_t total;
} tdm_widened;

/* `own`: bytes of the kernel's own scratch. */
tdm_widened tdm__widened_of(const tdm_plan_node *node, size_t own);

static inline bool tdm__plan_widens(const tdm_plan *plan, const tdm_plan_node *node) {
    return plan->options.precision == TDM_BF16 && node->desc.precision != TDM_BF16;
}

#endif
