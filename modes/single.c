/* single: one replica on one device. Read this mode first.
 *
 * A step is forward, loss, backward and update (`work`). Submitting it sends the batch to the device and queues the
 * work there; collecting it waits for the loss. Two more cases:
 *
 *   accumulate           the rows go through the model in micro-batches whose gradients add up
 *   several device_ids   the device computes the parts of a data-parallel job one after another. Gradients are added in
 *                        replica order, and the batch-norm statistics of part 0 are kept. So single gives the bits of
 *                        dp and ddp on that many devices. With sync_batchnorm the parts go in phases:
 *                        single_phases.c. */
#include <math.h>

#include "modes/single.h"
#include "runtime/base/status.h"
#include "runtime/optim/optim.h"

static tdm_status single_open(tdm_mode *mode) {
    single *s = (single *)mode;
    const tdm_mode_params *params = &mode->params;
    const tdm_replica_options options = {.state_count = params->state_count, .parts = params->replicas};
    TDM_TRY(tdm__open_replica(params, options, &s->replica));
    mode->replica = &s->replica;
    mode->replica_count = 1;
    mode->depth = tdm__replica_depth(s->replica);
    mode->phases =
        1u << TDM_PHASE_FORWARD | 1u << TDM_PHASE_LOSS | 1u << TDM_PHASE_BACKWARD | 1u << TDM_PHASE_OPTIMIZER;
    if (params->replicas == 1) return TDM_OK;
    if (params->plan->statistics_bytes > 0) return tdm__single_open_phases(s);
    tdm_device *device = s->replica->device;
    void *sum = NULL, *buffer = NULL;
    TDM_TRY(device->ops->allocate(device, &sum, params->plan->trained_floats * sizeof(float), "summed gradients"));
    s->sum = sum;
    TDM_TRY(device->ops->allocate(device, &buffer, params->plan->buffer_bytes, "kept buffers"));
    s->buffer = buffer;
    return TDM_OK;
}

static void single_close(tdm_mode *mode) {
    single *s = (single *)mode;
    if (s->replica == NULL) return;
    tdm__single_close_phases(s);
    s->replica->device->ops->release(s->replica->device, s->sum);
    s->replica->device->ops->release(s->replica->device, s->buffer);
    tdm__close_replica(s->replica);
}

/* Forward, loss and backward of one part; its gradient is in the replica's arena afterwards. */
static tdm_status run_part(const single_step *step, int part) {
    single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    int64_t micro = params->job->train.accumulate;
    tdm_rows rows;
    for (int64_t k = 0; tdm__micro_batch(params, &step->rows[part], micro, k, &rows); k++)
        TDM_TRY(tdm__pass(params, s->replica, &rows, k == 0, part, NULL));
    return TDM_OK;
}

/* With several parts: adds this part's gradients to the sum; keeps part 0's statistics. */
static tdm_status add_part(single *s, int part) {
    const tdm_plan *plan = s->base.params.plan;
    tdm_device *device = s->replica->device;
    if (part == 0) {
        TDM_TRY(
            device->ops->queues->copy(device, NULL, s->sum, s->replica->grad, plan->trained_floats * sizeof(float)));
        return device->ops->queues->copy(device, NULL, s->buffer, s->replica->buffer, plan->buffer_bytes);
    }
    const float *const source[2] = {s->sum, s->replica->grad};
    return device->ops->arenas->sum(device, s->sum, source, 2, plan->trained_floats);
}

static tdm_status use_sum(single *s) {
    const tdm_plan *plan = s->base.params.plan;
    tdm_device *device = s->replica->device;
    TDM_TRY(device->ops->queues->copy(device, NULL, s->replica->grad, s->sum, plan->trained_floats * sizeof(float)));
    return device->ops->queues->copy(device, NULL, s->replica->buffer, s->buffer, plan->buffer_bytes);
}

static tdm_status run_parts(const single_step *step) {
    single *s = step->single;
    for (int i = 0; i < step->parts; i++) {
        if (step->rows[i].rows == 0) continue;
        TDM_TRY(run_part(step, i));
        if (s->sum != NULL) TDM_TRY(add_part(s, i));
    }
    return s->sum != NULL ? use_sum(s) : TDM_OK;
}

/* Queues the whole step on the device. */
static tdm_status work(void *user) {
    const single_step *step = user;
    single *s = step->single;
    TDM_TRY(s->part != NULL ? tdm__single_phases(step) : run_parts(step));
    TDM_TRY(tdm__optim_step(s->replica, step->update));
    return tdm__replica_lap(s->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status single_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                                tdm_step_result *result) {
    single_step step; /* not zeroed: it is large, and tdm__replica_take fills in the rows */
    step.single = (single *)mode;
    step.update = update;
    step.parts = batch->shard_count;
    tdm_replica *replica = step.single->replica;
    result->denominator = tdm__denominator(&mode->params, batch->shard, batch->shard_count);
    tdm_values values = tdm__optim_all_values(update, result->denominator);
    TDM_TRY(tdm__replica_take(replica, batch->shard, step.parts, step.rows));
    TDM_TRY(tdm__replica_begin(replica, &values));
    TDM_TRY(tdm__replica_run(replica, tdm__step_key(batch->shard, step.parts), work, &step));
    return tdm__replica_end(replica);
}

static tdm_status single_collect(tdm_mode *mode, tdm_step_result *result) {
    single *s = (single *)mode;
    const tdm_outcome *outcome = NULL;
    double total = 0;
    TDM_TRY(tdm__replica_wait(s->replica, &result->times, &outcome));
    for (int i = 0; i < mode->params.replicas; i++) total += outcome->loss[i]; /* a part without rows has 0 */
    result->loss = total / (double)result->denominator;
    result->correct = outcome->correct;
    if (!isnan(result->grad_norm)) result->grad_norm = outcome->grad_norm;
    return TDM_OK;
}

static tdm_status single_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "single: one shard at a time, got %d", count);
    return tdm__evaluate(((single *)mode)->replica, &shards[0], &outputs[0]);
}

const tdm_mode_ops tdm_mode_single = {
    .name = "single",
    .bytes = sizeof(single),
    .takes_turns = true,
    .open = single_open,
    .close = single_close,
    .submit = single_submit,
    .collect = single_collect,
    .forward = single_forward,
};
