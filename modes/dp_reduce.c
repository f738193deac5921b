/* dp's sum of gradients: by slices on all devices, or on replica 0's. */
#include "modes/dp.h"

#include "modes/compress/compress.h"
#include "runtime/base/status.h"

/* If every device reaches every gradient, each device adds one slice of all of them. */
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
        TDM_TRY(tdm__compress_round(d->replica[index], type, d->replica[i]->arena.grad + first, end - first));
        source[active++] = d->replica[i]->arena.grad + first;
    }
    tdm_device *device = d->replica[index]->device;
    float *sum = d->replica[0]->arena.grad + first;
    if (active > 1) TDM_TRY(device->ops->arenas->sum(device, sum, source, active, end - first));
    TDM_TRY(tdm__compress_round(d->replica[index], type, sum, end - first));
    for (int i = 1; d->updates_all && i < d->count; i++)
        TDM_TRY(device->ops->queues->copy(device, NULL, d->replica[i]->arena.grad + first, sum,
                                          (end - first) * sizeof(float)));
    return TDM_OK;
}

/* If not, they go up the canonical tree: of every two subtrees the first one's device copies the gradients of the other
 * and adds them to its own. Devices of a level work in parallel. */
static tdm_status join_one(void *user, int i) {
    const dp_step *s = user;
    const dp *d = s->dp;
    tdm_replica *replica = d->replica[i];
    tdm_device *device = replica->device;
    const int other = i + s->apart;
    const size_t count = d->base.params.plan->trained_floats;
    /* Gradients are rounded as replicas have them, sums are not. */
    const tdm_dtype type = s->apart == 1 ? tdm__compressed_type(d->base.params.job, d->count) : TDM_DTYPE_F32;
    if (i % (2 * s->apart) != 0 || s->batch->shard[i].rows == 0) return TDM_OK;
    TDM_TRY(tdm__compress_round(replica, type, replica->arena.grad, count));
    if (other >= d->count || s->batch->shard[other].rows == 0) return TDM_OK;
    float *copy = d->peer_gradient[i];
    TDM_TRY(device->ops->queues->copy(device, NULL, copy, d->replica[other]->arena.grad, count * sizeof(float)));
    TDM_TRY(tdm__compress_round(replica, type, copy, count));
    const float *const source[2] = {replica->arena.grad, copy};
    return device->ops->arenas->sum(device, replica->arena.grad, source, 2, count);
}

static tdm_status reduce_on_root(dp_step *s) {
    dp *d = s->dp;
    const tdm_dtype type = tdm__compressed_type(d->base.params.job, d->count);
    for (s->apart = 1; s->apart < d->count; s->apart *= 2) TDM_TRY(tdm__parallel_apply(&d->team, join_one, s));
    TDM_TRY(tdm__compress_round(d->replica[0], type, d->replica[0]->arena.grad, d->base.params.plan->trained_floats));
    return tdm__queues_sync(&d->team);
}

static tdm_status fetch_gradient_one(void *user, int i) {
    const dp *d = ((const dp_step *)user)->dp;
    tdm_device *device = d->replica[i]->device;
    if (i == 0) return TDM_OK;
    return device->ops->queues->copy(device, NULL, d->replica[i]->arena.grad, d->replica[0]->arena.grad,
                                     d->base.params.plan->trained_floats * sizeof(float));
}

/* ---- PowerSGD, with bits of ddp: threads do what ranks do there ---- */

static tdm_status take_one(void *user, int i) {
    const dp_step *s = user;
    return tdm__powersgd_take(s->dp->base.powersgd, i, s->batch->shard[i].rows > 0 ? s->dp->replica[i] : NULL);
}

static tdm_status approximate_one(void *user, int i) {
    tdm__powersgd_approximate(((const dp_step *)user)->dp->base.powersgd, i);
    return TDM_OK;
}

static tdm_status give_one(void *user, int i) {
    const dp *d = ((const dp_step *)user)->dp;
    return tdm__powersgd_give(d->base.powersgd, i, d->replica[i]);
}

static tdm_status approximate_sum(dp_step *s) {
    dp *d = s->dp;
    tdm__powersgd_begin(d->base.powersgd, s->update->t);
    TDM_TRY(tdm__parallel_apply(&d->team, take_one, s));
    tdm__powersgd_sum_p(d->base.powersgd);
    TDM_TRY(tdm__parallel_apply(&d->team, approximate_one, s));
    tdm__powersgd_sum_q(d->base.powersgd);
    return tdm__parallel_apply(&d->team, give_one, s);
}

tdm_status tdm__dp_reduce(dp_step *s) {
    dp *d = s->dp;
    if (d->count == 1) return TDM_OK;
    if (tdm__powersgd_is_on(d->base.powersgd, s->update->t)) return approximate_sum(s);
    if (d->team.reaches) return tdm__parallel_apply(&d->team, reduce_one, s);
    TDM_TRY(reduce_on_root(s));
    return d->updates_all ? tdm__parallel_apply(&d->team, fetch_gradient_one, s) : TDM_OK;
}
