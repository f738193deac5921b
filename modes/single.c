/* single: one replica on one device. Read this mode first.
 *
 * A step is forward, loss, backward and update (`work`). Submitting it sends the batch to the device and queues the
 * work there; collecting it waits for the loss. A program that owns the loop may have backward and update wait for calls
 * of their own (`extent`). Three more cases:
 *
 *   accumulate           the rows go through the model in micro-batches whose gradients add up
 *   stages               the replica has a device for each stage; its micro-batches are in several of them at once
 *                        (pipeline.h)
 *   several device_ids   the device computes the parts of a data-parallel job one after another. Gradients are added
 *                        as the canonical tree, and the running statistics of part 0 are kept. So single gives the
 *                        bits of dp and ddp on that many devices. With sync_batchnorm the parts go in stretches
 *                        (single_stretches.c)
 */
#include <math.h>
#include <string.h>

#include "modes/compress/compress.h"
#include "modes/single.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/optim/optim.h"

static tdm_status open_kept(single *s) {
    const tdm_plan *plan = s->base.params.plan;
    TDM_TRY(tdm__new(s->base.params.host, &s->kept, (size_t)plan->stage_count, sizeof(*s->kept), "kept parts"));
    for (int k = 0; k < plan->stage_count; k++) {
        tdm_replica *stage = s->replica->stages[k];
        const size_t bytes = tdm__replica_trained(stage) * sizeof(float);
        for (int i = 0; i < tdm__tree_room(s->base.params.replicas); i++)
            TDM_TRY(tdm__device_new(stage->device, &s->kept[k].sum[i], bytes, "summed gradients"));
        TDM_TRY(tdm__device_new(stage->device, &s->kept[k].buffer, plan->stages[k].buffer_bytes, "kept buffers"));
    }
    return TDM_OK;
}

static size_t single_compression_memory(const tdm_plan *plan, const tdm_job *job, int replicas, int stage) {
    return (size_t)replicas * tdm__powersgd_here_bytes(plan, job, replicas, stage);
}

static tdm_status open_powersgd(single *s) {
    const tdm_mode_params *params = &s->base.params;
    TDM_TRY(tdm__powersgd_open_here(&s->base.powersgd, params, true));
    if (s->base.powersgd == NULL) return TDM_OK;
    tdm__replica_set_captures(s->replica, TDM_CAPTURES_NEVER);
    for (int k = 0; k < params->plan->stage_count; k++)
        tdm__replica_lend(s->replica->stages[k],
                          single_compression_memory(params->plan, params->job, params->replicas, k));
    return TDM_OK;
}

static tdm_status single_open(tdm_mode *mode) {
    single *s = (single *)mode;
    const tdm_mode_params *params = &mode->params;
    const tdm_replica_options options = {.state_count = params->state_count, .parts = params->replicas};
    TDM_TRY(tdm__open_replica(params, options, &s->replica));
    mode->replica = &s->replica;
    mode->replica_count = 1;
    TDM_TRY(tdm__pipeline_open(&s->pipeline, params, s->replica, params->replicas));
    mode->depth = tdm__pipeline_depth(s->pipeline);
    mode->phases = tdm__pipeline_phases(s->pipeline);
    if (params->replicas == 1) return TDM_OK;
    mode->in_turn = "parallel.mode: single with several device_ids computes their parts in turn, each to its gradients";
    TDM_TRY(open_powersgd(s));
    return params->plan->statistics_bytes > 0 ? tdm__single_open_stretches(s) : open_kept(s);
}

static void single_close(tdm_mode *mode) {
    single *s = (single *)mode;
    if (s->replica == NULL) return;
    tdm__pipeline_close(s->pipeline);
    tdm__single_close_stretches(s);
    tdm__powersgd_close(s->base.powersgd);
    for (int k = 0; s->kept != NULL && k < mode->params.plan->stage_count; k++) {
        tdm_device *device = s->replica->stages[k]->device;
        for (int i = 0; i < TDM_TREE_ROOM; i++) device->ops->release(device, s->kept[k].sum[i]);
        device->ops->release(device, s->kept[k].buffer);
    }
    tdm__delete(mode->params.host, s->kept);
    tdm__close_replica(s->replica);
}

/* Adds this part's gradients to the sums of subtrees that they complete, and keeps the result where the last of these
 * was. The last part's go to the replica's own gradients. */
static tdm_status add_gradients(const tdm_replica *stage, single_kept *to, int part, int parts) {
    tdm_device *device = stage->device;
    const size_t floats = tdm__replica_trained(stage);
    const bool last = part + 1 == parts;
    const int joins = tdm__tree_joins(part, parts);
    for (int i = 1; i <= joins; i++) {
        float *left = to->sum[--to->sums];
        const float *const source[2] = {left, stage->arena.grad};
        TDM_TRY(device->ops->arenas->sum(device, i < joins || last ? stage->arena.grad : left, source, 2, floats));
    }
    if (last) return TDM_OK;
    float *kept = to->sum[to->sums++];
    return joins > 0 ? TDM_OK
                     : device->ops->queues->copy(device, NULL, kept, stage->arena.grad, floats * sizeof(float));
}

static tdm_status keep_statistics(const tdm_replica *stage, single_kept *to) {
    tdm_device *device = stage->device;
    const size_t bytes = stage->plan->stages[stage->stage].buffer_bytes;
    return device->ops->queues->copy(device, NULL, to->buffer, stage->arena.buffer, bytes);
}

/* With several parts: adds this part's gradients; keeps part 0's statistics. */
static tdm_status add_part(const single_step *step, int part, int parts) {
    single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    const tdm_dtype type = tdm__compressed_type(params->job, params->replicas);
    for (int k = 0; s->kept != NULL && k < params->plan->stage_count; k++) {
        const tdm_replica *stage = s->replica->stages[k];
        if (part == 0) TDM_TRY(keep_statistics(stage, &s->kept[k]));
        if (step->approximates) continue;
        TDM_TRY(tdm__compress_round(stage, type, stage->arena.grad, tdm__replica_trained(stage)));
        TDM_TRY(add_gradients(stage, &s->kept[k], part, parts));
    }
    return step->approximates ? tdm__powersgd_take(s->base.powersgd, part, s->replica) : TDM_OK;
}

static tdm_status use_sum(const tdm_replica *stage, const single_kept *from, tdm_dtype type) {
    tdm_device *device = stage->device;
    TDM_TRY(tdm__compress_round(stage, type, stage->arena.grad, tdm__replica_trained(stage)));
    return device->ops->queues->copy(device, NULL, stage->arena.buffer, from->buffer,
                                     stage->plan->stages[stage->stage].buffer_bytes);
}

static tdm_status run_parts(const single_step *step) {
    const tdm_mode_params *of = &step->single->base.params;
    const tdm_dtype type = tdm__compressed_type(of->job, of->replicas);
    single *s = step->single;
    const int stages = s->kept != NULL ? s->base.params.plan->stage_count : 0;
    int parts = 0; /* that have rows: the first ones */
    while (parts < step->parts && step->rows[parts].rows > 0) parts++;
    for (int k = 0; k < stages; k++) s->kept[k].sums = 0;
    for (int i = 0; i < parts; i++) {
        TDM_TRY(tdm__pipeline_pass(s->pipeline, i, 0, NULL));
        TDM_TRY(add_part(step, i, parts));
    }
    for (int i = parts; step->approximates && i < step->parts; i++)
        TDM_TRY(tdm__powersgd_take(s->base.powersgd, i, NULL));
    if (step->approximates) TDM_TRY(tdm__powersgd_sum_in_turn(s->base.powersgd, s->replica));
    for (int k = 0; k < stages; k++) TDM_TRY(use_sum(s->replica->stages[k], &s->kept[k], type));
    return TDM_OK;
}

/* Queues the whole step on the device. */
static tdm_status work(void *user) {
    const single_step *step = user;
    single *s = step->single;
    if (step->update->extent == TDM_TO_LOSS) return tdm__pipeline_forward(s->pipeline, 0, 0, NULL);
    if (step->approximates) tdm__powersgd_begin(s->base.powersgd, step->update->t);
    TDM_TRY(s->part != NULL ? tdm__single_stretches(step) : run_parts(step));
    if (step->update->extent == TDM_TO_GRADIENTS) return TDM_OK;
    TDM_TRY(tdm__pipeline_update(s->pipeline, step->update));
    return tdm__replica_lap(s->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status single_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                                tdm_step_result *result) {
    single *s = (single *)mode;
    single_step step = {.single = s, .update = update, .parts = batch->shard_count};
    step.approximates = tdm__powersgd_is_on(s->base.powersgd, update->t);
    result->denominator = tdm__denominator(&mode->params, batch->shard, batch->shard_count);
    result->bytes_moved = tdm__plan_crossing(mode->params.plan, batch->global_rows);
    tdm_values values = tdm__optim_all_values(update, result->denominator);
    TDM_TRY(tdm__pipeline_begin(s->pipeline, batch->shard, step.parts, &values));
    step.rows = tdm__pipeline_rows(s->pipeline, 0);
    TDM_TRY(tdm__replica_run(s->replica, tdm__step_key(batch, update), work, &step));
    return tdm__pipeline_end(s->pipeline);
}

static void take_losses(const single *s, const tdm_outcome *outcome, tdm_step_result *result) {
    double loss[TDM_REPLICAS_MAX];
    memcpy(loss, outcome->loss, sizeof(loss)); /* a part without rows has 0 */
    result->loss = tdm__tree_sum(loss, s->base.params.replicas) / result->denominator;
    result->correct = outcome->correct;
}

static tdm_status single_collect(tdm_mode *mode, tdm_step_result *result) {
    single *s = (single *)mode;
    const tdm_outcome *outcome = NULL;
    TDM_TRY(tdm__pipeline_wait(s->pipeline, &result->times, &outcome));
    take_losses(s, outcome, result);
    if (!isnan(result->grad_norm)) result->grad_norm = outcome->grad_norm;
    return TDM_OK;
}

static tdm_status forward_alone(void *user) {
    const single *s = user;
    return tdm__pipeline_forward(s->pipeline, s->base.micro_batch, 0, NULL);
}

static tdm_status backward_alone(void *user) {
    const single *s = user;
    return tdm__pipeline_backward(s->pipeline, s->base.micro_batch, s->base.is_last, 0, NULL);
}

static tdm_status run_alone(single *s, tdm_hash128 key, tdm_work alone, const tdm_update *update, double denominator,
                            tdm_times *times, const tdm_outcome **outcome) {
    const tdm_values values = tdm__optim_all_values(update, denominator);
    tdm__times_init(times, s->base.phases);
    TDM_TRY(tdm__pipeline_again(s->pipeline, &values));
    TDM_TRY(tdm__replica_run(s->replica, key, alone, s));
    TDM_TRY(tdm__pipeline_end(s->pipeline));
    return tdm__pipeline_wait(s->pipeline, times, outcome);
}

static tdm_status single_forward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                                 tdm_step_result *result) {
    single *s = (single *)mode;
    const tdm_outcome *outcome = NULL;
    const tdm_hash128 key = tdm__forward_key(batch, mode->micro_batch);
    tdm_times times;
    TDM_TRY(run_alone(s, key, forward_alone, update, result->denominator, &times, &outcome));
    tdm__forward_result(s->replica, &times, result);
    take_losses(s, outcome, result);
    return TDM_OK;
}

static tdm_status single_backward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                                  tdm_step_result *result) {
    single *s = (single *)mode;
    const tdm_outcome *outcome = NULL;
    const tdm_hash128 key = tdm__backward_key(batch, mode->micro_batch);
    tdm_times times;
    TDM_TRY(run_alone(s, key, backward_alone, update, result->denominator, &times, &outcome));
    tdm__backward_result(s->replica, &times, result);
    return TDM_OK;
}

static tdm_status single_update(tdm_mode *mode, const tdm_update *update, tdm_step_result *result) {
    return tdm__pipeline_update_alone(((single *)mode)->pipeline, update, result);
}

static tdm_status single_evaluate(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "single: one shard at a time, got %d", count);
    return tdm__evaluate(((single *)mode)->replica, &shards[0], &outputs[0]);
}

const tdm_mode_ops tdm_mode_single = {
    .name = "single",
    .bytes = sizeof(single),
    .takes_turns = true,
    .compression_memory = single_compression_memory,
    .open = single_open,
    .close = single_close,
    .submit = single_submit,
    .collect = single_collect,
    .forward = single_forward,
    .backward = single_backward,
    .update = single_update,
    .evaluate = single_evaluate,
    .list_state = tdm__powersgd_list,
    .gather_state = tdm__powersgd_gather,
    .share_state = tdm__powersgd_share,
};
