/* Rewrites: fewer kernels, or fewer bytes, do what several layers do, with the same bits. Each rewrite is a row of the
 * table in ops/rewrites.c. Each row is tried at every node before the next row. */
#include "runtime/plan/rewrite.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- chains of nodes ---- */

static bool is_op(const tdm_build *build, int node, const char *op) {
    const tdm_plan_node *n = &build->plan->nodes[node];
    if (build->of_node[node].removed || n->kernel == NULL) return false;
    return strcmp(op, TDM_ANY_OP) == 0 || strcmp(op, n->op->name) == 0;
}

/* The only reader of this node's y; -1: it has none, or several. */
static int sole_reader(const tdm_build *build, int node) {
    return tdm__build_sole_reader(build, build->plan->nodes[node].y);
}

static bool find_chain(const tdm_build *build, const tdm_rewrite *row, int first, tdm_chain *out) {
    *out = (tdm_chain){.count = 0};
    for (int node = first; row->chain[out->count] != NULL; node = sole_reader(build, node)) {
        if (node < 0 || !is_op(build, node, row->chain[out->count])) return false;
        out->node[out->count++] = node;
        if (out->count == TDM_MAX_CHAIN) break;
    }
    return true;
}

/* ---- the pass ---- */

static tdm_status try_row(tdm_build *build, const tdm_rewrite *row, int first) {
    static tdm_rewrite_fn *const effects[] = {
        [TDM_REWRITE_SWAP] = tdm__rewrite_swap,
        [TDM_REWRITE_FUSE] = tdm__rewrite_fuse,
        [TDM_REWRITE_MOVE_BIAS] = tdm__rewrite_move_bias,
        [TDM_REWRITE_SUM_BIAS] = tdm__rewrite_sum_bias,
        [TDM_REWRITE_PAD_CHANNELS] = tdm__rewrite_pad_channels,
        [TDM_REWRITE_ORDER_WEIGHTS] = tdm__rewrite_order_weights,
    };
    tdm_chain chain;
    if (!find_chain(build, row, first, &chain)) return TDM_OK;
    TDM_TRY(effects[row->effect](build, row, &chain));
    if (chain.rewritten) build->plan->rewrites[row - tdm_builtin_rewrites]++;
    return TDM_OK;
}

static bool applies(const tdm_rewrite *row, bool training) {
    return row->when == TDM_WHEN_ALWAYS || training == (row->when == TDM_WHEN_TRAINING);
}

static tdm_status remove_nodes(tdm_build *build) {
    int *order = NULL, count = 0;
    TDM_TRY(tdm__new(build->host, &order, (size_t)build->plan->node_count, sizeof(*order), "plan"));
    for (int i = 0; i < build->plan->node_count; i++)
        if (!build->of_node[i].removed) order[count++] = i;
    tdm_status status = tdm__build_keep_nodes(build, order, count);
    tdm__delete(build->host, order);
    return status;
}

tdm_status tdm__build_rewrite(tdm_build *build) {
    size_t rows = 0;
    while (tdm_builtin_rewrites[rows].name != NULL) rows++;
    TDM_TRY(tdm__zone_new(&build->plan->zone, &build->plan->rewrites, rows, sizeof(int)));
    for (const tdm_rewrite *row = tdm_builtin_rewrites; row->name != NULL; row++) {
        if (!applies(row, build->plan->options.training)) continue;
        for (int i = 0; i < build->plan->node_count; i++) TDM_TRY(try_row(build, row, i));
    }
    return remove_nodes(build);
}
