/* Whether a job fits into host.memory_limit: when it is checked, and when it is opened, before its replicas are made. */
#include <stdio.h>

#include "runtime/base/limit/limit.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/train/plan/plan_memory.h"
#include "runtime/train/plan/planned.h"
#include "runtime/train/run.h"

#define ADVICE                                                                                          \
    "make train.batch.per_device or data.workers smaller, train.accumulate larger, freeze layers, use " \
    "fewer devices or threads, or raise the limit"

/* What the largest device holds, the largest parts first where a user can change them. */
static void print_parts(char *out, size_t room, const tdm_plan *plan, const tdm_job *job, int replicas) {
    char activations[32], parameters[32], optimizer[32];
    const tdm_memory most = tdm__plan_memory(plan, job, replicas, 0);
    snprintf(out, room, "parameters and gradients %s, optimizer %s, activations %s",
             tdm__print_bytes(parameters, most.bytes[TDM_COST_PARAMETERS] + most.bytes[TDM_COST_GRADIENTS]),
             tdm__print_bytes(optimizer, most.bytes[TDM_COST_OPTIMIZER]),
             tdm__print_bytes(activations, most.bytes[TDM_COST_ACTIVATIONS]));
}

/* What a run needs at least. */
typedef struct need {
    size_t held, replicas, batches, kernels, calls;
} need;

static size_t replicas_of(const tdm_plan *plan, const tdm_job *job, int replicas) {
    return tdm__replicas_memory(plan, job, replicas) + tdm__whole_memory(plan, job);
}

static tdm_status find_need(const tdm_run *run, need *out) {
    const tdm_plan *plan = run->plan;
    const tdm_job *job = run->job;
    *out =
        (need){.replicas = replicas_of(plan, job, run->replicas), .calls = tdm__calls_memory(plan, job, run->replicas)};
    if (run->train != NULL) out->batches += tdm__batches_memory(plan, job, run->train, run->replicas, false);
    if (run->eval != NULL) out->batches += tdm__batches_memory(plan, job, run->eval, run->replicas, true);
    out->held = tdm__limit_of(run->host).held;
    if (!run->compute.report.usable) return TDM_OK; /* tandem's own kernels have what they need from the host */
    /* The memory of this is released at once, so the limit does not count it. */
    return tdm__kernels_memory(tdm__limit_given(run->host), plan, job, run->replicas, run->compute.device, run->train,
                               run->eval, &out->kernels);
}

static tdm_status refuse(const tdm_run *run, const need *n, size_t limit, size_t all) {
    char parts[160], text[6][32];
    print_parts(parts, sizeof(parts), run->plan, run->job, run->replicas);
    TDM_FAIL_AT(&run->job->host.memory_limit_at, TDM_E_MEMORY,
                "host.memory_limit is %s, and this run needs %s at least: %s of replicas (%s on device 0), %s of "
                "batches read ahead, %s of kernels and their calls, %s of samples and settings; " ADVICE,
                tdm__print_bytes(text[0], limit), tdm__print_bytes(text[1], all),
                tdm__print_bytes(text[2], n->replicas), parts, tdm__print_bytes(text[3], n->batches),
                tdm__print_bytes(text[4], n->kernels + n->calls), tdm__print_bytes(text[5], n->held));
}

tdm_status tdm__run_check_limit(const tdm_run *run) {
    const size_t limit = tdm__limit_of(run->host).most;
    need n;
    if (limit == 0 || !tdm__device_on_host(run->compute.device)) return TDM_OK;
    TDM_TRY(find_need(run, &n));
    const size_t all = n.held + n.replicas + n.batches + n.kernels + n.calls;
    /* What the kernels' library takes is not the host's, so it is counted from here on. */
    return all <= limit && tdm__limit_book(run->host, n.kernels + n.calls) ? TDM_OK : refuse(run, &n, limit, all);
}

static tdm_status check_plan(const tdm_planned *planned, const tdm_job *job, int replicas) {
    const tdm_plan *plan = planned->plan;
    const size_t limit = (size_t)job->host.memory_limit;
    const size_t all = replicas_of(plan, job, replicas) + tdm__calls_memory(plan, job, replicas);
    char parts[160], text[2][32];
    if (all <= limit || !tdm__device_on_host(planned->compute.device)) return TDM_OK;
    print_parts(parts, sizeof(parts), plan, job, replicas);
    TDM_FAIL_AT(
        &job->host.memory_limit_at, TDM_E_CONFIG,
        "host.memory_limit is %s, and the replicas of a process need %s without its data (%s on device 0); " ADVICE,
        tdm__print_bytes(text[0], limit), tdm__print_bytes(text[1], all), parts);
}

tdm_status tdm_plan_check_memory(const tdm_job *job, const tdm_graph *graph) {
    tdm_planned planned;
    if (job == NULL || graph == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_plan_check_memory: a pointer is NULL");
    if (job->host.memory_limit == TDM_INT_NULL || job->parallel.device == TDM_DEVICE_CUDA) return TDM_OK;
    if (job->train.epochs == TDM_INT_NULL && job->train.steps == TDM_INT_NULL) return TDM_OK; /* not to be trained */
    TDM_TRY(tdm_job_check(job));
    const int replicas = tdm__job_replicas(job);
    const tdm_plan_print_options look = TDM_PLAN_PRINT_OPTIONS_INIT;
    TDM_TRY(tdm__planned_open(&planned, job, graph, replicas, &look));
    const tdm_status status = check_plan(&planned, job, replicas);
    tdm__planned_close(&planned);
    return status;
}
