/* Binding the plan to a device's memory, and a step's way to the device and back. */
#include "runtime/exec/replica.h"

#include <math.h>
#include <string.h>

#include "runtime/base/env.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/sync.h"
#include "runtime/exec/prepared.h"
#include "runtime/exec/record.h"
#include "runtime/exec/stage.h"

static tdm_status new_arena(tdm_replica *replica, void *out, size_t bytes, const char *what) {
    void *memory = NULL;
    TDM_TRY(replica->device->ops->allocate(replica->device, &memory, bytes, what));
    memcpy(out, &memory, sizeof(memory)); /* any T *: they have one representation on the platforms tandem runs on */
    replica->memory_bytes += bytes;
    return TDM_OK;
}

static tdm_status new_arenas(tdm_replica *replica, const tdm_replica_options *options) {
    const tdm_plan *plan = replica->plan;
    size_t arena = plan->param_floats * sizeof(float);
    TDM_TRY(new_arena(replica, &replica->param, arena, "parameters"));
    replica->grad = options->grad;
    if (options->grad != NULL) {
        replica->memory_bytes += arena;
    } else if (plan->options.training) {
        TDM_TRY(new_arena(replica, &replica->grad, arena, "gradients"));
        replica->owns_grad = true;
    }
    replica->state_count = options->state_count;
    if (options->state_count > 0)
        TDM_TRY(new_arena(replica, &replica->state, arena * (size_t)options->state_count, "optimizer state"));
    if (plan->options.precision == TDM_BF16)
        TDM_TRY(new_arena(replica, &replica->narrow, plan->param_floats * sizeof(uint16_t), "parameters in bf16"));
    TDM_TRY(new_arena(replica, &replica->activation, plan->activation_bytes, "activations"));
    return new_arena(replica, &replica->buffer, plan->buffer_bytes, "buffers");
}

static tdm_status new_flight(tdm_replica *replica, tdm_flight *flight) {
    const tdm_device_ops *ops = replica->device->ops;
    void *memory = NULL;
    flight->host = replica->block;
    if (!ops->discrete) return TDM_OK;
    flight->host = NULL;
    TDM_TRY(ops->allocate_host(replica->device, &memory, sizeof(*flight->host), "step values"));
    flight->host = memory;
    return ops->event_open(replica->device, TDM_WAKES, &flight->done);
}

static void free_flight(tdm_replica *replica, tdm_flight *flight) {
    const tdm_device_ops *ops = replica->device->ops;
    if (!ops->discrete) return;
    if (flight->done != NULL) ops->event_close(replica->device, flight->done);
    ops->release_host(replica->device, flight->host);
}

static tdm_status new_step_memory(tdm_replica *replica) {
    const tdm_device_ops *ops = replica->device->ops;
    const tdm_plan *plan = replica->plan;
    size_t blocks = ops->discrete ? TDM_PLACES : 1;
    TDM_TRY(new_arena(replica, &replica->blocks, blocks * sizeof(*replica->blocks), "step values"));
    replica->block = replica->blocks;
    TDM_TRY(new_arena(replica, &replica->ranges, plan->graph->param_count * sizeof(*replica->ranges), "ranges"));
    for (int i = 0; i < TDM_FLIGHTS; i++) TDM_TRY(new_flight(replica, &replica->flight[i]));
    if (ops->discrete) {
        void *memory = NULL;
        size_t bytes = (size_t)(plan->options.rows * plan->output_width) * sizeof(float);
        TDM_TRY(ops->allocate_host(replica->device, &memory, bytes, "fetched outputs"));
        replica->host_output = memory;
    }
    tdm_flat_range *ranges = NULL;
    TDM_TRY(tdm__new(replica->host, &ranges, plan->graph->param_count, sizeof(*ranges), "ranges"));
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        ranges[i] = (tdm_flat_range){param->offset, (size_t)param->stored};
    }
    tdm_status status =
        ops->copy(replica->device, NULL, replica->ranges, ranges, plan->graph->param_count * sizeof(*ranges));
    if (status == TDM_OK) status = ops->finish(replica->device, NULL);
    tdm__delete(replica->host, ranges);
    return status;
}

static tdm_status new_stage(tdm_replica *replica, const tdm_replica_options *options) {
    if (!replica->device->ops->discrete) return TDM_OK;
    TDM_TRY(tdm__stage_open(&replica->stage, replica, options->rows, options->parts, options->target_bytes));
    replica->memory_bytes += tdm__stage_bytes(replica->stage);
    return TDM_OK;
}

static tdm_status open_all(tdm_replica *replica, const tdm_replica_options *options) {
    TDM_TRY(new_arenas(replica, options));
    TDM_TRY(new_step_memory(replica));
    TDM_TRY(new_stage(replica, options));
    return tdm__prepare_start(replica); /* last: oneDNN does not bear a lack of memory, and shows it by crashing */
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
    const char *graphs = tdm__env(TDM_ENV_CUDA_GRAPHS);
    replica->captures = device->ops->capture_begin != NULL && (graphs == NULL || strcmp(graphs, "0") != 0);
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
    (void)ops->finish(device, NULL); /* nothing may still use what is released; a failure was told before */
    tdm__prepared_free_all(replica);
    tdm__records_free(replica);
    ops->release(device, replica->param);
    if (replica->owns_grad) ops->release(device, replica->grad);
    ops->release(device, replica->state);
    ops->release(device, replica->narrow);
    ops->release(device, replica->activation);
    ops->release(device, replica->buffer);
    tdm__stage_close(replica->stage, replica);
    for (int i = 0; i < TDM_FLIGHTS; i++) free_flight(replica, &replica->flight[i]);
    ops->release_host(device, replica->host_output);
    ops->release(device, replica->blocks);
    ops->release(device, replica->ranges);
    for (int i = 0; i < TDM_ARENA_COUNT; i++) tdm__delete_pages(replica->host, replica->mirror[i]);
    tdm__delete(replica->host, replica);
}

/* ---- a step ---- */

/* Stamps between phases cost a graph nodes, so not every step has them; which do is decided by the step's number alone,
 * because all ranks must capture the same. Steps that are timed never follow each other: the stamps of one are read
 * when the next is under way. */
enum { TIMED_EVERY = 8 };

static bool is_timed(const tdm_replica *replica, uint64_t step) {
    if (!replica->device->ops->discrete || replica->timed_at == 0) return true;
    return step % TIMED_EVERY == 1 && step > replica->timed_at + 1;
}

tdm_status tdm__replica_begin(tdm_replica *replica, const tdm_step_values *values) {
    tdm_flight *flight = &replica->flight[replica->begun++ % TDM_FLIGHTS];
    *flight->host = (tdm_step_block){.values = *values};
    flight->record = replica->record = NULL;
    flight->paused = false;
    replica->timed = is_timed(replica, values->step);
    if (replica->timed) replica->timed_at = values->step;
    if (replica->stage == NULL) return TDM_OK;
    replica->block = &replica->blocks[tdm__stage_place(replica->stage)];
    return tdm__stage_begin(replica->stage, replica, flight);
}

static tdm_flight *latest(tdm_replica *replica) {
    return &replica->flight[(replica->begun - 1) % TDM_FLIGHTS];
}

tdm_status tdm__replica_leave(tdm_replica *replica) {
    tdm_flight *flight = latest(replica);
    flight->record = replica->timed ? replica->record : NULL;
    return replica->stage != NULL ? tdm__stage_leave(replica->stage, replica, flight) : TDM_OK;
}

tdm_device_event *tdm__replica_awaited(const tdm_replica *replica) {
    return replica->flight[replica->settled % TDM_FLIGHTS].done;
}

tdm_status tdm__replica_settle(tdm_replica *replica, tdm_times *times, const tdm_outcome **outcome) {
    tdm_device *device = replica->device;
    const tdm_flight *flight = &replica->flight[replica->settled % TDM_FLIGHTS];
    *outcome = &flight->host->outcome;
    if (replica->settled == replica->begun) TDM_FAIL(TDM_E_INTERNAL, "exec: no step is under way");
    replica->settled++;
    if (device->ops->discrete) TDM_TRY(device->ops->event_finish(device, flight->done));
    if (flight->record != NULL) TDM_TRY(tdm__record_sample(replica, flight->record, flight->paused));
    for (int i = 0; i < TDM_PHASE_COUNT; i++) times->ms[i] += replica->sample.ms[i]; /* NaN stays what it is */
    return TDM_OK;
}

tdm_status tdm__replica_pause(tdm_replica *replica) {
    TDM_TRY(replica->device->ops->finish(replica->device, NULL));
    if (!replica->timed) return TDM_OK;
    TDM_TRY(tdm__record_sample(replica, replica->record, latest(replica)->paused));
    latest(replica)->paused = true;
    return TDM_OK;
}

void tdm__replica_abandon(tdm_replica *replica) {
    replica->settled = replica->begun;
}
