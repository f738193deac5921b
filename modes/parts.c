#include "modes/parts.h"

#include <math.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

const char *const tdm__phase_names[TDM_PHASE_COUNT] = {
    "data",     "scatter", "replicate",    "forward",   "gather", "loss",
    "backward", "comm",    "comm_exposed", "optimizer", "step",
};

double tdm__lap(int64_t *last) {
    int64_t now = tdm__now_ns();
    double ms = (double)(now - *last) * 1e-6;
    *last = now;
    return ms;
}

void tdm__times_init(tdm_times *times, const tdm_phase *phases, int count) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) times->ms[i] = NAN;
    for (int i = 0; i < count; i++) times->ms[phases[i]] = 0;
}

static const void *target_at(const tdm_mode_params *params, const void *target, int64_t row) {
    if (params->loss->target == TDM_TARGET_CLASS) return (const int64_t *)target + row;
    return (const float *)target + row * params->plan->output_width;
}

tdm_rows tdm__some_rows(const tdm_mode_params *params, const tdm_rows *rows, int64_t first, int64_t count) {
    int64_t width = tdm__shape_count(&params->plan->graph->values[params->plan->graph->input].shape);
    return (tdm_rows){.rows = count,
                      .x = rows->x + first * width,
                      .target = target_at(params, rows->target, first),
                      .position = rows->position + first};
}

bool tdm__micro_batch(const tdm_mode_params *params, const tdm_shard *shard, int64_t parts, int64_t part,
                      tdm_rows *out) {
    int64_t first = 0;
    int64_t count = tdm__chunk(shard->rows, (int)parts, (int)part, &first);
    if (count == 0) return false;
    tdm_rows all = {.rows = shard->rows, .x = shard->x, .target = shard->target, .position = shard->position};
    *out = tdm__some_rows(params, &all, first, count);
    return true;
}

int64_t tdm__denominator(const tdm_mode_params *params, const tdm_shard *shards, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (shards[i].rows > 0)
            sum += params->loss->denominator(params->loss_attrs, shards[i].rows, params->plan->output_width,
                                             shards[i].target);
    }
    return sum;
}

tdm_status tdm__loss(const tdm_mode_params *params, const float *y, const tdm_rows *rows, float seed, float *dy,
                     double *sum, int64_t *correct) {
    double loss = 0;
    int64_t hits = 0;
    tdm_loss_args args = {.attrs = params->loss_attrs,
                          .rows = rows->rows,
                          .width = params->plan->output_width,
                          .y = y,
                          .target = rows->target,
                          .seed = seed,
                          .dy = dy,
                          .loss_sum = &loss,
                          .correct = &hits};
    TDM_TRY(params->loss->run(&args));
    *sum += loss;
    *correct += hits;
    return TDM_OK;
}

tdm_status tdm__open_replica(const tdm_mode_params *params, int index, int state_count, float *grad,
                             tdm_replica **out) {
    *out = NULL;
    int64_t id = index < params->job->parallel.device_ids.count ? params->job->parallel.device_ids.item[index] : index;
    tdm_device *device = NULL;
    TDM_TRY(params->device->open(&device, params->host, (int)id));
    tdm_replica_options options = {
        .index = index, .state_count = state_count, .grad = grad, .seed = (uint64_t)params->job->seed};
    tdm_status status = tdm__replica_open(out, params->host, params->plan, device, &options);
    if (status != TDM_OK) params->device->close(device);
    return status;
}

void tdm__close_replica(tdm_replica *replica) {
    if (replica == NULL) return;
    tdm_device *device = replica->device;
    tdm__replica_close(replica);
    device->ops->close(device);
}

void tdm__copy_replica(tdm_replica *to, const tdm_replica *from, bool with_state) {
    const tdm_plan *plan = from->plan;
    size_t arena = plan->param_floats * sizeof(float);
    memcpy(to->param, from->param, arena);
    memcpy(to->buffer, from->buffer, plan->buffer_bytes);
    if (with_state && to->state_count > 0) memcpy(to->state, from->state, arena * (size_t)to->state_count);
}
