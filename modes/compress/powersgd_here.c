/* PowerSGD for all replicas of this process. What ddp sums over ranks is summed here over members, in the same order.
 * On the CPU gradients are read and written where they lie. On other devices they are copied to the host and back, so a
 * step waits for its devices and is not captured. */
#include "modes/common.h"
#include "modes/compress/powersgd.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"

size_t tdm__powersgd_here_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int stage) {
    const tdm_compress_section *settings = &job->parallel.ddp.compress;
    if (replicas == 1 || settings->type != TDM_COMPRESS_POWERSGD || plan->options.ingests) return 0;
    return tdm__powersgd_bytes(plan, settings, stage);
}

tdm_status tdm__powersgd_open_here(tdm_powersgd **out, const tdm_mode_params *params, bool take_turns) {
    const tdm_plan *plan = params->plan;
    const int replicas = params->replicas;
    if (replicas == 1 || params->job->parallel.ddp.compress.type != TDM_COMPRESS_POWERSGD || !plan->options.training)
        return TDM_OK;
    TDM_TRY(tdm__power_new(out, params, replicas));
    for (int i = 0; i < replicas; i++) {
        void *grad = NULL;
        TDM_TRY(tdm__power_open_member(*out, i, NULL));
        if (tdm__device_on_host(params->device) || (take_turns && i > 0)) continue;
        TDM_TRY(tdm__new_pages(params->host, &grad, plan->trained_floats * sizeof(float), "gradients in host memory"));
        (*out)->member[i].grad = grad;
    }
    return TDM_OK;
}

void tdm__powersgd_begin(tdm_powersgd *power, int64_t step) {
    for (int b = 0; b < power->params->plan->bucket_count; b++) tdm__power_draw(power, b, step);
}

/* Memory of the host for gradients, if they are not there themselves. Replicas that take turns share it. */
static float *copy_of(const tdm_powersgd *power, int index) {
    const float *own = power->member[index].grad;
    return own != NULL ? power->member[index].grad : power->member->grad;
}

static float *bucket_at(const tdm_powersgd *power, const tdm_replica *replica, float *copy, int bucket) {
    return copy != NULL ? copy + power->params->plan->buckets[bucket].offset : tdm__replica_bucket(replica, bucket);
}

tdm_status tdm__powersgd_take(tdm_powersgd *power, int index, tdm_replica *replica) {
    float *copy = copy_of(power, index);
    if (copy != NULL && replica != NULL) TDM_TRY(tdm__copy_gradients(replica, copy, true));
    for (int b = 0; b < power->params->plan->bucket_count; b++)
        tdm__power_take(power, &power->member[index], b, replica != NULL ? bucket_at(power, replica, copy, b) : NULL);
    return TDM_OK;
}

static void sum(const tdm_powersgd *power, size_t at, size_t count) {
    const float *source[TDM_REPLICAS_MAX];
    for (int i = 0; i < power->count; i++) source[i] = power->member[i].wire + at;
    tdm_builtin_flat()->sum(power->member->wire + at, source, power->count, count);
}

void tdm__powersgd_sum_p(tdm_powersgd *power) {
    for (int b = 0; b < power->params->plan->bucket_count; b++) {
        sum(power, power->bucket[b].sum, power->bucket[b].sum_count + power->bucket[b].p_count);
        tdm__power_turn(power, b);
    }
}

void tdm__powersgd_approximate(tdm_powersgd *power, int index) {
    for (int b = 0; b < power->params->plan->bucket_count; b++) tdm__power_approximate(power, &power->member[index], b);
}

void tdm__powersgd_sum_q(tdm_powersgd *power) {
    for (int b = 0; b < power->params->plan->bucket_count; b++)
        sum(power, power->bucket[b].q, power->bucket[b].q_count);
    power->is_warm = true;
}

tdm_status tdm__powersgd_give(tdm_powersgd *power, int index, tdm_replica *replica) {
    float *copy = copy_of(power, index);
    for (int b = 0; b < power->params->plan->bucket_count; b++)
        tdm__power_give(power, &power->member[index], b, bucket_at(power, replica, copy, b));
    return copy != NULL ? tdm__copy_gradients(replica, copy, false) : TDM_OK;
}

tdm_status tdm__powersgd_sum_in_turn(tdm_powersgd *power, tdm_replica *replica) {
    tdm__powersgd_sum_p(power);
    for (int i = 0; i < power->count; i++) tdm__powersgd_approximate(power, i);
    tdm__powersgd_sum_q(power);
    for (int i = 0; i < power->count; i++) TDM_TRY(tdm__powersgd_give(power, i, replica));
    return TDM_OK;
}
