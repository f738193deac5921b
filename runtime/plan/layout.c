/* Chooses the kernel of each node and the layouts of its values, node by node. A kernel is offered the layouts of its
 * producers and answers which layouts it reads and writes. Where it reads another layout, a reorder goes between. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/plan/build.h"

/* For each value that lowering made: its copy in each layout; -1: none. */
typedef struct copies {
    int in[TDM_LAYOUT_COUNT];
} copies;

/* In bf16 a kernel that cannot take it is asked for floats, which the executor then makes for it (widened.h). */
static tdm_status ask(const tdm_build *build, const tdm_kernel *kernel, tdm_kernel_desc *desc, tdm_kernel_fit *fit,
                      bool *fits) {
    const bool is_bf16 = build->plan->options.precision == TDM_BF16;
    *fits = false;
    desc->precision = build->plan->options.precision;
    if (!is_bf16 || kernel->takes_bf16) TDM_TRY(tdm__build_ask(build, kernel, desc, fit, fits));
    if (*fits || !is_bf16 || !build->plan->options.widens) return TDM_OK;
    desc->precision = TDM_F32;
    return tdm__build_ask(build, kernel, desc, fit, fits);
}

/* The first kernel of the list that fits. */
static tdm_status choose_kernel(tdm_build *build, int index) {
    tdm_plan_node *node = &build->plan->nodes[index];
    size_t said = 0;
    for (const tdm_kernel *const *k = build->plan->options.kernels; *k != NULL; k++) {
        tdm_kernel_fit *fit = &build->of_node[index].fit;
        bool fits;
        if (strcmp((*k)->op, node->desc.op) != 0) continue;
        TDM_TRY(ask(build, *k, &node->desc, fit, &fits));
        node->kernel = *k;
        if (fits) return TDM_OK;
        int n = snprintf(node->declined + said, sizeof(node->declined) - said, "%s%s: %s", said ? "; " : "",
                         (*k)->variant, fit->why);
        said += n > 0 && (size_t)n < sizeof(node->declined) - said ? (size_t)n : 0;
    }
    const tdm_origin *origin = node->graph_node >= 0 ? &build->graph->nodes[node->graph_node].origin : NULL;
    TDM_FAIL_AT(origin, TDM_E_UNSUPPORTED, "no kernel on this device for %s '%s'%s%s", node->desc.op, node->name,
                node->declined[0] ? ": " : "", node->declined);
}

/* ---- reorders ---- */

static void describe_reorder(const tdm_build *build, tdm_plan_node *node) {
    const tdm_plan *plan = build->plan;
    const tdm_plan_value *from = &plan->values[node->x[0]], *to = &plan->values[node->y];
    node->needs_backward = plan->options.training && build->of_value[node->x[0]].needs_gradient;
    node->desc = (tdm_kernel_desc){.op = node->op->name,
                                   .input_count = 1,
                                   .x = {from->shape},
                                   .y = to->shape,
                                   .x_layout = {from->layout},
                                   .y_layout = to->layout,
                                   .needs_dx = {node->needs_backward},
                                   .threads = plan->options.threads,
                                   .precision = plan->options.precision};
}

static tdm_status add_reorder(tdm_build *build, int value, tdm_layout layout, int before, int *out) {
    const tdm_plan_value from = build->plan->values[value];
    char name[48];
    int index;
    snprintf(name, sizeof(name), "%.36s'", from.name);
    TDM_TRY(tdm__build_value(build, out, name, &from.shape, layout, from.bytes));
    TDM_TRY(tdm__build_node(build, &index, tdm_builtin_layout_op->name, -1, tdm_builtin_layout_op));
    build->of_value[*out].needs_gradient = build->of_value[value].needs_gradient;
    build->of_value[*out].producer = index;
    build->of_node[index].before = before;
    tdm__build_set_x(build, index, 0, value);
    build->plan->nodes[index].y = *out;
    describe_reorder(build, &build->plan->nodes[index]);
    return choose_kernel(build, index);
}

/* The value in that layout: itself, or a copy, which is made in front of node `before` if there is none yet. */
static tdm_status in_layout(tdm_build *build, copies *of, int value, tdm_layout layout, int before, int *out) {
    tdm_plan_value *from = &build->plan->values[value];
    *out = value;
    if (from->layout == layout) return TDM_OK;
    if (tdm__build_is_free_batch(build, value)) {
        from->layout = layout;
        return TDM_OK;
    }
    int *copy = &of[value].in[layout];
    if (*copy < 0) TDM_TRY(add_reorder(build, value, layout, before, copy));
    *out = *copy;
    return TDM_OK;
}

/* ---- nodes ---- */

/* Does an image in NHWC become features that one layer alone weighs? Then the features stay in that order. */
static bool keeps_channels_last(const tdm_build *build, const tdm_plan_node *node) {
    const tdm_plan *plan = build->plan;
    const int reader = tdm__build_sole_reader(build, node->y);
    return plan->options.ingests && plan->values[node->x[0]].layout == TDM_LAYOUT_NHWC && node->desc.x[0].ndim == 4 &&
           node->desc.y.ndim == 2 && reader >= 0 && (plan->nodes[reader].op->flags & TDM_OP_WEIGHS_FEATURES) != 0;
}

static bool keeps_shape(const tdm_kernel_desc *desc) {
    bool same = desc->x[0].ndim == desc->y.ndim;
    for (int i = 0; same && i < desc->y.ndim; i++) same = desc->x[0].dim[i] == desc->y.dim[i];
    return same;
}

static tdm_status lay_out_alias(tdm_build *build, copies *of, int index) {
    tdm_plan_node *node = &build->plan->nodes[index];
    int x = node->x[0];
    if (keeps_shape(&node->desc)) {
        node->desc.x_layout[0] = node->desc.y_layout = build->plan->values[node->y].layout =
            build->plan->values[x].layout;
        return TDM_OK;
    }
    if (!keeps_channels_last(build, node)) {
        TDM_TRY(in_layout(build, of, x, TDM_LAYOUT_PLAIN, index, &x));
        tdm__build_set_x(build, index, 0, x);
        return TDM_OK;
    }
    build->of_value[node->y].channels = node->desc.x[0].dim[1];
    build->of_value[node->y].points = node->desc.x[0].dim[2] * node->desc.x[0].dim[3];
    return TDM_OK;
}

static tdm_status lay_out_kernel(tdm_build *build, copies *of, int index) {
    tdm_plan *plan = build->plan;
    tdm_plan_node *node = &plan->nodes[index];
    for (int i = 0; i < node->desc.input_count; i++) node->desc.x_layout[i] = plan->values[node->x[i]].layout;
    node->desc.may_fill = node->desc.input_count == 1 && tdm__build_is_free_batch(build, node->x[0]);
    TDM_TRY(choose_kernel(build, index));
    const tdm_kernel_fit fit = build->of_node[index].fit;
    for (int i = 0; i < plan->nodes[index].desc.input_count; i++) {
        int x = plan->nodes[index].x[i];
        TDM_TRY(in_layout(build, of, x, fit.x_layout[i], index, &x));
        tdm__build_set_x(build, index, i, x);
        plan->nodes[index].desc.x_layout[i] = fit.x_layout[i];
    }
    node = &plan->nodes[index];
    node->desc.y_layout = plan->values[node->y].layout = fit.y_layout;
    return TDM_OK;
}

static tdm_status lay_out_all(tdm_build *build, copies *of, int count) {
    tdm_plan *plan = build->plan;
    for (int i = 0; i < count; i++) {
        if ((plan->nodes[i].op->flags & TDM_OP_ALIAS) != 0)
            TDM_TRY(lay_out_alias(build, of, i));
        else
            TDM_TRY(lay_out_kernel(build, of, i));
    }
    int output = plan->output;
    TDM_TRY(in_layout(build, of, output, TDM_LAYOUT_PLAIN, count, &output));
    plan->output = output;
    return TDM_OK;
}

tdm_status tdm__build_layout(tdm_build *build) {
    const int count = build->plan->node_count;
    copies *of = NULL;
    TDM_TRY(tdm__new(build->host, &of, (size_t)build->plan->value_count, sizeof(*of), "plan"));
    for (int i = 0; i < build->plan->value_count; i++)
        for (int l = 0; l < TDM_LAYOUT_COUNT; l++) of[i].in[l] = -1;
    tdm_status status = lay_out_all(build, of, count);
    tdm__delete(build->host, of);
    return status != TDM_OK ? status : tdm__build_move_appended(build, count);
}
