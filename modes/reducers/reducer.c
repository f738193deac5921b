/* What the reducers share. */
#include "modes/reducers/reducer.h"

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

tdm_status tdm__reducer_new(tdm_reducer **out, size_t bytes, const tdm_reducer_ops *ops,
                            const tdm_mode_params *params) {
    tdm_reducer *reducer = NULL;
    TDM_TRY(tdm__new(params->host, &reducer, 1, bytes, "reducer"));
    *reducer = (tdm_reducer){.ops = ops, .params = params, .backend = params->comm->ops->name};
    *out = reducer;
    return TDM_OK;
}

tdm_status tdm__reducer_skip_bucket(tdm_reducer *reducer, int bucket) {
    (void)reducer;
    (void)bucket;
    return TDM_OK;
}

tdm_status tdm__reducer_skip(tdm_reducer *reducer) {
    (void)reducer;
    return TDM_OK;
}

tdm_status tdm__reducer_skip_wait(tdm_reducer *reducer, tdm_device_event *until) {
    (void)reducer;
    (void)until;
    return TDM_OK;
}

tdm_status tdm__rank_open_replica(const tdm_mode_params *params, float *grad, tdm_replica **out) {
    const tdm_replica_options options = {
        .index = params->rank, .state_count = params->state_count, .grad = grad, .parts = 1};
    return tdm__open_replica(params, options, out);
}

/* ---- a rank without rows ---- */

/* Adding -0 changes no number; adding +0 would turn -0 into +0. */
static void fill_with_minus_zero(float *grad, size_t count) {
    for (size_t i = 0; i < count; i++) grad[i] = -0.0f;
}

/* Only with parallel.ddp.join a rank may have no rows. */
tdm_status tdm__reducer_open_minus_zeros(tdm_reducer *reducer) {
    const tdm_mode_params *params = reducer->params;
    const size_t count = params->plan->trained_floats;
    if (!params->job->parallel.ddp.join) return TDM_OK;
    TDM_TRY(tdm__device_new_host(reducer->replica->device, &reducer->minus_zeros, count * sizeof(float),
                                 "the zero gradient of a rank without rows"));
    fill_with_minus_zero(reducer->minus_zeros, count);
    return TDM_OK;
}

tdm_status tdm__reducer_add_nothing(const tdm_reducer *reducer) {
    for (int k = 0; k < reducer->params->plan->stage_count; k++) {
        const tdm_replica *stage = reducer->replica->stages[k];
        const size_t floats = tdm__replica_trained(stage);
        if (reducer->minus_zeros == NULL)
            fill_with_minus_zero(stage->arena.grad, floats);
        else
            TDM_TRY(stage->device->ops->queues->copy(stage->device, NULL, stage->arena.grad, reducer->minus_zeros,
                                                     floats * sizeof(float)));
    }
    return TDM_OK;
}

void tdm__reducer_close(tdm_reducer *reducer) {
    if (reducer != NULL) reducer->ops->close(reducer);
}

tdm_status tdm__reduced_memory(const tdm_mode_params *params, size_t bytes, const char *what, void **out) {
    if (params->comm->ops->allocate == NULL) return tdm__new_pages(params->host, out, bytes, what);
    return tdm__comm_allocate(params->comm, bytes, out);
}

void tdm__reduced_memory_release(const tdm_mode_params *params, void *memory) {
    if (params->comm->ops->allocate == NULL) tdm__delete_pages(params->host, memory);
}

tdm_span tdm__bucket_span(const tdm_reducer *reducer, float *grad, int bucket) {
    const tdm_plan_bucket *b = &reducer->params->plan->buckets[bucket];
    return (tdm_span){grad + b->offset, b->count, TDM_DTYPE_F32};
}

tdm_span tdm__bucket_here(const tdm_reducer *reducer, int bucket) {
    return (tdm_span){tdm__replica_bucket(reducer->replica, bucket), reducer->params->plan->buckets[bucket].count,
                      TDM_DTYPE_F32};
}

static bool has_statistics(const tdm_plan *plan, int stage) {
    for (int i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].stage == stage && plan->nodes[i].statistics_bytes > 0) return true;
    return false;
}

/* Stages of a rank are at different micro-batches at a time, but each goes through them in the same order on all ranks.
 */
tdm_status tdm__exchange_open(tdm_comm ***out, const tdm_mode_params *params) {
    int ranks[TDM_REPLICAS_MAX];
    if (params->plan->statistics_bytes == 0) return TDM_OK;
    for (int i = 0; i < params->comm->world; i++) ranks[i] = i;
    TDM_TRY(tdm__new(params->host, out, (size_t)params->plan->stage_count, sizeof(**out), "communicators of stages"));
    for (int k = 0; k < params->plan->stage_count; k++)
        if (has_statistics(params->plan, k))
            TDM_TRY(tdm_comm_split(params->comm, ranks, params->comm->world, &(*out)[k]));
    return TDM_OK;
}

void tdm__exchange_close(tdm_comm **exchange, const tdm_mode_params *params) {
    for (int k = 0; exchange != NULL && k < params->plan->stage_count; k++) tdm_comm_close(exchange[k]);
    tdm__delete(params->host, exchange);
}

tdm_status tdm__reducer_gather(tdm_comm *comm, char *blocks, size_t bytes) {
    const tdm_span all = {blocks, bytes * (size_t)comm->world, TDM_DTYPE_U8};
    const tdm_span own = {blocks + bytes * (size_t)comm->rank, bytes, TDM_DTYPE_U8};
    return tdm_comm_all_gather(comm, own, all);
}

tdm_status tdm__reducer_broadcast_host(tdm_reducer *reducer, tdm_arena_kind kind) {
    const size_t bytes = tdm__replica_arena_bytes(reducer->replica, kind);
    void *host = NULL;
    TDM_TRY(tdm__replica_fetch(reducer->replica, kind, &host));
    TDM_TRY(tdm_comm_broadcast(reducer->params->comm, (tdm_span){host, bytes, TDM_DTYPE_U8}, 0));
    return tdm__replica_put(reducer->replica, kind);
}
