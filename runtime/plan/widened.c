#include "runtime/plan/widened.h"

/* Returns where a tensor of this shape begins, and moves the end behind it. */
static size_t put(tdm_widened *w, const tdm_shape *shape) {
    const size_t at = w->total;
    w->total += tdm__plan_floats((size_t)tdm__shape_count(shape)) * sizeof(float);
    return at;
}

tdm_widened tdm__widened_of(const tdm_plan_node *node, size_t own) {
    const tdm_kernel_desc *desc = &node->desc;
    tdm_widened w = {.total = tdm__round_up(own, TDM_ALIGN)};
    for (int i = 0; i < desc->input_count; i++) w.x[i] = put(&w, &desc->x[i]);
    w.y = put(&w, &desc->y);
    for (int i = 0; (node->op->flags & TDM_OP_ROUNDS_PARAMS) != 0 && i < desc->param_count; i++)
        w.param[i] = put(&w, &desc->param[i]);
    if (!node->needs_backward) return w;
    w.dy = put(&w, &desc->y);
    for (int i = 0; i < desc->input_count; i++) w.dx[i] = put(&w, &desc->x[i]);
    return w;
}
