#include "runtime/backends/kit/module_host.h"

static const tdm_host_calls *host_calls; /* init writes the same value every time */

const tdm_host_calls *tdm__module_host(void) {
    return __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE);
}

void tdm__module_init(const tdm_host_calls *calls) {
    __atomic_store_n(&host_calls, calls, __ATOMIC_RELEASE);
}

const char *tdm__module_variable(const char *name) {
    const tdm_host_calls *host = tdm__module_host();
    return host != NULL ? host->environment(name) : NULL;
}
