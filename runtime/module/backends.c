#include <tandem/job.h>

#include "runtime/module/module.h"

const tdm_backend_def tdm__backends[] = {
    [TDM_BACKEND_AUTO] = {"auto", TDM_SOURCE_AUTO},
#define TDM_BACKEND(key, name, source) [TDM_BACKEND_##key] = {#name, TDM_SOURCE_##source},
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
    {.name = NULL},
};
