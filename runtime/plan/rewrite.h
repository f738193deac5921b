/* How rewrites work on a plan; for the effects that a row of the table may have. */
#ifndef TDM_PLAN_REWRITE_H
#define TDM_PLAN_REWRITE_H

#include "runtime/plan/build.h"

/* Nodes that follow each other, each the only reader of the one before. */
typedef struct tdm_chain {
    int node[TDM_MAX_CHAIN], count;
} tdm_chain;

/* The effects: each does nothing where it does not apply. What they are is said with tdm_rewrite_effect. */
tdm_status tdm__rewrite_swap(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);
tdm_status tdm__rewrite_take_in(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);
tdm_status tdm__rewrite_hand_bias(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);
tdm_status tdm__rewrite_sum_bias(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);
tdm_status tdm__rewrite_fill(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);
tdm_status tdm__rewrite_order_weights(tdm_build *build, const tdm_rewrite *row, const tdm_chain *chain);

#endif
