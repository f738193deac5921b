/* Finding, opening and asking modules. */
#ifndef TDM_MODULE_MODULE_H
#define TDM_MODULE_MODULE_H

#include <tandem/host.h>
#include <tandem/sys/module.h>

#include "runtime/base/text.h"

/* The call table that modules and ops use. */
extern const tdm_host_calls tdm__host_calls;

typedef struct tdm_module_report {
    char path[512]; /* of the library that was opened, or "" */
    char text[512]; /* the probe's sentence, or why it was not opened: paths tried, dlerror, ABI found and wanted */
    bool usable;
} tdm_module_report;

/* Looks for libtandem-<name>.so in: module_path (colon-separated; NULL: the environment's TANDEM_MODULE_PATH), the
 * folder of libtandem + "/tandem", the folder of the executable + "/../lib/tandem", the build-time path. *out is NULL
 * if there is none that is usable; the report says why. Fails only on memory. */
tdm_status tdm__module_find(const tdm_module **out, const tdm_host *host, const char *name, const char *module_path,
                            tdm_module_report *report);

/* The kernels of a run: those of the dnnl module when it is usable and wanted, then the built-in ones. The array is
 * from the host's allocator. */
tdm_status tdm__module_kernels(const tdm_kernel *const **out, const tdm_host *host, bool reference_only,
                               const char *module_path, tdm_module_report *report);

#endif
