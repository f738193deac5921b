/* The executor: the plan's steps in order. Kernels write; what must be added is added here. */
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/exec/prepared.h"
#include "runtime/exec/repeats.h"
#include "runtime/exec/replica.h"
#include "runtime/exec/widen.h"

/* Where the micro-batch's part of `bytes` begins: a stage has one for each micro-batch that is in it at a time. */
static size_t of_micro_batch(const tdm_replica *replica, int stage, size_t bytes) {
    return (size_t)(replica->micro_batch % replica->plan->stages[stage].in_flight) * bytes;
}

static float *in_arena(const tdm_replica *replica, int value) {
    const tdm_plan_value *v = &replica->plan->values[value];
    const tdm_plan_stage *stage = &replica->plan->stages[v->stage];
    const size_t at = v->is_shared ? stage->activation_bytes * (size_t)stage->in_flight
                                   : of_micro_batch(replica, v->stage, stage->activation_bytes);
    return (float *)(void *)(replica->stages[v->stage]->pass.activation + at + v->offset);
}

/* Where the batch lies in bf16. */
static char *batch_bf16(const tdm_replica *replica) {
    const size_t bytes = (size_t)replica->plan->options.rows * replica->plan->input_row_bytes;
    return replica->pass.batch_bf16 + of_micro_batch(replica, replica->stage, bytes);
}

static float *address(const tdm_replica *replica, const tdm_rows *rows, int value) {
    if (value < 0) return NULL;
    /* The batch is lent as const; only kernels that read it see it, because it is never a y or a dx. */
    if (replica->plan->values[value].kind == TDM_PLACE_EXTERNAL)
        return replica->pass.batch_bf16 != NULL ? (float *)(void *)batch_bf16(replica) : (float *)(uintptr_t)rows->x;
    return in_arena(replica, value);
}

float *tdm__exec_output(const tdm_replica *replica) {
    return in_arena(replica, replica->plan->output);
}

float *tdm__exec_output_gradient(const tdm_replica *replica) {
    return in_arena(replica, replica->plan->d_output);
}

static double *blocks_at(const tdm_replica *replica, size_t offset) {
    return replica->pass.statistics != NULL ? (double *)(void *)(replica->pass.statistics + offset) : NULL;
}

/* The node's parameters: in the replica's arena, or in weights that are lent to it. */
static void set_params(const tdm_replica *replica, const tdm_plan_node *node, tdm_kernel_args *args) {
    const tdm_weights *lent = replica->borrowed.weights;
    for (int i = 0; i < node->desc.param_count; i++) {
        const tdm_plan_param *param = &replica->plan->params[node->param[i]];
        const size_t offset = tdm__replica_floats_at(replica, param->offset);
        args->param[i] = lent != NULL ? lent->param[param->graph_param] : replica->arena.param + offset;
        if (replica->arena.param_bf16 != NULL)
            args->param_bf16[i] = (const uint16_t *)replica->arena.param_bf16 + offset;
        if (lent != NULL && lent->param_bf16 != NULL) args->param_bf16[i] = lent->param_bf16[param->graph_param];
    }
}

/* Borrowed buffers are const, and nothing writes them: a replica that borrows does not train. */
static char *buffers_of(const tdm_replica *replica) {
    return replica->borrowed.weights != NULL ? (char *)(uintptr_t)replica->borrowed.weights->buffer
                                             : replica->arena.buffer;
}

static void common_args(tdm_replica *replica, const tdm_plan_node *node, int index, const tdm_rows *rows,
                        const tdm_prepared *prepared, tdm_kernel_args *args) {
    const tdm_plan *plan = replica->plan;
    *args = (tdm_kernel_args){.desc = &node->desc,
                              .device = replica->device,
                              .state = prepared->state[index],
                              .rows = rows->rows,
                              .training = prepared->training && !node->evaluates,
                              .seed = replica->seed,
                              .values = replica->block->values,
                              .position = rows->position};
    args->stream = (uint32_t)(node->graph_node >= 0 ? node->graph_node : index);
    args->replica = rows->replica;
    args->present = rows->present;
    for (int i = 0; i < node->desc.input_count; i++) args->x[i] = address(replica, rows, node->x[i]);
    args->y = address(replica, rows, node->y);
    args->saved = address(replica, rows, node->saved);
    if (replica->borrowed.packed != NULL) args->packed = replica->borrowed.packed[index];
    set_params(replica, node, args);
    for (int i = 0; i < node->desc.buffer_count; i++) {
        const tdm_plan_buffer *buffer = &plan->buffers[node->buffer[i]];
        char *at = buffers_of(replica) + (buffer->offset - plan->stages[replica->stage].buffer_at);
        if (buffer->def.is_counter)
            args->counter = (int64_t *)(void *)at;
        else
            args->buffer[i] = (float *)(void *)at;
    }
}

/* The arguments of backward: values that are made again take the place of those of forward. */
static void backward_args(tdm_replica *replica, int index, const tdm_rows *rows, const tdm_prepared *prepared,
                          tdm_kernel_args *args) {
    const tdm_plan_node *node = &replica->plan->nodes[index];
    common_args(replica, node, index, rows, prepared, args);
    for (int i = 0; i < node->desc.input_count; i++)
        args->x[i] = address(replica, rows, tdm__plan_in_backward(replica->plan, node->x[i]));
    args->y = address(replica, rows, tdm__plan_in_backward(replica->plan, node->y));
    args->scratch = address(replica, rows, node->scratch_backward);
    args->statistics = blocks_at(replica, node->statistics_backward);
}

static tdm_status enter(const tdm_replica *replica) {
    const tdm_device_ops *ops = replica->device->ops;
    return ops->enter != NULL ? ops->enter(replica->device) : TDM_OK;
}

static size_t value_count(const tdm_plan_value *value, int64_t rows) {
    return (size_t)(tdm__shape_count(&value->shape) / value->shape.dim[0] * rows);
}

/* Where kernels read the batch in the host's memory it comes as floats. Backward reads the same rounded copy. */
static tdm_status round_batch(tdm_replica *replica, const tdm_rows *rows) {
    if (replica->pass.batch_bf16 == NULL) return TDM_OK;
    const size_t count = value_count(&replica->plan->values[replica->plan->input], rows->rows);
    return replica->device->ops->arenas->to_bf16(replica->device, batch_bf16(replica), rows->x, count);
}

/* Copies a value's rows to the next stage, or their gradient to the stage before. */
static tdm_status transfer(const tdm_replica *replica, const tdm_rows *rows, int to, int from) {
    if (to < 0) return TDM_OK;
    return replica->device->ops->queues->copy(replica->device, NULL, address(replica, rows, to),
                                              address(replica, rows, from),
                                              tdm__plan_value_bytes(replica->plan, from, rows->rows));
}

static tdm_status forward_node(tdm_replica *replica, int index, const tdm_rows *rows, const tdm_prepared *prepared,
                               bool statistics) {
    const tdm_plan_node *node = &replica->plan->nodes[index];
    tdm_kernel_args args;
    if (node->transfers) return transfer(replica, rows, node->y, node->x[0]);
    common_args(replica, node, index, rows, prepared, &args);
    args.scratch = address(replica, rows, node->scratch_forward);
    args.statistics = blocks_at(replica, node->statistics_forward);
    if (tdm__plan_widens(replica->plan, node)) return tdm__widened_forward(node, &args, statistics);
    return statistics ? node->kernel->statistics(&args) : node->kernel->forward(&args);
}

static tdm_status forward_step(tdm_replica *replica, int step, const tdm_rows *rows, const tdm_prepared *prepared) {
    const tdm_plan_step *s = &replica->plan->steps[step];
    const bool statistics = s->kind == TDM_STEP_STATISTICS;
    if (!prepared->training || !tdm__repeats(replica))
        return forward_node(replica, s->index, rows, prepared, statistics);
    for (int64_t i = 0; i < replica->repeats.count; i++) {
        const int64_t start = tdm__steady_ns(replica->host);
        TDM_TRY(forward_node(replica, s->index, rows, prepared, statistics));
        TDM_TRY(tdm__repeats_end(replica, step, i, start));
    }
    return TDM_OK;
}

/* Runs the plan's steps from *step up to the next exchange of statistics, or to `end`. Evaluation exchanges nothing.
 * Without rows nothing is computed. */
static tdm_status forward_from(tdm_replica *replica, const tdm_rows *rows, bool training, int *step, int end) {
    const tdm_plan *plan = replica->plan;
    tdm_prepared *prepared = NULL;
    TDM_TRY(enter(replica));
    if (rows->rows > 0) TDM_TRY(tdm__prepared_find(replica, rows->rows, training, &prepared));
    if (rows->rows > 0 && *step == 0) TDM_TRY(round_batch(replica, rows));
    while (*step < end) {
        const int at = (*step)++;
        const bool statistics = plan->steps[at].kind == TDM_STEP_STATISTICS;
        if (statistics && !training) continue;
        if (rows->rows > 0) TDM_TRY(forward_step(replica, at, rows, prepared));
        if (statistics) break;
    }
    return TDM_OK;
}

tdm_status tdm__exec_forward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch, int *step) {
    replica->micro_batch = micro_batch;
    return forward_from(replica, rows, true, step, replica->plan->stages[replica->stage].send);
}

tdm_status tdm__exec_send(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch) {
    const tdm_plan_stage *of = &replica->plan->stages[replica->stage];
    int step = of->send;
    replica->micro_batch = micro_batch;
    return forward_from(replica, rows, true, &step, of->forward_end);
}

/* One stage after another, each when the stage before it has ended. */
tdm_status tdm__exec_evaluate(tdm_replica *replica, const tdm_rows *rows) {
    const tdm_plan *plan = replica->plan;
    for (int k = 0; k < plan->stage_count; k++) {
        tdm_replica *stage = replica->stages[k];
        int step = plan->stages[k].forward;
        stage->micro_batch = 0;
        TDM_TRY(forward_from(stage, rows, false, &step, plan->stages[k].forward_end));
        if (k + 1 < plan->stage_count) TDM_TRY(stage->device->ops->queues->finish(stage->device, NULL));
    }
    return TDM_OK;
}

/* ---- packs ---- */

size_t tdm__exec_packed_bytes(const tdm_replica *replica, int index) {
    const tdm_kernel *kernel = replica->plan->nodes[index].kernel;
    if (kernel == NULL || kernel->packed_bytes == NULL || tdm__plan_widens(replica->plan, &replica->plan->nodes[index]))
        return 0;
    return kernel->packed_bytes(replica->prepared->first->state[index]);
}

tdm_status tdm__exec_pack(tdm_replica *replica, int index, void *to) {
    const tdm_plan_node *node = &replica->plan->nodes[index];
    const tdm_rows rows = {.rows = replica->plan->options.rows};
    tdm_kernel_args args;
    common_args(replica, node, index, &rows, replica->prepared->first, &args);
    args.scratch = address(replica, &rows, node->scratch_forward);
    args.packed = to;
    return node->kernel->pack(&args);
}

/* ---- backward ---- */

/* to += what: gradients of activations or, with `floats`, of parameters. */
static tdm_status add(const tdm_replica *replica, float *to, const float *what, size_t count, bool floats) {
    tdm_device *device = replica->device;
    if (!floats && replica->arena.param_bf16 != NULL) return device->ops->arenas->add_bf16(device, to, what, count);
    const float *const source[2] = {to, what};
    return device->ops->arenas->sum(device, to, source, 2, count);
}

/* An alias node has no kernel; its gradients share memory unless another layer wrote there first or will add. */
static tdm_status backward_alias(tdm_replica *replica, const tdm_plan_node *node, const tdm_rows *rows) {
    if (node->dx[0] < 0) return TDM_OK;
    float *dx = address(replica, rows, node->dx[0]), *dy = address(replica, rows, node->dy);
    size_t count = value_count(&replica->plan->values[node->dy], rows->rows);
    if (node->dx_adds[0]) return add(replica, dx, dy, count, false);
    if (dx == dy) return TDM_OK;
    return replica->device->ops->queues->copy(replica->device, NULL, dx, dy, count * replica->plan->element_bytes);
}

/* Where the gradient of a parameter is written: in the arena or, from the second micro-batch on, at *temp, which then
 * moves behind it. NULL if `param` is -1. */
static float *gradient_at(const tdm_replica *replica, int param, float **temp) {
    if (param < 0) return NULL;
    const tdm_plan_param *p = &replica->plan->params[param];
    if (*temp == NULL) return replica->arena.grad + tdm__replica_floats_at(replica, p->offset);
    float *at = *temp;
    *temp += tdm__plan_floats((size_t)p->stored);
    return at;
}

/* Adds what the kernel wrote beside the gradients so far. */
static tdm_status add_gradient(const tdm_replica *replica, int param, const float *what) {
    if (param < 0) return TDM_OK;
    const tdm_plan_param *p = &replica->plan->params[param];
    return add(replica, replica->arena.grad + tdm__replica_floats_at(replica, p->offset), what, (size_t)p->stored,
               true);
}

static tdm_status add_gradients(const tdm_replica *replica, const tdm_plan_node *node, const tdm_kernel_args *args) {
    for (int i = 0; i < node->desc.param_count; i++) TDM_TRY(add_gradient(replica, node->dparam[i], args->dparam[i]));
    return add_gradient(replica, tdm__plan_dsum(replica->plan, node), args->channel_sums);
}

static void set_gradients(tdm_replica *replica, const tdm_plan_node *node, const tdm_rows *rows, bool first,
                          tdm_kernel_args *args) {
    const tdm_plan *plan = replica->plan;
    args->dy = address(replica, rows, node->dy);
    for (int i = 0; i < node->desc.input_count; i++)
        args->dx[i] = address(replica, rows, node->dx_adds[i] ? node->dx_temp[i] : node->dx[i]);
    float *temp = first ? NULL : address(replica, rows, plan->stages[replica->stage].temp);
    float *unwanted = address(replica, rows, plan->stages[replica->stage].unwanted);
    for (int i = 0; i < node->desc.param_count; i++) {
        args->dparam[i] = gradient_at(replica, node->dparam[i], &temp);
        if ((node->unwanted >> i & 1) == 0) continue;
        args->dparam[i] = unwanted;
        unwanted += tdm__plan_floats((size_t)plan->params[node->param[i]].stored);
    }
    args->channel_sums = gradient_at(replica, tdm__plan_dsum(plan, node), &temp);
}

static tdm_status backward_node(tdm_replica *replica, int index, const tdm_rows *rows, const tdm_prepared *prepared,
                                bool first) {
    const tdm_plan *plan = replica->plan;
    const tdm_plan_node *node = &plan->nodes[index];
    if (node->transfers) return transfer(replica, rows, node->dx[0], node->dy);
    if (node->kernel == NULL) return backward_alias(replica, node, rows);
    tdm_kernel_args args;
    backward_args(replica, index, rows, prepared, &args);
    set_gradients(replica, node, rows, first, &args);
    TDM_TRY(tdm__plan_widens(plan, node) ? tdm__widened_backward(node, &args, false) : node->kernel->backward(&args));
    for (int i = 0; i < node->desc.input_count; i++) {
        if (node->dx[i] >= 0 && node->dx_adds[i])
            TDM_TRY(add(replica, address(replica, rows, node->dx[i]), args.dx[i],
                        value_count(&plan->values[node->dx[i]], rows->rows), false));
    }
    return first ? TDM_OK : add_gradients(replica, node, &args);
}

static tdm_status backward_statistics(tdm_replica *replica, int index, const tdm_rows *rows,
                                      const tdm_prepared *prepared, bool first) {
    const tdm_plan_node *node = &replica->plan->nodes[index];
    tdm_kernel_args args;
    backward_args(replica, index, rows, prepared, &args);
    set_gradients(replica, node, rows, first, &args);
    return tdm__plan_widens(replica->plan, node) ? tdm__widened_backward(node, &args, true)
                                                 : node->kernel->statistics(&args);
}

static tdm_status recompute_node(tdm_replica *replica, int index, const tdm_rows *rows, const tdm_prepared *prepared) {
    tdm_kernel_args args;
    backward_args(replica, index, rows, prepared, &args);
    return replica->plan->nodes[index].kernel->recompute(&args);
}

static tdm_status backward_once(tdm_replica *replica, const tdm_plan_step *step, const tdm_rows *rows,
                                const tdm_prepared *prepared, bool first) {
    if (step->kind == TDM_STEP_STATISTICS) return backward_statistics(replica, step->index, rows, prepared, first);
    if (step->kind == TDM_STEP_RECOMPUTE) return recompute_node(replica, step->index, rows, prepared);
    return backward_node(replica, step->index, rows, prepared, first);
}

static tdm_status backward_step(tdm_replica *replica, int step, const tdm_rows *rows, const tdm_prepared *prepared,
                                bool first) {
    const tdm_plan_step *s = &replica->plan->steps[step];
    if (!tdm__repeats(replica)) return backward_once(replica, s, rows, prepared, first);
    for (int64_t i = 0; i < replica->repeats.count; i++) {
        const int64_t start = tdm__steady_ns(replica->host);
        TDM_TRY(backward_once(replica, s, rows, prepared, first));
        TDM_TRY(tdm__repeats_end(replica, step, i, start));
    }
    return TDM_OK;
}

tdm_status tdm__exec_backward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                              const tdm_exec_hooks *hooks, int *step) {
    const tdm_plan *plan = replica->plan;
    tdm_prepared *prepared = NULL;
    replica->micro_batch = micro_batch;
    TDM_TRY(enter(replica));
    if (rows->rows > 0) TDM_TRY(tdm__prepared_find(replica, rows->rows, true, &prepared));
    while (*step < plan->stages[replica->stage].backward_end) {
        const int at = (*step)++;
        const tdm_plan_step *s = &plan->steps[at];
        if (s->kind == TDM_STEP_READY) {
            if (hooks != NULL && hooks->bucket_ready != NULL) TDM_TRY(hooks->bucket_ready(hooks->user, s->index));
        } else if (rows->rows > 0) {
            TDM_TRY(backward_step(replica, at, rows, prepared, micro_batch == 0));
        }
        if (s->kind == TDM_STEP_STATISTICS) break;
    }
    return TDM_OK;
}

/* ---- statistics ---- */

char *tdm__exec_statistics(const tdm_replica *replica, int step, size_t *bytes) {
    const tdm_plan *plan = replica->plan;
    if (step == 0 || plan->steps[step - 1].kind != TDM_STEP_STATISTICS) return NULL;
    const tdm_plan_node *node = &plan->nodes[plan->steps[step - 1].index];
    *bytes = node->statistics_bytes;
    return replica->pass.statistics +
           (step < plan->forward_steps ? node->statistics_forward : node->statistics_backward);
}
