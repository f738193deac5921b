/* The backend that reduces the gradients of a ddp job: parallel.ddp.backend, a row of tandem/sys/backends.def. */
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

tdm_status tdm__run_check_backend(const tdm_run *run) {
    const tdm_backend_def *wanted = &tdm__backends[run->job->parallel.ddp.backend];
    if (wanted->source == TDM_SOURCE_HOSTS_MODULE && run->world > 1 && run->options.comm == NULL)
        TDM_FAIL(TDM_E_USAGE,
                 "parallel.ddp.backend: %s needs a communicator between hosts: pass that of tdm_comm_open_hosts as "
                 "options.comm, or use backend: shm or auto",
                 wanted->name);
    return TDM_OK;
}

static bool shares_devices(const tdm_ints *ids) {
    for (int i = 0; i < ids->count; i++) {
        for (int k = 0; k < i; k++) {
            if (ids->item[i] == ids->item[k]) return true;
        }
    }
    return false;
}

tdm_status tdm__run_open_backend(tdm_run *run) {
    const tdm_backend_def *wanted = &tdm__backends[run->job->parallel.ddp.backend];
    const bool is_demanded = wanted->source != TDM_SOURCE_AUTO;
    if (run->world == 1 || (is_demanded && wanted->source != TDM_SOURCE_DEVICE_MODULE)) return TDM_OK;
    if (tdm__device_on_host(run->compute.device)) {
        if (!is_demanded) return TDM_OK;
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "parallel.ddp.backend: %s reduces in device memory, this job's device is %s; use shm or auto",
                 wanted->name, run->compute.device->name);
    }
    if (!is_demanded && run->job->parallel.stages > 1) return TDM_OK; /* host memory has the bits of one device */
    if (!is_demanded && shares_devices(&run->job->parallel.device_ids)) return TDM_OK;
    tdm_module_report report = {.usable = false};
    for (const tdm_backend_def *each = tdm__backends; each->name != NULL && run->device_comm == NULL; each++) {
        if (each->source != TDM_SOURCE_DEVICE_MODULE || (is_demanded && each != wanted)) continue;
        TDM_TRY(tdm__compute_comm(&run->device_comm, run->host, each->name, run->options.module_path, &report));
        TDM_INFO(run->host, "comm", "%s: %s", each->name, report.text);
    }
    if (run->device_comm == NULL && is_demanded)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "parallel.ddp.backend: %s is not available: %s; backend: shm reduces in host memory", wanted->name,
                 report.text);
    return TDM_OK;
}

tdm_status tdm__run_agree_on_backend(tdm_run *run) {
    if (run->comm == NULL || tdm__device_on_host(run->compute.device)) return TDM_OK;
    int64_t row = 0, rows[TDM_REPLICAS_MAX]; /* of the list of backends; 0: none */
    int other = 0;                           /* the first rank with another one than this */
    for (int i = 0; run->device_comm != NULL && tdm__backends[i].name != NULL; i++)
        if (strcmp(tdm__backends[i].name, run->device_comm->name) == 0) row = i;
    TDM_TRY(tdm_comm_all_gather(run->comm, (tdm_span){&row, 1, TDM_DTYPE_I64},
                                (tdm_span){rows, (size_t)run->world, TDM_DTYPE_I64}));
    while (other < run->world && rows[other] == row) other++;
    if (other == run->world || run->device_comm == NULL) return TDM_OK;
    TDM_WARN(run->host, "comm", "rank %d has no %s: gradients are reduced in host memory", other,
             run->device_comm->name);
    run->device_comm = NULL;
    return TDM_OK;
}
