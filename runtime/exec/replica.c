/* Binding the plan to a device's memory. */
#include "runtime/exec/replica.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/prepared.h"
#include "runtime/exec/record.h"
#include "runtime/exec/slots.h"

static tdm_status open_arenas(tdm_replica *replica, const tdm_replica_options *options) {
    const tdm_plan *plan = replica->plan;
    const size_t arena = plan->trained_floats * sizeof(float);
    TDM_TRY(tdm__replica_allocate(replica, plan->param_floats * sizeof(float), &replica->param, "parameters"));
    replica->grad = options->grad;
    if (options->grad != NULL) {
        replica->memory_bytes += arena;
    } else if (plan->options.training) {
        TDM_TRY(tdm__replica_allocate(replica, arena, &replica->grad, "gradients"));
        replica->owns_grad = true;
    }
    replica->state_count = options->state_count;
    if (options->state_count > 0)
        TDM_TRY(
            tdm__replica_allocate(replica, arena * (size_t)options->state_count, &replica->state, "optimizer state"));
    if (options->averages)
        TDM_TRY(tdm__replica_allocate(replica, plan->param_floats * sizeof(float), &replica->average,
                                      "average of the parameters"));
    if (plan->options.precision == TDM_BF16)
        TDM_TRY(tdm__replica_allocate(replica, plan->param_floats * sizeof(uint16_t), &replica->param_bf16,
                                      "parameters in bf16"));
    if (tdm__plan_converts(replica->plan))
        TDM_TRY(tdm__replica_allocate(replica, (size_t)plan->options.rows * plan->input_row_bytes, &replica->batch_bf16,
                                      "the batch in bf16"));
    if (plan->statistics_bytes > 0)
        TDM_TRY(tdm__replica_allocate(replica, plan->statistics_bytes, &replica->statistics, "statistics"));
    TDM_TRY(tdm__replica_allocate(replica, plan->activation_bytes, &replica->activation, "activations"));
    return tdm__replica_allocate(replica, plan->buffer_bytes, &replica->buffer, "buffers");
}

/* Clipping by norm reads the ranges where the gradients are. */
static tdm_status open_ranges(tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    tdm_device *device = replica->device;
    const size_t count = (size_t)plan->trained_count;
    tdm_flat_range *ranges = NULL;
    TDM_TRY(tdm__replica_allocate(replica, count * sizeof(*ranges), &replica->ranges, "ranges"));
    TDM_TRY(tdm__new(replica->host, &ranges, count, sizeof(*ranges), "ranges"));
    for (size_t i = 0, next = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        if (!plan->frozen[i]) ranges[next++] = (tdm_flat_range){param->offset, (size_t)param->stored};
    }
    tdm_status status = device->ops->queues->copy(device, NULL, replica->ranges, ranges, count * sizeof(*ranges));
    if (status == TDM_OK) status = device->ops->queues->finish(device, NULL);
    tdm__delete(replica->host, ranges);
    return status;
}

static tdm_status open_all(tdm_replica *replica, const tdm_replica_options *options) {
    TDM_TRY(open_arenas(replica, options));
    TDM_TRY(open_ranges(replica));
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
    ops->release(device, replica->param);
    if (replica->owns_grad) ops->release(device, replica->grad);
    ops->release(device, replica->state);
    ops->release(device, replica->average);
    ops->release(device, replica->param_bf16);
    ops->release(device, replica->batch_bf16);
    ops->release(device, replica->activation);
    ops->release(device, replica->statistics);
    ops->release(device, replica->buffer);
    ops->release(device, replica->ranges);
    tdm__delete(replica->host, replica);
}
