/* The exponential moving average of the parameters: torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn. The
 * first update copies the parameters, each later one moves the average towards them with torch.lerp, on the device and
 * within the step. Only the first replica of all has it: every mode syncs the others from that one anyway. */
#include <math.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

float tdm__average_weight(const tdm_train_section *train, int64_t updates) {
    if (isnan(train->ema_decay) || updates % train->ema_every != 0) return 0;
    int64_t before = updates / train->ema_every - 1;
    if (before == 0) return 1;
    double decay = train->ema_decay, limit = (double)(1 + before) / (double)(10 + before);
    if (train->ema_warmup && limit < decay) decay = limit;
    return (float)(1.0 - decay);
}

static tdm_status copy(tdm_replica *replica, float *to, const float *from, size_t count) {
    tdm_device *device = replica->device;
    return device->ops->queues->copy(device, NULL, to, from, count * sizeof(*to));
}

tdm_status tdm__average_begin(tdm_run *run) {
    tdm_replica *first = run->mode->replica[0];
    for (int k = 0; first->arena.average != NULL && k < run->plan->stage_count; k++) {
        tdm_replica *stage = first->stages[k];
        TDM_TRY(copy(stage, stage->arena.average, stage->arena.param, tdm__replica_floats(stage)));
        TDM_TRY(stage->device->ops->queues->finish(stage->device, NULL));
    }
    return TDM_OK;
}

/* Swaps by way of the memory for activations, which hold nothing before and after an evaluation; not by that for
 * gradients, which may still wait for their update. */
static tdm_status swap(tdm_replica *stage) {
    const size_t count = tdm__replica_floats(stage);
    const size_t room = tdm__stage_activation_bytes(&stage->plan->stages[stage->stage]) / sizeof(float);
    float *by = (float *)(void *)stage->pass.activation;
    if (tdm__replica_trained(stage) == 0) return TDM_OK; /* both are the same */
    if (room == 0) TDM_FAIL(TDM_E_INTERNAL, "a stage that trains has no activations");
    for (size_t at = 0; at < count; at += room) {
        const size_t part = count - at < room ? count - at : room;
        TDM_TRY(copy(stage, by, stage->arena.param + at, part));
        TDM_TRY(copy(stage, stage->arena.param + at, stage->arena.average + at, part));
        TDM_TRY(copy(stage, stage->arena.average + at, by, part));
    }
    TDM_TRY(tdm__replica_params_changed(stage));
    return stage->device->ops->queues->finish(stage->device, NULL);
}

tdm_status tdm__average_swap(tdm_run *run) {
    const tdm_replica *first = run->mode->replica[0];
    for (int k = 0; first->arena.average != NULL && k < run->plan->stage_count; k++) TDM_TRY(swap(first->stages[k]));
    return TDM_OK;
}

const tdm_tensor_file *tdm__run_weights_of(const tdm_run *run, const tdm_ckpt *ckpt) {
    bool averages = run->options.predicts && run->job->eval.weights == TDM_WEIGHTS_EMA;
    const tdm_tensor_file *average = averages ? tdm__ckpt_average(ckpt) : NULL;
    return average != NULL ? average : tdm__ckpt_model(ckpt);
}
