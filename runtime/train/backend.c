/* The backend that reduces the gradients of a ddp job: parallel.ddp.backend, a row of tandem/sys/backends.def. */
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/train/run.h"

static const struct {
    const char *name;
    enum { BUILT_IN, DEVICE_MODULE, RESERVED } source;
} backends[] = {
    [TDM_BACKEND_AUTO] = {"auto", DEVICE_MODULE},
#define TDM_BACKEND(key, name, source) [TDM_BACKEND_##key] = {#name, source},
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
};

tdm_status tdm__run_check_backend(const tdm_run *run) {
    int wanted = run->job->parallel.ddp.backend;
    if (backends[wanted].source == RESERVED)
        TDM_FAIL(TDM_E_UNSUPPORTED, "parallel.ddp.backend: %s is not in this build; use backend: shm or auto",
                 backends[wanted].name);
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

static const char *name_of(int wanted) {
    int i = wanted != TDM_BACKEND_AUTO ? wanted : TDM_BACKEND_AUTO + 1;
    while (backends[i].source != DEVICE_MODULE) i++;
    return backends[i].name;
}

tdm_status tdm__run_open_backend(tdm_run *run) {
    const int wanted = run->job->parallel.ddp.backend;
    const bool is_demanded = wanted != TDM_BACKEND_AUTO;
    if (run->world == 1 || backends[wanted].source != DEVICE_MODULE) return TDM_OK;
    const char *name = name_of(wanted);
    if (!run->compute.device->discrete) {
        if (!is_demanded) return TDM_OK;
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "parallel.ddp.backend: %s reduces in the memory of CUDA devices, the job runs on the CPU; use "
                 "backend: shm or auto",
                 name);
    }
    if (!is_demanded && shares_devices(&run->job->parallel.device_ids)) return TDM_OK;
    tdm_module_report report;
    TDM_TRY(tdm__compute_comm(&run->device_comm, run->host, name, run->options.module_path, &report));
    TDM_INFO(run->host, "comm", "%s: %s", name, report.text);
    if (run->device_comm == NULL && is_demanded)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "parallel.ddp.backend: %s is not available: %s; backend: shm reduces in host memory", name,
                 report.text);
    return TDM_OK;
}

tdm_status tdm__run_agree_on_backend(tdm_run *run) {
    int64_t all_have = run->device_comm != NULL;
    if (run->comm == NULL || !run->compute.device->discrete) return TDM_OK;
    TDM_TRY(tdm_comm_all_reduce(run->comm, (tdm_span){&all_have, 1, TDM_DTYPE_I64}, TDM_REDUCE_MIN));
    if (all_have || run->device_comm == NULL) return TDM_OK;
    TDM_WARN(run->host, "comm", "some rank has no %s: gradients are reduced in host memory", run->device_comm->name);
    run->device_comm = NULL;
    return TDM_OK;
}
