#include "modes/exchange.h"

void tdm__exchange_mark(tdm_rows *rows, int count) {
    uint64_t present = 0;
    for (int i = 0; i < count; i++) {
        if (rows[i].rows > 0) present |= UINT64_C(1) << i;
    }
    for (int i = 0; i < count; i++) rows[i].replica = i, rows[i].present = present;
}

uint64_t tdm__exchange_present(int64_t rows, int replicas, int64_t micro, int64_t index) {
    const tdm_sampler deal = {.replicas = replicas};
    uint64_t present = 0;
    for (int r = 0; r < replicas; r++) {
        int64_t first;
        const int64_t dealt = tdm__sampler_rows_of(&deal, rows, r);
        if (tdm__chunk(dealt, (int)micro, (int)index, &first) > 0) present |= UINT64_C(1) << r;
    }
    return present;
}

int tdm__exchange_first(const tdm_rows *rows, int count) {
    for (int i = 0; i < count; i++) {
        if (rows[i].rows > 0) return i;
    }
    return -1;
}

int64_t tdm__exchange_bytes(const tdm_plan *plan, const tdm_job *job, int replicas) {
    int64_t bytes = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const tdm_plan_step *step = &plan->steps[i];
        if (step->kind == TDM_STEP_STATISTICS) bytes += (int64_t)plan->nodes[step->index].statistics_bytes;
    }
    return bytes * replicas * (replicas - 1) * job->train.accumulate;
}
