/* Binding the plan to a device's memory. */
#include "runtime/exec/replica.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/prepared.h"
#include "runtime/exec/record.h"
#include "runtime/exec/slots.h"

/* A communicator lends the arena of all stages. */
static tdm_status open_gradients(tdm_replica *replica, float *lent) {
    const size_t bytes = tdm__replica_trained(replica) * sizeof(float);
    if (lent != NULL) {
        replica->arena.grad = lent + replica->plan->stages[replica->stage].trained_at;
        replica->memory_bytes += bytes;
        replica->lent_bytes += bytes;
    } else if (replica->plan->options.training) {
        TDM_TRY(tdm__replica_allocate(replica, bytes, &replica->arena.grad, "gradients"));
        replica->arena.owns_grad = true;
    }
    return TDM_OK;
}

static tdm_status open_activations(tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    const tdm_plan_stage *own = &plan->stages[replica->stage];
    const size_t in_flight = (size_t)own->in_flight, batch = (size_t)plan->options.rows * plan->input_row_bytes;
    if (tdm__plan_converts(plan) && replica->stage == 0)
        TDM_TRY(tdm__replica_allocate(replica, in_flight * batch, &replica->pass.batch_bf16, "the batch in bf16"));
    return tdm__replica_allocate(replica, tdm__stage_activation_bytes(own), &replica->pass.activation, "activations");
}

static tdm_status open_arenas(tdm_replica *replica, const tdm_replica_options *options) {
    const tdm_plan *plan = replica->plan;
    const size_t floats = tdm__replica_floats(replica), trained = tdm__replica_trained(replica) * sizeof(float);
    replica->borrowed.weights = options->weights;
    if (replica->borrowed.weights != NULL) return open_activations(replica);
    TDM_TRY(tdm__replica_allocate(replica, floats * sizeof(float), &replica->arena.param, "parameters"));
    TDM_TRY(open_gradients(replica, options->grad));
    replica->arena.state_count = options->state_count;
    if (options->state_count > 0)
        TDM_TRY(tdm__replica_allocate(replica, trained * (size_t)options->state_count, &replica->arena.state,
                                      "optimizer state"));
    if (options->averages)
        TDM_TRY(tdm__replica_allocate(replica, floats * sizeof(float), &replica->arena.average,
                                      "average of the parameters"));
    if (plan->options.precision == TDM_BF16)
        TDM_TRY(tdm__replica_allocate(replica, floats * sizeof(uint16_t), &replica->arena.param_bf16,
                                      "parameters in bf16"));
    if (plan->statistics_bytes > 0)
        TDM_TRY(tdm__replica_allocate(replica, plan->statistics_bytes, &replica->pass.statistics, "statistics"));
    TDM_TRY(open_activations(replica));
    return tdm__replica_allocate(replica, plan->stages[replica->stage].buffer_bytes, &replica->arena.buffer, "buffers");
}

/* Norms are taken where the gradients are, and the ranges are read there. */
static tdm_status open_ranges(tdm_replica *replica, bool takes_norms) {
    const tdm_plan *plan = replica->plan;
    tdm_device *device = replica->device;
    const size_t count = (size_t)plan->stages[replica->stage].trained_count;
    tdm_flat_range *ranges = NULL;
    TDM_TRY(tdm__replica_allocate(replica, count * sizeof(*ranges), &replica->norms.ranges, "ranges"));
    TDM_TRY(tdm__new(replica->host, &ranges, count, sizeof(*ranges), "ranges"));
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        if (plan->frozen[i] || plan->nodes[param->node].stage != replica->stage) continue;
        ranges[replica->norms.range_count++] =
            (tdm_flat_range){tdm__replica_floats_at(replica, param->offset), (size_t)param->stored};
    }
    tdm_status status = device->ops->queues->copy(device, NULL, replica->norms.ranges, ranges, count * sizeof(*ranges));
    if (status == TDM_OK) status = device->ops->queues->finish(device, NULL);
    tdm__delete(replica->host, ranges);
    if (status == TDM_OK && takes_norms)
        status = tdm__replica_allocate(replica, 2 * (size_t)replica->norms.range_count * sizeof(float),
                                       &replica->norms.each, "norms of parameters");
    if (status != TDM_OK || plan->stage_count == 1) return status;
    return tdm__replica_allocate(replica, (size_t)replica->norms.range_count * sizeof(float), &replica->norms.gradient,
                                 "norms");
}

const tdm_numbers *tdm__loss_weight(const tdm_job *job) {
    static const tdm_numbers none = {0, NULL};
    const char *const *key = tdm_builtin_losses[job->loss.type]->keys;
    for (; *key != NULL; key++) {
        if (strcmp(*key, "weight") == 0) return &job->loss.weight;
        if (strcmp(*key, "pos_weight") == 0) return &job->loss.pos_weight;
    }
    return &none;
}

/* The last stage computes the loss. */
static tdm_status open_loss_weight(tdm_replica *replica, const tdm_numbers *weight) {
    const tdm_plan *plan = replica->plan;
    const tdm_queue_ops *queues = replica->device->ops->queues;
    if (weight == NULL || weight->count == 0 || !plan->options.training || tdm__replica_in_host(replica)) return TDM_OK;
    if (replica->stage + 1 < plan->stage_count) return TDM_OK;
    const size_t bytes = (size_t)weight->count * sizeof(*weight->item);
    TDM_TRY(tdm__replica_allocate(replica, bytes, &replica->loss_weight, "weights of the loss"));
    TDM_TRY(queues->copy(replica->device, NULL, replica->loss_weight, weight->item, bytes));
    return queues->finish(replica->device, NULL);
}

static tdm_status open_stages(tdm_replica *replica, const tdm_replica_options *options) {
    replica->stage = options->stage;
    if (options->first == NULL)
        TDM_TRY(tdm__new(replica->host, &replica->stages, (size_t)replica->plan->stage_count, sizeof(tdm_replica *),
                         "stages"));
    else
        replica->stages = options->first->stages;
    replica->stages[replica->stage] = replica;
    return TDM_OK;
}

static tdm_status open_all(tdm_replica *replica, const tdm_replica_options *options) {
    TDM_TRY(open_stages(replica, options));
    TDM_TRY(open_arenas(replica, options));
    TDM_TRY(open_ranges(replica, options->takes_norms));
    TDM_TRY(open_loss_weight(replica, options->loss_weight));
    TDM_TRY(tdm__mirror_open(replica));
    TDM_TRY(tdm__recorder_open(replica, options->untimed));
    TDM_TRY(tdm__slots_open(replica, options));
    return tdm__prepare_start(replica); /* last: oneDNN crashes where memory runs out */
}

tdm_status tdm__replica_open(tdm_replica **out, const tdm_host *host, const tdm_plan *plan, tdm_device *device,
                             const tdm_replica_options *options) {
    *out = NULL;
    tdm_replica *replica = NULL;
    TDM_TRY(tdm__new(host, &replica, 1, sizeof(*replica), "replica"));
    replica->plan = plan;
    replica->host = host;
    replica->device = device;
    replica->index = options->index;
    replica->seed = options->seed;
    tdm_status status = open_all(replica, options);
    if (status != TDM_OK) {
        tdm_error error;
        tdm__error_save(&error);
        tdm__replica_close(replica);
        return tdm__error_restore(&error, NULL);
    }
    *out = replica;
    return TDM_OK;
}

void tdm__replica_close(tdm_replica *replica) {
    if (replica == NULL) return;
    tdm_device *device = replica->device;
    const tdm_device_ops *ops = device->ops;
    (void)ops->queues->finish(device, NULL); /* nothing may still use what is released; a failure was reported before */
    tdm__prepared_free_all(replica);
    tdm__slots_close(replica);
    tdm__recorder_close(replica);
    tdm__mirror_close(replica);
    tdm__delete(replica->host, replica->repeats.ms);
    ops->release(device, replica->arena.param);
    if (replica->arena.owns_grad) ops->release(device, replica->arena.grad);
    ops->release(device, replica->arena.state);
    ops->release(device, replica->arena.average);
    ops->release(device, replica->arena.param_bf16);
    ops->release(device, replica->pass.batch_bf16);
    ops->release(device, replica->pass.activation);
    ops->release(device, replica->pass.statistics);
    ops->release(device, replica->arena.buffer);
    ops->release(device, replica->norms.ranges);
    ops->release(device, replica->norms.gradient);
    ops->release(device, replica->norms.each);
    ops->release(device, replica->loss_weight);
    if (replica->stage == 0)
        tdm__delete(replica->host, replica->stages);
    else
        replica->stages[replica->stage] = NULL;
    tdm__delete(replica->host, replica);
}
