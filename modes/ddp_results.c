#include "modes/ddp_results.h"

#include <math.h>

#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/tree.h"

static bool averages_ranks(const tdm_mode_params *params) {
    return params->replicas > 1 && params->job->parallel.ddp.average == TDM_AVERAGE_RANKS;
}

/* The divisor of this rank's losses: what counts on all ranks (labels, by their weights, or numbers), added as the
 * canonical tree; or, for a mean of the ranks' means, what counts on this rank times the number of ranks. Without
 * ignored labels the two are equal, because all ranks have the same number of rows: parallel.ddp.join, with which they
 * may not, is refused for a mean of means. */
tdm_status tdm__ddp_denominator(const tdm_mode_params *params, const tdm_batch *batch, tdm_times *times, double *out) {
    const int world = params->replicas;
    double all[TDM_REPLICAS_MAX];
    *out = params->loss->denominator(&params->job->loss, batch->global_rows, params->plan->output_width, NULL);
    if (!params->has_ignored) return TDM_OK;
    double own = tdm__denominator(params, batch->shard, batch->shard_count);
    *out = averages_ranks(params) ? own * world : own;
    if (world == 1 || averages_ranks(params)) return TDM_OK;
    int64_t at = tdm__steady_ns(params->host);
    TDM_TRY(tdm_comm_all_gather(params->comm, (tdm_span){&own, 1, TDM_DTYPE_F64},
                                (tdm_span){all, (size_t)world, TDM_DTYPE_F64}));
    *out = tdm__tree_sum(all, world);
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(params->host, &at);
    return TDM_OK;
}

static double sum_column(const double *first, int apart, int count) {
    double column[TDM_REPLICAS_MAX];
    for (int r = 0; r < count; r++) column[r] = first[r * apart];
    return tdm__tree_sum(column, count);
}

/* Adds loss, hits, denominators and requests to stop over all ranks, as the canonical tree. For a mean of means each
 * rank divides by its own denominator; a rank whose denominator is 0 adds 0, and if all are 0 there is no mean. The
 * gradient is that of the sum divided by the number of ranks, as in PyTorch; the reported loss is divided by the number
 * of ranks that have a mean. */
tdm_status tdm__ddp_add_results(const tdm_mode_params *params, const tdm_outcome *outcome, tdm_step_result *result) {
    const int world = params->replicas;
    enum { LOSS, CORRECT, STOP, DENOMINATOR, COUNT };
    double own[COUNT] = {outcome->loss[0], (double)outcome->correct, result->stop ? 1.0 : 0.0, result->denominator};
    double all[COUNT * TDM_REPLICAS_MAX], sum[COUNT];
    if (world == 1) {
        result->loss = own[LOSS] / own[DENOMINATOR];
        result->correct = outcome->correct;
        return TDM_OK;
    }
    if (averages_ranks(params) && result->denominator > 0) own[LOSS] /= own[DENOMINATOR];
    TDM_TRY(tdm_comm_all_gather(params->comm, (tdm_span){own, COUNT, TDM_DTYPE_F64},
                                (tdm_span){all, COUNT * (size_t)world, TDM_DTYPE_F64}));
    for (int i = 0; i < COUNT; i++) sum[i] = sum_column(all + i, COUNT, world);
    if (averages_ranks(params)) {
        int counted = 0; /* ranks that have a mean */
        for (int r = 0; r < world; r++) counted += all[COUNT * r + DENOMINATOR] > 0;
        result->denominator = sum[DENOMINATOR];
        result->loss = counted > 0 ? sum[LOSS] * world / counted : NAN;
    } else {
        result->loss = sum[LOSS] / own[DENOMINATOR];
    }
    result->correct = (int64_t)sum[CORRECT];
    result->stop = sum[STOP] > 0;
    return TDM_OK;
}
