/* Finds, opens and asks modules. */
#ifndef TDM_MODULE_MODULE_H
#define TDM_MODULE_MODULE_H

#include <tandem/host.h>
#include <tandem/sys/device.h>
#include <tandem/sys/module.h>

#include "runtime/device/device.h"

/* The table of calls that modules and ops use. */
extern const tdm_host_calls tdm__host_calls;

/* Returns why this build lacks the module: "nccl.h was not found. ..."; "" if it has the module or does not know it. */
const char *tdm__module_absent(const char *name);

typedef struct tdm_module_report {
    char path[512]; /* the library that was opened, or "" */
    char text[512]; /* the probe's sentence; or why the module was not opened: paths tried, dlerror, ABI expected and
                       found */
    bool usable;
} tdm_module_report;

/* Looks for libtandem-<name>.so in these folders: module_path (separated by colons; NULL: TANDEM_MODULE_PATH of the
 * environment); the folder of libtandem + "/tandem"; the folder of the executable + "/../lib/tandem" (both of the files
 * that are really mapped); the build-time path. *out is NULL if no usable module was found, and the report says why.
 * TDM_E_MEMORY if a module exists but memory was too short to look for it or to load it. */
tdm_status tdm__module_find(const tdm_module **out, const tdm_host *host, const char *name, const char *module_path,
                            tdm_module_report *report);

bool tdm__module_is_loaded(const char *name); /* by this process, from whatever folder */

/* Opens a module with layers from a library in the folders of TANDEM_OP_PATH. `file`: its name without a folder. The
 * message says what to do. */
tdm_status tdm__own_ops_open(const tdm_module **out, const char *file);

/* What the values of parallel.ddp.backend are: see tandem/sys/backends.def. */
typedef enum tdm_backend_source {
    TDM_SOURCE_AUTO, /* the value `auto` */
    TDM_SOURCE_BUILT_IN,
    TDM_SOURCE_DEVICE_MODULE,
    TDM_SOURCE_HOSTS_MODULE
} tdm_backend_source;
typedef struct tdm_backend_def {
    const char *name;
    tdm_backend_source source;
} tdm_backend_def;
/* Indexed by tdm_backend of tandem/job.h; ends with a NULL name. */
extern const tdm_backend_def tdm__backends[];

/* What a run computes with. */
typedef struct tdm_compute {
    const tdm_device_ops *device;
    const tdm_kernel *const *kernels;      /* best first, NULL-terminated; allocated from the host */
    const tdm_loss_kernel *const *losses;  /* NULL: the CPU's kernels, which the loss definitions name */
    const tdm_optim_kernel *const *optims; /* NULL: the CPU's kernels, which the optimizer definitions name */
    void (*thread_begin)(void);            /* as tdm_module.thread_begin; NULL: threads share no work */
    void (*rest)(void);                    /* as tdm_module.rest; NULL: there is nothing to do */
    size_t process_bytes;                  /* as tdm_module's */
    tdm_module_report report;              /* about the module that the kernels come from */
} tdm_compute;

typedef struct tdm_compute_options {
    tdm_device_kind device;
    tdm_kernel_choice kernels;
    const tdm_ints *ids;     /* devices that must exist; NULL: any */
    const char *module_path; /* as for tdm__module_find */
} tdm_compute_options;

/* Chooses what a run computes with. cpu: the kernels of the dnnl module if it is usable and not ruled out, then the
 * built-in ones. cuda: the kernels of the cuda module; TDM_E_UNSUPPORTED if there is no such module, TDM_E_DEVICE if it
 * does not work here or a device is missing. auto: cuda if it works here and all `ids` exist, else cpu. End it with
 * tdm__compute_close. */
tdm_status tdm__compute_open(tdm_compute *out, const tdm_host *host, const tdm_compute_options *options);
void tdm__compute_close(tdm_compute *compute, const tdm_host *host);
/* Finds the device's own kernel of a loss; on the CPU *run is NULL: it is the definition's. TDM_E_UNSUPPORTED if there
 * is none. */
tdm_status tdm__compute_loss(const tdm_compute *compute, const tdm_loss_def *loss,
                             tdm_status (**run)(const tdm_loss_args *args));
/* Finds the kernel of an optimizer for this device; on the CPU, the one for this processor's instruction set.
 * TDM_E_UNSUPPORTED if there is none. */
tdm_status tdm__compute_optim(const tdm_compute *compute, const tdm_optim_def *optim, tdm_optim_run **run);
/* Finds the communicators for a device's memory in module `name`; *out is NULL if there are none that are usable, and
 * the report says why. */
tdm_status tdm__compute_comm(const struct tdm_comm_ops **out, const tdm_host *host, const char *name,
                             const char *module_path, tdm_module_report *report);

#endif
