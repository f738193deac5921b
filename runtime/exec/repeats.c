#include "runtime/exec/repeats.h"

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/text/json_write.h"

tdm_status tdm__repeats_start(tdm_replica *replica, int64_t count) {
    const size_t steps = (size_t)replica->plan->step_count;
    TDM_TRY(tdm__new(replica->host, &replica->repeats.ms, steps * (size_t)count, sizeof(double), "times of layers"));
    replica->repeats.count = count;
    return TDM_OK;
}

tdm_status tdm__repeats_end(tdm_replica *replica, int step, int64_t i, int64_t start_ns) {
    TDM_TRY(replica->device->ops->queues->finish(replica->device, NULL));
    replica->repeats.ms[step * replica->repeats.count + i] = (double)(tdm__steady_ns(replica->host) - start_ns) / 1e6;
    return TDM_OK;
}

void tdm__repeats_print(const tdm_replica *replica, tdm_text *text) {
    const tdm_plan *plan = replica->plan;
    tdm_json_out json = tdm__json_out(text, " ");
    tdm__json_put(&json, "[\n");
    for (int s = 0; s < plan->step_count; s++) {
        const tdm_plan_step *step = &plan->steps[s];
        if (step->kind != TDM_STEP_FORWARD && step->kind != TDM_STEP_BACKWARD) continue;
        const tdm_plan_node *node = &plan->nodes[step->index];
        tdm__json_put(&json, "{ layer:%s kernel:%s pass:%s ms:[", node->name,
                      node->kernel != NULL ? node->kernel->variant : "none",
                      step->kind == TDM_STEP_FORWARD ? "forward" : "backward");
        for (int64_t i = 0; i < replica->repeats.count; i++)
            tdm__json_put(&json, "%.6g", replica->repeats.ms[s * replica->repeats.count + i]);
        tdm__json_put(&json, "]}");
    }
    tdm__json_put(&json, "]\n");
}
