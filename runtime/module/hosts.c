/* Finds the module that carries messages between hosts, and opens a communicator over it. */
#include <stdint.h>
#include <string.h>

#include <tandem/comm.h>
#include <tandem/sys/module.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "runtime/module/module.h"

/* ", gloo, mpi" */
#define LISTED_BUILT_IN(name)
#define LISTED_DEVICE_MODULE(name)
#define LISTED_HOSTS_MODULE(name) ", " #name
#define TDM_BACKEND(key, name, source) LISTED_##source(name)
static const char listed[] =
#include <tandem/sys/backends.def>
    ;
#undef TDM_BACKEND

static bool is_hosts_backend(const char *name) {
    for (const tdm_backend_def *each = tdm__backends; each->name != NULL; each++)
        if (each->source == TDM_SOURCE_HOSTS_MODULE && strcmp(each->name, name) == 0) return true;
    return false;
}

tdm_status tdm_comm_open_hosts(tdm_comm **out, const tdm_launch_facts *facts, const tdm_hosts_options *options) {
    const tdm_module *module;
    tdm_module_report report;
    if (out == NULL || facts == NULL || options == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_hosts: out, facts or options is NULL");
    *out = NULL;
    TDM_EXTRA(RANKS);
    tdm_hosts_options given = TDM_HOSTS_OPTIONS_INIT;
    TDM_TRY(tdm__sized_take("tdm_comm_open_hosts: options", &given, sizeof(given), options, TDM_SIZED_ANY));
    TDM_TRY(tdm__sized_check("tdm_comm_open_hosts: tdm_launch_facts", facts, sizeof(*facts), sizeof(*facts)));
    TDM_TRY(tdm__host_take(&given.host));
    if (given.backend == NULL || !is_hosts_backend(given.backend))
        TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_hosts: backend must be one of %s, got '%s'", listed + 2,
                 given.backend != NULL ? given.backend : "NULL");
    TDM_TRY(tdm__module_find(&module, given.host, given.backend, given.module_path, &report));
    if (module == NULL || module->transport == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "ranks on several hosts: %s is not available: %s", given.backend, report.text);
    TDM_INFO(given.host, "comm", "%s: %s", given.backend, report.text);
    return tdm__hosts_open(out, module->transport, facts, &given);
}
