/* What one device does in a step, from the plan: for each entry the longer of its products and of its bytes. */
#include <math.h>

#include "runtime/scale/scale.h"

typedef struct cost_of {
    const tdm_plan *plan;
    const tdm_scale_device *device;
    int64_t rows;
    double flops, memory; /* per second */
} cost_of;

static double seconds_of(const cost_of *c, double flops, double bytes) {
    return fmax(flops / c->flops, bytes / c->memory) + c->device->launch;
}

static double value_bytes(const cost_of *c, int value) {
    return value < 0 ? 0 : (double)tdm__plan_value_bytes(c->plan, value, c->rows);
}

static double param_bytes(const cost_of *c, const tdm_plan_node *node) {
    double bytes = 0;
    for (int i = 0; i < node->desc.param_count; i++)
        if (node->param[i] >= 0)
            bytes += (double)c->plan->params[node->param[i]].stored * (double)c->plan->element_bytes;
    return bytes;
}

static double flops_of(const cost_of *c, const tdm_plan_node *node) {
    return node->graph_node < 0 ? 0 : c->plan->graph->nodes[node->graph_node].flops * (double)c->rows;
}

static double forward_of(const cost_of *c, const tdm_plan_node *node) {
    double bytes = value_bytes(c, node->y) + param_bytes(c, node);
    if (node->kernel == NULL) return 0;
    for (int i = 0; i < node->desc.input_count; i++) bytes += value_bytes(c, node->x[i]);
    return seconds_of(c, flops_of(c, node), bytes);
}

static bool has_param_gradient(const tdm_plan_node *node) {
    for (int i = 0; i < node->desc.param_count; i++)
        if (node->dparam[i] >= 0) return true;
    return false;
}

/* The gradient of the input and that of the weight are a product each, as large as forward's. */
static double backward_of(const cost_of *c, const tdm_plan_node *node) {
    const bool has_dx = node->dx[0] >= 0, has_dparam = has_param_gradient(node);
    double bytes = value_bytes(c, node->dy) * (has_dx + has_dparam) + param_bytes(c, node) * (has_dx + has_dparam);
    if (node->kernel == NULL) return 0;
    for (int i = 0; i < node->desc.input_count; i++) {
        bytes += value_bytes(c, node->dx[i]);
        if (tdm__plan_backward_reads(node, i)) bytes += value_bytes(c, node->x[i]);
    }
    if ((node->reads & TDM_OP_READS_Y) != 0) bytes += value_bytes(c, node->y);
    return seconds_of(c, flops_of(c, node) * (has_dx + has_dparam), bytes);
}

static double step_seconds(const cost_of *c, const tdm_plan_step *step) {
    switch (step->kind) {
    case TDM_STEP_FORWARD:
    case TDM_STEP_RECOMPUTE:
        return forward_of(c, &c->plan->nodes[step->index]);
    case TDM_STEP_BACKWARD:
        return backward_of(c, &c->plan->nodes[step->index]);
    case TDM_STEP_LOSS:
        return seconds_of(c, 0, 2 * value_bytes(c, c->plan->output));
    case TDM_STEP_STATISTICS:
    case TDM_STEP_READY:
        break;
    }
    return 0;
}

void tdm__scale_work(const tdm_plan *plan, const tdm_scale_device *device, int64_t rows, int state_count,
                     tdm_scale_bucket *bucket, tdm_scale_work *out) {
    const int precision = plan->options.precision, threads = device->is_gpu ? 1 : plan->options.threads;
    const cost_of c = {plan, device, rows, device->flops[precision] * device->share[precision] * threads,
                       device->memory * device->memory_share * threads};
    *out = (tdm_scale_work){.size = sizeof(*out), .buckets = bucket};
    for (int i = 0; i < plan->step_count; i++) {
        const tdm_plan_step *step = &plan->steps[i];
        double *phase = i <= plan->forward_steps ? &out->forward : &out->backward;
        if (step->kind == TDM_STEP_READY)
            bucket[out->bucket_count++] =
                (tdm_scale_bucket){(double)plan->buckets[step->index].count * sizeof(float), out->backward};
        *phase += step_seconds(&c, step);
    }
    for (int i = 0; i < out->bucket_count; i++)
        bucket[i].ready = out->backward > 0 ? fmin(bucket[i].ready / out->backward, 1) : 1;
    /* It reads parameters, gradients and state, and writes parameters and state. */
    out->update = seconds_of(&c, 0, (double)plan->trained_floats * sizeof(float) * (3 + 2 * state_count));
}
