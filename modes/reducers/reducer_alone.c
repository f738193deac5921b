/* One rank: its gradients are the sums, and its arenas are rank 0's. */
#include "modes/reducers/reducer.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

static tdm_status broadcast(tdm_reducer *reducer, tdm_arena_kind kind) {
    (void)reducer;
    (void)kind;
    return TDM_OK;
}

static void abort_all(tdm_reducer *reducer, const char *why) {
    (void)reducer;
    (void)why;
}

static void close(tdm_reducer *reducer) {
    tdm__delete(reducer->params->host, reducer);
}

static const tdm_reducer_ops alone_ops = {
    .broadcast = broadcast,
    .start_bucket = tdm__reducer_skip_bucket,
    .finish = tdm__reducer_skip,
    .reduce_all = tdm__reducer_skip,
    .wait = tdm__reducer_skip_wait,
    .abort = abort_all,
    .close = close,
};

tdm_status tdm__reducer_open_alone(tdm_reducer **out, const tdm_mode_params *params) {
    TDM_TRY(tdm__new(params->host, out, 1, sizeof(**out), "reducer"));
    **out = (tdm_reducer){.ops = &alone_ops, .params = params, .backend = "here"};
    return TDM_OK;
}
