/* What a run computes with: the CPU and its kernels, or a device and the kernels of a module. */
#include <tandem/job.h>
#include <tandem/sys/comm.h>

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/graph/graph.h"
#include "runtime/module/module.h"
#include "runtime/base/isa.h"

static size_t kernel_count(const tdm_kernel *const *kernels) {
    size_t count = 0;
    while (kernels != NULL && kernels[count] != NULL) count++;
    return count;
}

static tdm_status join(const tdm_kernel *const **out, const tdm_host *host, const tdm_kernel *const *own,
                       const tdm_kernel *const *built_in) {
    const size_t own_count = kernel_count(own), built_in_count = kernel_count(built_in);
    const tdm_kernel **list = NULL;
    TDM_TRY(tdm__new(host, &list, own_count + built_in_count + 1, sizeof *list, "the list of kernels"));
    for (size_t i = 0; i < own_count; i++) list[i] = own[i];
    for (size_t i = 0; i < built_in_count; i++) list[own_count + i] = built_in[i];
    *out = list;
    return TDM_OK;
}

static tdm_status open_cpu(tdm_compute *out, const tdm_host *host, const tdm_compute_options *options) {
    const tdm_module *module = NULL;
    if (options->kernels == TDM_KERNELS_REF) {
        out->report = (tdm_module_report){.text = "not looked for: the job asks for the reference kernels"};
    } else {
        TDM_TRY(tdm__module_find(&module, host, "dnnl", options->module_path, &out->report));
        if (module == NULL && out->report.path[0] != '\0')
            TDM_WARN(host, "device",
                     "oneDNN's kernels are installed but cannot be used; other kernels run, and their bits differ: %s",
                     out->report.text);
    }
    out->device = &tdm_cpu_device;
    out->thread_begin = module != NULL ? module->thread_begin : NULL;
    out->rest = module != NULL ? module->rest : NULL;
    out->process_bytes = module != NULL ? module->process_bytes : 0;
    return join(&out->kernels, host, module != NULL ? module->kernels : NULL, tdm_builtin_kernels);
}

/* ---- cuda ---- */

static tdm_status check_ids(const tdm_module *module, const tdm_ints *ids) {
    int count = 0;
    TDM_TRY(module->device->count(&count));
    for (int i = 0; ids != NULL && i < ids->count; i++) {
        if (ids->item[i] >= count)
            TDM_FAIL(
                TDM_E_DEVICE,
                "parallel.device_ids: there is no cuda:%lld, this machine has %d CUDA device%s; write "
                "parallel.device_ids=[0], or [0, 0] with parallel.allow_shared_device=true for replicas that share it",
                (long long)ids->item[i], count, count == 1 ? "" : "s");
    }
    return TDM_OK;
}

/* *module is NULL if cuda cannot be used and the job does not demand it. */
static tdm_status find_cuda(const tdm_module **module, tdm_compute *out, const tdm_host *host,
                            const tdm_compute_options *options) {
    const bool demanded = options->device == TDM_DEVICE_CUDA;
    TDM_TRY(tdm__module_find(module, host, "cuda", options->module_path, &out->report));
    if (*module == NULL && demanded)
        TDM_FAIL(out->report.path[0] != '\0' ? TDM_E_DEVICE : TDM_E_UNSUPPORTED,
                 "parallel.device: cuda cannot be used: %s; write parallel.device=cpu to do without", out->report.text);
    if (*module == NULL) return TDM_OK;
    if ((*module)->device == NULL || (*module)->kernels == NULL || (*module)->losses == NULL ||
        (*module)->optims == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s has no device in it; build it from the same source as this tandem",
                 out->report.path);
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = check_ids(*module, options->ids);
    if (status == TDM_OK || demanded) return status;
    TDM_INFO(host, "device", "parallel.device: auto uses the CPU: %s", tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    *module = NULL;
    return TDM_OK;
}

tdm_status tdm__compute_open(tdm_compute *out, const tdm_host *host, const tdm_compute_options *options) {
    *out = (tdm_compute){0};
    const tdm_module *module = NULL;
    if (options->device == TDM_DEVICE_CUDA && options->kernels == TDM_KERNELS_REF)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "parallel.kernels: ref exists for the CPU only; write parallel.device: cpu, or kernels: auto");
    if (options->device != TDM_DEVICE_CPU && options->kernels != TDM_KERNELS_REF)
        TDM_TRY(find_cuda(&module, out, host, options));
    if (module == NULL) return open_cpu(out, host, options);
    out->device = module->device;
    out->losses = module->losses;
    out->optims = module->optims;
    return join(&out->kernels, host, module->kernels, NULL);
}

void tdm__compute_close(tdm_compute *compute, const tdm_host *host) {
    tdm__delete(host, (void *)(uintptr_t)compute->kernels);
    *compute = (tdm_compute){0};
}

tdm_status tdm__compute_loss(const tdm_compute *compute, const tdm_loss_def *loss,
                             tdm_status (**run)(const tdm_loss_args *args)) {
    *run = NULL;
    if (compute->losses == NULL) return TDM_OK;
    for (const tdm_loss_kernel *const *l = compute->losses; *l != NULL; l++) {
        *run = (*l)->run;
        if (strcmp((*l)->loss, loss->name) == 0) return TDM_OK;
    }
    TDM_FAIL(TDM_E_UNSUPPORTED, "device %s has no kernel for the loss %s", compute->device->name, loss->name);
}

tdm_status tdm__compute_optim(const tdm_compute *compute, const tdm_optim_def *optim, tdm_optim_run **run) {
    tdm_isa isa = tdm__isa();
    while (optim->cpu[isa] == NULL) isa--;
    *run = optim->cpu[isa];
    if (compute->optims == NULL) return TDM_OK;
    for (const tdm_optim_kernel *const *o = compute->optims; *o != NULL; o++) {
        *run = (*o)->run;
        if (strcmp((*o)->optim, optim->name) == 0) return TDM_OK;
    }
    TDM_FAIL(TDM_E_UNSUPPORTED, "device %s has no kernel for the optimizer %s", compute->device->name, optim->name);
}

tdm_status tdm__compute_comm(const tdm_comm_ops **out, const tdm_host *host, const char *name, const char *module_path,
                             tdm_module_report *report) {
    const tdm_module *module = NULL;
    *out = NULL;
    TDM_TRY(tdm__module_find(&module, host, name, module_path, report));
    if (module != NULL) *out = module->comm;
    return TDM_OK;
}
