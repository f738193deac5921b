/* What the effects of rewrites share. */
#ifndef TDM_PLAN_REWRITE_H
#define TDM_PLAN_REWRITE_H

#include "runtime/plan/build.h"

/* Consecutive nodes, each the only reader of the one before. */
typedef struct tdm_chain {
    int node[TDM_MAX_CHAIN], count;
    bool rewritten; /* set by the effect */
} tdm_chain;

/* The effects, as tdm_rewrite_effect describes them. Each does nothing where it does not apply. */
typedef tdm_status tdm_rewrite_fn(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain);
tdm_rewrite_fn tdm__rewrite_swap, tdm__rewrite_fuse, tdm__rewrite_move_bias, tdm__rewrite_sum_bias;
tdm_rewrite_fn tdm__rewrite_pad_channels, tdm__rewrite_order_weights;

#endif
