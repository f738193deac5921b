/* dp with `loss: gathered`: outputs meet on output_device, the loss is computed there over the whole batch, and each
 * replica gets its part of the gradient. */
#include "modes/dp.h"

#include "runtime/base/status.h"

static int output_index(const tdm_job *job) {
    for (int i = 0; i < job->parallel.device_ids.count; i++) {
        if (job->parallel.device_ids.item[i] == job->parallel.dp.output_device) return i;
    }
    return 0;
}

tdm_status tdm__dp_open_gathered(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    d->output_replica = d->replica[output_index(params->job)];
    tdm_device *device = d->output_replica->device;
    int64_t rows = params->plan->options.rows * d->count;
    size_t bytes = tdm__dp_output_bytes(params->plan, rows);
    TDM_TRY(tdm__device_new(device, &d->output, bytes, "gathered outputs"));
    TDM_TRY(tdm__device_new(device, &d->output_gradient, bytes, "gathered gradient"));
    if (d->count == 1 || tdm__replica_in_host(d->output_replica)) return TDM_OK;
    return tdm__device_new(device, &d->target, (size_t)rows * tdm__target_bytes(params->plan), "gathered targets");
}

static tdm_status gather(dp_step *s) {
    dp *d = s->dp;
    const tdm_plan *plan = d->base.params.plan;
    tdm_device *device = d->output_replica->device;
    for (int i = 0; i < d->count; i++) {
        if (s->rows[i].rows == 0) continue;
        TDM_TRY(device->ops->queues->copy(device, NULL, d->output + tdm__dp_output_bytes(plan, s->output_first[i]),
                                          tdm__exec_output(d->replica[i]),
                                          tdm__dp_output_bytes(plan, s->rows[i].rows)));
    }
    return TDM_OK;
}

/* A replica's rows as the loss sees them: with their targets on the output device. */
static tdm_status gather_target(const dp_step *s, int i, tdm_rows *out) {
    dp *d = s->dp;
    *out = s->rows[i];
    if (d->replica[i] == d->output_replica || d->target == NULL) return TDM_OK;
    tdm_device *device = d->output_replica->device;
    size_t bytes = tdm__target_bytes(d->base.params.plan);
    char *to = d->target + (size_t)s->output_first[i] * bytes;
    out->target = to;
    return device->ops->queues->copy(device, NULL, to, s->rows[i].target, (size_t)out->rows * bytes);
}

static tdm_status loss_of_all(dp_step *s) {
    dp *d = s->dp;
    for (int i = 0; i < d->count; i++) {
        size_t at = tdm__dp_output_bytes(d->base.params.plan, s->output_first[i]);
        if (s->rows[i].rows == 0) continue;
        tdm_rows rows;
        TDM_TRY(gather_target(s, i, &rows));
        TDM_TRY(tdm__loss(&d->base.params, d->output_replica, (float *)(void *)(d->output + at), &rows,
                          (float *)(void *)(d->output_gradient + at), i));
    }
    return tdm__queues_sync(&d->team);
}

tdm_status tdm__dp_gathered_forward(dp_step *s) {
    tdm_replica *root = s->dp->replica[0];
    TDM_TRY(tdm__dp_forward(s));
    TDM_TRY(tdm__replica_lap(root, TDM_PHASE_FORWARD));
    TDM_TRY(gather(s));
    TDM_TRY(tdm__replica_lap(root, TDM_PHASE_GATHER));
    TDM_TRY(loss_of_all(s));
    return tdm__replica_lap(root, TDM_PHASE_LOSS);
}
