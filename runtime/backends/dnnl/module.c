/* libtandem-dnnl.so: kernels for the CPU with oneDNN, opened at run time where oneDNN is installed. */
#include <stdio.h>

#include "runtime/backends/dnnl/kit/dnnl.h"

static int probe(char *text, size_t bytes) {
    static const char *const isas[TDM_ISA_COUNT] = {"plain", "AVX2", "AVX-512"};
    const dnnl_version_t *version = dnnl_version();
    if (version->major != DNNL_VERSION_MAJOR) {
        snprintf(text, bytes, "built for oneDNN %d, found %d.%d.%d; build tandem on this system", DNNL_VERSION_MAJOR,
                 version->major, version->minor, version->patch);
        return 0;
    }
    if (version->cpu_runtime == DNNL_RUNTIME_NONE) {
        snprintf(text, bytes, "oneDNN %d.%d.%d was built without CPU kernels", version->major, version->minor,
                 version->patch);
        return 0;
    }
    snprintf(text, bytes, "oneDNN %d.%d.%d, %s passes, channels in blocks of %d%s", version->major, version->minor,
             version->patch, isas[tdm__isa()], (int)tdm__dnnl_channel_block(), tdm__has_fast_bf16() ? ", bf16" : "");
    return 1;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "dnnl",
    .probe = probe,
    .init = tdm__module_init,
    .kernels = tdm__dnnl_kernels,
    .thread_begin = tdm__dnnl_thread_begin,
    .rest = tdm__dnnl_rest,
    .process_bytes = TDM_DNNL_PROCESS_BYTES,
};
