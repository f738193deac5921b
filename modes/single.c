/* single: one replica on one device. Read this one first.
 *
 * A step is: forward, loss, backward, update. Everything else is for two cases. With `accumulate`, the rows go through
 * in several micro-batches whose gradients add up. With several device_ids, the one device plays the replicas of a
 * data-parallel job one after another: each part of the batch on its own, gradients added in replica order, batch-norm
 * statistics kept from part 0 only. So single is to the bit what dp and ddp do with that many devices. */
#include <math.h>
#include <string.h>

#include "modes/parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/train/train.h"

typedef struct single {
    tdm_mode base;
    tdm_replica *replica;
    float *sum;   /* gradients of the parts so far; NULL with one part */
    char *buffer; /* part 0's batch-norm statistics; NULL with one part */
} single;

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
    TDM_TRY(tdm__open_replica(params, 0, params->state_count, NULL, &s->replica));
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
    s->base = (tdm_mode){&tdm_mode_single, *params};
    tdm_status status = open_parts(s);
    if (status != TDM_OK) {
        single_close(&s->base);
        return status;
    }
    *out = &s->base;
    return TDM_OK;
}

/* Forward, loss and backward of one part; its gradient is in the replica's arena afterwards. */
static tdm_status run_part(single *s, const tdm_shard *shard, float seed, double *loss, tdm_step_result *result) {
    const tdm_mode_params *params = &s->base.params;
    int64_t micro = params->job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        tdm_rows rows;
        if (!tdm__micro_batch(params, shard, micro, k, &rows)) break;
        int64_t at = tdm__now_ns();
        TDM_TRY(tdm__exec_forward(s->replica, &rows, true));
        result->times.ms[TDM_PHASE_FORWARD] += tdm__lap(&at);
        TDM_TRY(tdm__loss(params, tdm__exec_output(s->replica), &rows, seed, tdm__exec_output_gradient(s->replica),
                          loss, &result->correct));
        result->times.ms[TDM_PHASE_LOSS] += tdm__lap(&at);
        TDM_TRY(tdm__exec_backward(s->replica, &rows, k == 0, NULL));
        result->times.ms[TDM_PHASE_BACKWARD] += tdm__lap(&at);
    }
    return TDM_OK;
}

static tdm_status run_parts(single *s, const tdm_batch *batch, tdm_step_result *result) {
    const tdm_plan *plan = s->base.params.plan;
    int64_t denominator = tdm__denominator(&s->base.params, batch->shard, batch->shard_count);
    float seed = (float)(1.0 / (double)denominator);
    double total = 0;
    for (int i = 0; i < batch->shard_count; i++) {
        if (batch->shard[i].rows == 0) continue;
        double loss = 0;
        TDM_TRY(run_part(s, &batch->shard[i], seed, &loss, result));
        total += loss;
        if (s->sum == NULL) continue;
        if (i == 0) {
            memcpy(s->sum, s->replica->grad, plan->param_floats * sizeof(float));
            memcpy(s->buffer, s->replica->buffer, plan->buffer_bytes);
        } else {
            const float *const source[2] = {s->sum, s->replica->grad};
            s->replica->device->flat->sum(s->sum, source, 2, plan->param_floats);
        }
    }
    if (s->sum != NULL) {
        memcpy(s->replica->grad, s->sum, plan->param_floats * sizeof(float));
        memcpy(s->replica->buffer, s->buffer, plan->buffer_bytes);
    }
    result->loss = total / (double)denominator;
    return TDM_OK;
}

static tdm_status single_step(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                              tdm_step_result *result) {
    single *s = (single *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_FORWARD, TDM_PHASE_LOSS, TDM_PHASE_BACKWARD, TDM_PHASE_OPTIMIZER};
    *result = (tdm_step_result){.rows = batch->global_rows, .grad_norm = NAN, .stop = update->stop};
    tdm__times_init(&result->times, phases, 4);
    s->replica->step = (uint64_t)update->t;
    TDM_TRY(run_parts(s, batch, result));
    int64_t at = tdm__now_ns();
    if (!isnan(update->clip_norm)) result->grad_norm = tdm__clip_grad_norm(s->replica, update->clip_norm);
    tdm__optim_step(s->replica, update);
    result->times.ms[TDM_PHASE_OPTIMIZER] = tdm__lap(&at);
    return TDM_OK;
}

static tdm_status single_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    single *s = (single *)mode;
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "single: one shard at a time, got %d", count);
    tdm_rows rows = {
        .rows = shards[0].rows, .x = shards[0].x, .target = shards[0].target, .position = shards[0].position};
    TDM_TRY(tdm__exec_forward(s->replica, &rows, false));
    outputs[0] = tdm__exec_output(s->replica);
    return TDM_OK;
}

static tdm_status single_spread(tdm_mode *mode, bool with_state) {
    (void)mode;
    (void)with_state;
    return TDM_OK;
}

static tdm_replica *single_replica(tdm_mode *mode, int i) {
    (void)i;
    return ((single *)mode)->replica;
}

static int single_replica_count(const tdm_mode *mode) {
    (void)mode;
    return 1;
}

const tdm_mode_ops tdm_mode_single = {
    .name = "single",
    .doc = "one replica on one device; plays several in turn when several device_ids are given",
    .open = single_open,
    .step = single_step,
    .forward = single_forward,
    .spread = single_spread,
    .replica = single_replica,
    .replica_count = single_replica_count,
    .close = single_close,
};
