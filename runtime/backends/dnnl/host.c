/* The table of calls that tandem handed over. */
#include "runtime/backends/dnnl/kit/dnnl.h"

static const tdm_host_calls *host_calls; /* init writes the same value every time */

const tdm_host_calls *tdm__dnnl_host(void) {
    return __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE);
}

void tdm__dnnl_init(const tdm_host_calls *calls) {
    __atomic_store_n(&host_calls, calls, __ATOMIC_RELEASE);
}
