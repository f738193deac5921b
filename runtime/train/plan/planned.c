/* The plan of a job: with which options it is made, and without devices. */
#include "runtime/train/plan/planned.h"

#include <math.h>

#include "runtime/base/status.h"

/* Planning uses no device. If the job's device is not here, the plan is made with the CPU's kernels. */
static tdm_status open_compute(tdm_compute *compute, const tdm_host *host, const tdm_job *job, const char **note) {
    tdm_compute_options options = {.device = job->parallel.device, .kernels = job->parallel.kernels};
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = tdm__compute_open(compute, host, &options);
    if (status != TDM_E_DEVICE && status != TDM_E_UNSUPPORTED) return status;
    *note = "the job's device is not available here: kernels, layouts and scratch are the CPU's";
    (void)tdm__error_restore(&before, NULL);
    options.device = TDM_DEVICE_CPU;
    return tdm__compute_open(compute, host, &options);
}

int64_t tdm__plan_rows(const tdm_job *job, int64_t rows) {
    return (rows + job->train.accumulate - 1) / job->train.accumulate;
}

/* The smallest output that is made again. A GPU keeps all of them unless the job says otherwise. */
static size_t least_recomputed(const tdm_job *job, const tdm_compute *compute) {
    if (job->train.recompute == TDM_RECOMPUTE_ALWAYS) return 0;
    if (job->train.recompute == TDM_RECOMPUTE_NEVER || !tdm__device_on_host(compute->device)) return SIZE_MAX;
    return (size_t)1 << 20;
}

/* As DistributedDataParallel: unless the job says otherwise, the first bucket is small where the others have their
 * default. */
static double first_bucket_of(const tdm_job *job) {
    const double first = job->parallel.ddp.first_bucket_mb, cap = job->parallel.ddp.bucket_cap_mb;
    if (!isnan(first)) return first;
    return cap == TDM_BUCKET_CAP_MB ? 1.0 : cap;
}

tdm_plan_options tdm__plan_options(const tdm_job *job, const tdm_compute *compute, int64_t rows, int replicas,
                                   int threads) {
    int64_t micro = tdm__plan_rows(job, rows), batch = job->eval.batch;
    return (tdm_plan_options){.rows = batch != TDM_INT_NULL && batch > micro ? batch : micro,
                              .threads = threads,
                              .training = true,
                              .fast = job->parallel.kernels == TDM_KERNELS_FAST,
                              .ingests = compute->device->arenas->ingest != NULL,
                              .widens = compute->device->arenas->from_bf16 != NULL,
                              .precision = job->train.precision,
                              .stages = (int)job->parallel.stages,
                              .micro_batches = job->train.accumulate,
                              .accumulates = job->train.accumulate > 1,
                              .replicas = job->parallel.sync_batchnorm ? replicas : 1,
                              .recompute = least_recomputed(job, compute),
                              .first_bucket_mb = first_bucket_of(job),
                              .bucket_cap_mb = job->parallel.ddp.bucket_cap_mb,
                              .allows_unused = job->parallel.ddp.find_unused_parameters,
                              .kernels = compute->kernels,
                              .freeze = &job->freeze,
                              .groups = &job->optimizer.groups,
                              .loss = job->loss.type};
}

tdm_status tdm__planned_open(tdm_planned *out, const tdm_job *job, const tdm_graph *graph, int devices,
                             const tdm_plan_print_options *look) {
    const tdm_host *host = tdm_host_default();
    tdm_compute *compute = &out->compute;
    *out = (tdm_planned){.rows = job->train.per_device};
    TDM_TRY(tdm_job_check(job));
    TDM_TRY(open_compute(compute, host, job, &out->note));
    if (out->note == NULL && !compute->report.usable && compute->report.path[0] != '\0')
        out->note = compute->report.text;
    if (out->rows == TDM_INT_NULL) out->rows = job->train.global_batch / tdm__job_replicas(job);
    tdm_plan_options options =
        tdm__plan_options(job, compute, out->rows, devices, tdm__threads_of(job, compute, host, devices));
    options.after = look->after;
    options.training = look->predicts == 0;
    TDM_TRY_ELSE(tdm__plan_build(&out->plan, host, graph, &options), tdm__compute_close(compute, host));
    return TDM_OK;
}

void tdm__planned_close(tdm_planned *planned) {
    tdm__plan_free(planned->plan);
    tdm__compute_close(&planned->compute, tdm_host_default());
}
