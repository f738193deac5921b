/* The exponential moving average of the parameters: torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn. The
 * first update copies the parameters, each later one moves the average towards them with torch.lerp, on the device and
 * within the step. Only the first replica of all has it: every mode syncs the others from that one anyway. */
#include <math.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

float tdm__average_weight(const tdm_train_section *train, int64_t t) {
    if (isnan(train->ema_decay) || t % train->ema_every != 0) return 0;
    int64_t updates = t / train->ema_every - 1; /* before this one */
    if (updates == 0) return 1;
    double decay = train->ema_decay, limit = (double)(1 + updates) / (double)(10 + updates);
    if (train->ema_warmup && limit < decay) decay = limit;
    return (float)(1.0 - decay);
}

static tdm_status copy_arena(tdm_replica *replica, void *to, const void *from) {
    tdm_device *device = replica->device;
    return device->ops->queues->copy(device, NULL, to, from, replica->plan->param_floats * sizeof(float));
}

tdm_status tdm__average_begin(tdm_run *run) {
    tdm_replica *first = run->mode->replica[0];
    if (first->average == NULL) return TDM_OK;
    TDM_TRY(copy_arena(first, first->average, first->param));
    return first->device->ops->queues->finish(first->device, NULL);
}

/* Between two steps nothing is in the arena of gradients. */
tdm_status tdm__average_swap(tdm_run *run) {
    tdm_replica *first = run->mode->replica[0];
    if (first->average == NULL) return TDM_OK;
    TDM_TRY(copy_arena(first, first->grad, first->param));
    TDM_TRY(copy_arena(first, first->param, first->average));
    TDM_TRY(copy_arena(first, first->average, first->grad));
    TDM_TRY(tdm__replica_params_changed(first));
    return first->device->ops->queues->finish(first->device, NULL);
}

const tdm_tensor_file *tdm__run_weights_of(const tdm_run *run, const tdm_ckpt *ckpt) {
    bool averages = run->options.predicts && run->job->eval.weights == TDM_WEIGHTS_EMA;
    const tdm_tensor_file *average = averages ? tdm__ckpt_average(ckpt) : NULL;
    return average != NULL ? average : tdm__ckpt_model(ckpt);
}
