/* Finding, opening and asking modules. */
#ifndef TDM_MODULE_MODULE_H
#define TDM_MODULE_MODULE_H

#include <tandem/host.h>
#include <tandem/sys/device.h>
#include <tandem/sys/module.h>

#include "runtime/base/text.h"

/* The call table that modules and ops use. */
extern const tdm_host_calls tdm__host_calls;

/* Modules of an older build lack the last members. */
#define TDM_MODULE_HAS(module, member) ((module)->size >= offsetof(tdm_module, member) + sizeof((module)->member))
#define TDM_DEVICE_HAS(device, member) ((device)->size >= offsetof(tdm_device_ops, member) + sizeof((device)->member))

/* Why this build has no such module: "nccl.h was not found. ..."; "" where it has one, or never heard of it. */
const char *tdm__module_absent(const char *name);

typedef struct tdm_module_report {
    char path[512]; /* of the library that was opened, or "" */
    char text[512]; /* the probe's sentence, or why it was not opened: paths tried, dlerror, ABI found and wanted */
    bool usable;
} tdm_module_report;

/* Looks for libtandem-<name>.so in: module_path (colon-separated; NULL: the environment's TANDEM_MODULE_PATH), the
 * folder of libtandem + "/tandem", the folder of the executable + "/../lib/tandem" (both of the files that are really
 * mapped), the build-time path. *out is NULL if there is none that is usable; the report says why. TDM_E_MEMORY where
 * one is there that could not be loaded, or could not be looked for, for lack of memory. */
tdm_status tdm__module_find(const tdm_module **out, const tdm_host *host, const char *name, const char *module_path,
                            tdm_module_report *report);

/* What a run computes with. */
typedef struct tdm_compute {
    const tdm_device_ops *device;
    const tdm_kernel *const *kernels;      /* best first, NULL-terminated; from the host's allocator */
    const tdm_loss_kernel *const *losses;  /* NULL: the kernels of the loss definitions, which are the CPU's */
    const tdm_optim_kernel *const *optims; /* likewise */
    tdm_module_report report;              /* of the module that brought them */
} tdm_compute;

typedef struct tdm_compute_wish {
    int device;              /* tdm_device_kind of tandem/job.h */
    int kernels;             /* tdm_kernel_choice */
    const tdm_ints *ids;     /* of devices that must be there; NULL: any */
    const char *module_path; /* as for tdm__module_find */
} tdm_compute_wish;

/* cpu: the kernels of the dnnl module when it is usable and wanted, then the built-in ones. cuda: those of the cuda
 * module; TDM_E_UNSUPPORTED where there is no such module, TDM_E_DEVICE where it says that it cannot work here or a
 * device is missing. auto: cuda when it can work here and all `ids` are there, else cpu. */
tdm_status tdm__compute_open(tdm_compute *out, const tdm_host *host, const tdm_compute_wish *wish);
void tdm__compute_close(tdm_compute *compute, const tdm_host *host);
/* The kernel of a loss on this backend. */
tdm_status tdm__compute_loss(const tdm_compute *compute, const tdm_loss_def *loss,
                             tdm_status (**run)(const tdm_loss_args *args));
/* The kernel of an optimizer on this backend; on the CPU, the one of this processor's instruction set. */
tdm_status tdm__compute_optim(const tdm_compute *compute, const tdm_optim_def *optim, tdm_optim_run **run);
/* The communicator for a device's memory: NULL in *out where there is none that is usable; the report says why. */
tdm_status tdm__compute_comm(const struct tdm_comm_ops **out, const tdm_host *host, const char *name,
                             const char *module_path, tdm_module_report *report);

#endif
