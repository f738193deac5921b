/* single: one replica on one device. Read this one first.
 *
 * A step is: forward, loss, backward, update (`work`). It is submitted: the batch goes to the device, the work is put
 * there; and collected: the loss comes back. Everything else is for two cases. With `accumulate`, the rows go through
 * in several micro-batches whose gradients add up. With several device_ids, the one device plays the replicas of a
 * data-parallel job one after another: each part of the batch on its own, gradients added in replica order, batch-norm
 * statistics kept from part 0 only. So single is to the bit what dp and ddp do with that many devices. */
#include <math.h>
#include "modes/parts.h"
#include "runtime/base/status.h"
#include "runtime/optim/optim.h"

typedef struct single {
    tdm_mode base;
    tdm_replica *replica;
    float *sum;   /* gradients of the parts so far; NULL with one part */
    char *buffer; /* part 0's batch-norm statistics; NULL with one part */
    tdm_pendings pending;
} single;

/* One step, while it is submitted. */
typedef struct single_step {
    single *single;
    const tdm_update *update;
    int parts;
    tdm_rows rows[TDM_LIST_MAX]; /* of each part, where the replica sees them */
} single_step;

static void single_close(tdm_mode *mode) {
    single *s = (single *)mode;
    if (s == NULL) return;
    if (s->replica != NULL) {
        s->replica->device->ops->release(s->replica->device, s->sum);
        s->replica->device->ops->release(s->replica->device, s->buffer);
    }
    tdm__close_replica(s->replica);
    tdm__delete(mode->params.host, s);
}

static tdm_status open_parts(single *s) {
    const tdm_mode_params *params = &s->base.params;
    const tdm_replica_options options = {.state_count = params->state_count, .parts = params->replicas};
    TDM_TRY(tdm__open_replica(params, options, &s->replica));
    s->base.depth = tdm__replica_depth(s->replica);
    if (params->replicas == 1) return TDM_OK;
    tdm_device *device = s->replica->device;
    void *sum = NULL, *buffer = NULL;
    TDM_TRY(device->ops->allocate(device, &sum, params->plan->param_floats * sizeof(float), "summed gradients"));
    s->sum = sum;
    TDM_TRY(device->ops->allocate(device, &buffer, params->plan->buffer_bytes, "kept buffers"));
    s->buffer = buffer;
    return TDM_OK;
}

static tdm_status single_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    single *s = NULL;
    TDM_TRY(tdm__new(params->host, &s, 1, sizeof(*s), "mode"));
    s->base = (tdm_mode){&tdm_mode_single, *params, &s->replica, 1, 1, "here"};
    return tdm__mode_opened(out, &s->base, open_parts(s));
}

/* Forward, loss and backward of one part; its gradient is in the replica's arena afterwards. */
static tdm_status run_part(const single_step *step, int part) {
    single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    int64_t micro = params->job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        tdm_rows rows;
        if (!tdm__micro_batch(params, &step->rows[part], micro, k, &rows)) break;
        TDM_TRY(tdm__pass(params, s->replica, &rows, k == 0, part, NULL));
    }
    return TDM_OK;
}

/* With several parts: what part `part` left in the arenas goes to the sums. */
static tdm_status keep(single *s, int part) {
    const tdm_plan *plan = s->base.params.plan;
    tdm_device *device = s->replica->device;
    if (part == 0) {
        TDM_TRY(device->ops->copy(device, NULL, s->sum, s->replica->grad, plan->param_floats * sizeof(float)));
        return device->ops->copy(device, NULL, s->buffer, s->replica->buffer, plan->buffer_bytes);
    }
    const float *const source[2] = {s->sum, s->replica->grad};
    return device->ops->arenas->sum(device, s->sum, source, 2, plan->param_floats);
}

static tdm_status restore(single *s) {
    const tdm_plan *plan = s->base.params.plan;
    tdm_device *device = s->replica->device;
    TDM_TRY(device->ops->copy(device, NULL, s->replica->grad, s->sum, plan->param_floats * sizeof(float)));
    return device->ops->copy(device, NULL, s->replica->buffer, s->buffer, plan->buffer_bytes);
}

/* The whole step, as work on the device's queue. */
static tdm_status work(void *user) {
    const single_step *step = user;
    single *s = step->single;
    for (int i = 0; i < step->parts; i++) {
        if (step->rows[i].rows == 0) continue;
        TDM_TRY(run_part(step, i));
        if (s->sum != NULL) TDM_TRY(keep(s, i));
    }
    if (s->sum != NULL) TDM_TRY(restore(s));
    TDM_TRY(tdm__optim_step(s->replica, step->update));
    return tdm__replica_lap(s->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status submit(single_step *step, const tdm_batch *batch, tdm_pending *pending) {
    tdm_replica *replica = step->single->replica;
    pending->denominator = tdm__denominator(&step->single->base.params, batch->shard, batch->shard_count);
    tdm_step_values values = tdm__optim_values(step->update, pending->denominator);
    TDM_TRY(tdm__replica_take(replica, batch->shard, step->parts, step->rows));
    TDM_TRY(tdm__replica_begin(replica, &values));
    TDM_TRY(tdm__replica_run(replica, tdm__step_key(batch->shard, step->parts), work, step));
    return tdm__replica_leave(replica);
}

static tdm_status single_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update) {
    single *s = (single *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_FORWARD, TDM_PHASE_LOSS, TDM_PHASE_BACKWARD, TDM_PHASE_OPTIMIZER};
    single_step step = {.single = s, .update = update, .parts = batch->shard_count};
    tdm_status status = submit(&step, batch, tdm__pending_add(&s->pending, batch, update, phases, 4));
    if (status != TDM_OK) tdm__pending_abandon(&s->pending, &s->replica, 1);
    return status;
}

static tdm_status collect(single *s, tdm_step_result *result) {
    const tdm_pending *pending = NULL;
    const tdm_outcome *outcome = NULL;
    TDM_TRY(tdm__pending_take(&s->pending, &pending));
    tdm__result_begin(result, pending);
    TDM_TRY(tdm__replica_settle(s->replica, &result->times, &outcome));
    double total = 0;
    for (int i = 0; i < pending->parts; i++) total += outcome->loss[i]; /* 0 of a part without rows */
    result->loss = total / (double)pending->denominator;
    result->correct = outcome->correct;
    if (pending->clips) result->grad_norm = outcome->grad_norm;
    return TDM_OK;
}

static tdm_status single_collect(tdm_mode *mode, tdm_step_result *result) {
    single *s = (single *)mode;
    tdm_status status = collect(s, result);
    if (status != TDM_OK) tdm__pending_abandon(&s->pending, &s->replica, 1);
    return status;
}

static tdm_status single_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    single *s = (single *)mode;
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "single: one shard at a time, got %d", count);
    return tdm__evaluate(s->replica, &shards[0], &outputs[0]);
}

static tdm_status single_spread(tdm_mode *mode, bool with_state) {
    (void)mode;
    (void)with_state;
    return TDM_OK;
}

const tdm_mode_ops tdm_mode_single = {
    .name = "single",
    .doc = "one replica on one device; plays several in turn when several device_ids are given",
    .open = single_open,
    .submit = single_submit,
    .collect = single_collect,
    .forward = single_forward,
    .spread = single_spread,
    .close = single_close,
};
