/* What the ways to meet have in common. */
#include "modes/meet.h"

#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

tdm_status tdm__meet_new(tdm_meet **out, size_t bytes, const tdm_meet_ops *ops, const tdm_mode_params *params) {
    tdm_meet *meet = NULL;
    TDM_TRY(tdm__new(params->host, &meet, 1, bytes, "meeting of gradients"));
    *meet = (tdm_meet){.ops = ops, .params = params, .backend = params->comm->ops->name};
    *out = meet;
    return TDM_OK;
}

tdm_status tdm__meet_open_replica(const tdm_mode_params *params, float *grad, tdm_replica **out) {
    const tdm_replica_options options = {
        .index = params->rank, .state_count = params->state_count, .grad = grad, .parts = 1};
    return tdm__open_replica(params, options, out);
}

void tdm__meet_close(tdm_meet *meet) {
    if (meet != NULL) meet->ops->close(meet);
}

tdm_span tdm__bucket_span(const tdm_meet *meet, float *grad, int bucket) {
    const tdm_plan_bucket *b = &meet->params->plan->buckets[bucket];
    return (tdm_span){grad + b->offset, b->count, TDM_DTYPE_F32};
}

tdm_status tdm__meet_spread_host(tdm_meet *meet, tdm_arena_kind kind) {
    size_t bytes = 0;
    (void)tdm__replica_arena(meet->replica, kind, &bytes);
    int64_t at = tdm__now_ns();
    void *host = NULL;
    TDM_TRY(tdm__replica_fetch(meet->replica, kind, &host));
    TDM_TRY(tdm__broadcast(meet->params->comm, (tdm_span){host, bytes, TDM_DTYPE_U8}, 0));
    TDM_TRY(tdm__replica_put(meet->replica, kind));
    meet->ms += tdm__lap(&at);
    return TDM_OK;
}
