#include "runtime/exec/widen.h"

#include <tandem/sys/device.h>

#include "runtime/base/status.h"

/* One call of a kernel, whose scratch holds its tensors as floats. */
typedef struct {
    const tdm_kernel_args *args;
    tdm_kernel_args floats; /* what the kernel gets */
    tdm_widened at;
} call;

static float *in_scratch(const call *c, size_t offset) {
    return (float *)(void *)((char *)c->args->scratch + offset);
}

static size_t count_of(const call *c, const tdm_shape *shape) {
    return (size_t)(tdm__shape_count(shape) / shape->dim[0] * c->args->rows);
}

static tdm_status widen(const call *c, const void *from, size_t count, size_t offset, const float **out) {
    float *to = in_scratch(c, offset);
    *out = to;
    return c->args->device->ops->arenas->from_bf16(c->args->device, to, from, count);
}

static tdm_status widen_x(call *c, int i) {
    return widen(c, c->args->x[i], count_of(c, &c->args->desc->x[i]), c->at.x[i], &c->floats.x[i]);
}

static tdm_status round_to(const call *c, void *to, const float *from, const tdm_shape *shape) {
    return c->args->device->ops->arenas->to_bf16(c->args->device, to, from, count_of(c, shape));
}

/* The parameters of products are rounded, as factors are. */
static tdm_status begin(call *c, const tdm_plan_node *node, const tdm_kernel_args *args) {
    *c = (call){.args = args, .floats = *args, .at = tdm__widened_of(node, node->own_scratch)};
    const tdm_kernel_desc *desc = args->desc;
    for (int i = 0; (node->op->flags & TDM_OP_ROUNDS_PARAMS) != 0 && i < desc->param_count; i++)
        TDM_TRY(widen(c, args->param_bf16[i], (size_t)tdm__shape_count(&desc->param[i]), c->at.param[i],
                      &c->floats.param[i]));
    return TDM_OK;
}

tdm_status tdm__widened_forward(const tdm_plan_node *node, const tdm_kernel_args *args, bool statistics) {
    call c;
    TDM_TRY(begin(&c, node, args));
    for (int i = 0; i < args->desc->input_count; i++) TDM_TRY(widen_x(&c, i));
    if (statistics) return node->kernel->statistics(&c.floats);
    c.floats.y = in_scratch(&c, c.at.y);
    TDM_TRY(node->kernel->forward(&c.floats));
    return round_to(&c, args->y, c.floats.y, &args->desc->y);
}

/* Widens only what the kernel reads in backward: other values may be gone. */
tdm_status tdm__widened_backward(const tdm_plan_node *node, const tdm_kernel_args *args, bool statistics) {
    const tdm_kernel_desc *desc = args->desc;
    const size_t y_count = (size_t)(tdm__shape_count(&desc->y) / desc->y.dim[0] * args->rows);
    call c;
    const float *y = NULL;
    TDM_TRY(begin(&c, node, args));
    for (int i = 0; i < desc->input_count; i++)
        if ((node->reads & TDM_OP_READS_X) != 0 && !tdm__plan_is_added(node, i)) TDM_TRY(widen_x(&c, i));
    if ((node->reads & TDM_OP_READS_Y) != 0) TDM_TRY(widen(&c, args->y, y_count, c.at.y, &y));
    c.floats.y = in_scratch(&c, c.at.y);
    TDM_TRY(widen(&c, args->dy, y_count, c.at.dy, &c.floats.dy));
    for (int i = 0; i < desc->input_count; i++)
        c.floats.dx[i] = args->dx[i] != NULL ? in_scratch(&c, c.at.dx[i]) : NULL;
    if (statistics) return node->kernel->statistics(&c.floats);
    TDM_TRY(node->kernel->backward(&c.floats));
    for (int i = 0; i < desc->input_count; i++)
        if (args->dx[i] != NULL) TDM_TRY(round_to(&c, args->dx[i], c.floats.dx[i], &desc->x[i]));
    return TDM_OK;
}
