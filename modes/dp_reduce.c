/* dp's sum of gradients: by slices on all devices, or on replica 0's. */
#include "modes/dp.h"

#include "modes/compress/compress.h"
#include "runtime/base/status.h"

/* If every device reaches every gradient, each device adds one slice of all of them, in replica order. */
static tdm_status reduce_one(void *user, int index) {
    const dp_step *s = user;
    const dp *d = s->dp;
    size_t total = d->base.params.plan->trained_floats, slice = tdm__plan_floats(total / (size_t)d->count);
    size_t first = slice * (size_t)index, end = first + slice < total ? first + slice : total;
    if (first >= end) return TDM_OK;
    const float *source[TDM_REPLICAS_MAX];
    const tdm_dtype type = tdm__compressed_type(d->base.params.job, d->count);
    int active = 0;
    for (int i = 0; i < d->count; i++) {
        if (s->batch->shard[i].rows == 0) continue;
        TDM_TRY(tdm__compress_round(d->replica[index], type, d->replica[i]->grad + first, end - first));
        source[active++] = d->replica[i]->grad + first;
    }
    tdm_device *device = d->replica[index]->device;
    float *sum = d->replica[0]->grad + first;
    if (active > 1) TDM_TRY(device->ops->arenas->sum(device, sum, source, active, end - first));
    TDM_TRY(tdm__compress_round(d->replica[index], type, sum, end - first));
    for (int i = 1; d->updates_all && i < d->count; i++)
        TDM_TRY(
            device->ops->queues->copy(device, NULL, d->replica[i]->grad + first, sum, (end - first) * sizeof(float)));
    return TDM_OK;
}

/* If not, they are copied to replica 0's device one after another and added there. */
static tdm_status reduce_on_root(const dp_step *s) {
    dp *d = s->dp;
    tdm_replica *root = d->replica[0];
    tdm_device *device = root->device;
    size_t count = d->base.params.plan->trained_floats;
    const tdm_dtype type = tdm__compressed_type(d->base.params.job, d->count);
    TDM_TRY(tdm__compress_round(root, type, root->grad, count));
    for (int i = 1; i < d->count; i++) {
        if (s->batch->shard[i].rows == 0) continue;
        TDM_TRY(device->ops->queues->copy(device, NULL, d->peer_gradient, d->replica[i]->grad, count * sizeof(float)));
        TDM_TRY(tdm__compress_round(root, type, d->peer_gradient, count));
        const float *const source[2] = {root->grad, d->peer_gradient};
        TDM_TRY(device->ops->arenas->sum(device, root->grad, source, 2, count));
    }
    TDM_TRY(tdm__compress_round(root, type, root->grad, count));
    return tdm__queues_sync(&d->team);
}

static tdm_status fetch_gradient_one(void *user, int i) {
    const dp *d = ((const dp_step *)user)->dp;
    tdm_device *device = d->replica[i]->device;
    if (i == 0) return TDM_OK;
    return device->ops->queues->copy(device, NULL, d->replica[i]->grad, d->replica[0]->grad,
                                     d->base.params.plan->trained_floats * sizeof(float));
}

tdm_status tdm__dp_reduce(dp_step *s) {
    dp *d = s->dp;
    if (d->count == 1) return TDM_OK;
    if (d->team.reaches) return tdm__parallel_apply(&d->team, reduce_one, s);
    TDM_TRY(reduce_on_root(s));
    return d->updates_all ? tdm__parallel_apply(&d->team, fetch_gradient_one, s) : TDM_OK;
}
