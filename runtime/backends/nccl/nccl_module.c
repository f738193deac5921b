/* libtandem-nccl.so: collectives between GPUs with NVIDIA's NCCL, which is opened at run time if it is installed. */
#include <stdio.h>

#include <tandem/sys/module.h>

#include "runtime/backends/nccl/nccl_comm.h"

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
    .name = "nccl",
    .probe = probe,
    .init = tdm__module_init,
    .comm = &tdm__nccl_ops,
};
