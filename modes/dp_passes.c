/* dp's forward and backward: all replicas in parallel, in stretches if they exchange statistics. */
#include "modes/dp.h"

#include "runtime/base/status.h"

void tdm__dp_micro_batch(dp_step *s) {
    const dp *d = s->dp;
    const int64_t micro = d->base.params.job->train.accumulate;
    int64_t first = 0;
    for (int i = 0; i < d->count; i++) {
        if (!tdm__micro_batch(&d->base.params, &s->all[i], micro, s->micro_batch, &s->rows[i])) s->rows[i].rows = 0;
        s->output_first[i] = first;
        first += s->rows[i].rows;
    }
    tdm__exchange_mark(s->rows, d->count);
}

/* Copies the blocks of all others to one replica. */
static tdm_status fetch_blocks(dp_step *s, int i, char *to, size_t bytes) {
    dp *d = s->dp;
    tdm_device *device = d->replica[i]->device;
    for (int k = 0; k < d->count; k++) {
        if (k == i || s->rows[k].rows == 0) continue;
        size_t same;
        const char *from = tdm__exec_statistics(d->replica[k], s->plan_step[k], &same);
        TDM_TRY(device->ops->queues->copy(device, NULL, to + bytes * (size_t)k, from + bytes * (size_t)k, bytes));
    }
    return TDM_OK;
}

/* *more: true if the replicas have stopped for this exchange, false if the pass has ended. */
static tdm_status exchange(dp_step *s, bool *more) {
    dp *d = s->dp;
    const int first = tdm__exchange_first(s->rows, d->count);
    size_t bytes = 0;
    *more = first >= 0 && tdm__exec_statistics(d->replica[first], s->plan_step[first], &bytes) != NULL;
    for (int i = 0; *more && i < d->count; i++) {
        if (s->rows[i].rows == 0) continue;
        TDM_TRY(fetch_blocks(s, i, tdm__exec_statistics(d->replica[i], s->plan_step[i], &bytes), bytes));
    }
    return *more ? tdm__queues_sync(&d->team) : TDM_OK;
}

static tdm_status in_stretches(dp_step *s, tdm_replica_fn one, int begin) {
    dp *d = s->dp;
    for (int i = 0; i < d->count; i++) s->plan_step[i] = begin;
    for (bool more = true; more;) {
        TDM_TRY(tdm__parallel_apply(&d->team, one, s));
        TDM_TRY(exchange(s, &more));
    }
    return TDM_OK;
}

static tdm_status forward_one(void *user, int i) {
    dp_step *s = user;
    if (s->rows[i].rows == 0) return TDM_OK;
    return tdm__exec_forward(s->dp->replica[i], &s->rows[i], s->micro_batch, &s->plan_step[i]);
}

tdm_status tdm__dp_forward(dp_step *s) {
    return in_stretches(s, forward_one, s->dp->base.params.plan->stages[0].forward);
}

/* This replica's part of the gathered gradient. */
static tdm_status fetch_gradient(const dp_step *s, int i) {
    const dp *d = s->dp;
    const tdm_plan *plan = d->base.params.plan;
    tdm_replica *replica = d->replica[i];
    const char *from = d->output_gradient + tdm__dp_output_bytes(plan, s->output_first[i]);
    return replica->device->ops->queues->copy(replica->device, NULL, tdm__exec_output_gradient(replica), from,
                                              tdm__dp_output_bytes(plan, s->rows[i].rows));
}

static tdm_status backward_one(void *user, int i) {
    dp_step *s = user;
    const dp *d = s->dp;
    if (s->rows[i].rows == 0) return TDM_OK;
    const bool begins = s->plan_step[i] == d->base.params.plan->stages[0].backward;
    if (begins && d->output_replica != NULL) TDM_TRY(fetch_gradient(s, i));
    return tdm__exec_backward(d->replica[i], &s->rows[i], s->micro_batch, NULL, &s->plan_step[i]);
}

tdm_status tdm__dp_backward(dp_step *s) {
    return in_stretches(s, backward_one, s->dp->base.params.plan->stages[0].backward);
}
