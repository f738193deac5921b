/* libtandem-nccl.so: collectives between GPUs with NVIDIA's NCCL, which is opened at run time if it is installed. */
#include <stdio.h>

#include <tandem/sys/module.h>

#include "runtime/backends/nccl/nccl_comm.h"

static const tdm_host_calls *host_calls; /* init writes the same value every time */

const tdm_host_calls *tdm__nccl_host(void) {
    return __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE);
}

const char *tdm__nccl_variable(const char *name) {
    const tdm_host_calls *host = tdm__nccl_host();
    if (host == NULL || host->size < offsetof(tdm_host_calls, environment) + sizeof(host->environment)) return NULL;
    return host->environment != NULL ? host->environment(name) : NULL;
}

static void init(const tdm_host_calls *calls) {
    __atomic_store_n(&host_calls, calls, __ATOMIC_RELEASE);
}

static int probe(char *text, size_t bytes) {
    char version[TDM_NCCL_VERSION_TEXT];
    const tdm_nccl_library *nccl = tdm__nccl_library(text, bytes);
    if (nccl == NULL) return 0;
    tdm__nccl_version_print(version, nccl->version);
    const char *trouble = tdm__nccl_version_trouble(nccl->version);
    snprintf(text, bytes, "NCCL %s%s%s", version, trouble != NULL ? "; " : "", trouble != NULL ? trouble : "");
    return 1;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .size = sizeof(tdm_module),
    .name = "nccl",
    .probe = probe,
    .init = init,
    .comm = &tdm__nccl_ops,
};
