/* libtandem-gloo.so: messages between hosts over TCP, with Gloo. */
#include <stdio.h>

#include <tandem/sys/module.h>

#include "runtime/backends/gloo/gloo_transport.h"
#include "runtime/backends/kit/module_host.h"

static int probe(char *text, size_t bytes) {
    snprintf(text, bytes, "Gloo %s, TCP", TDM_GLOO_VERSION);
    return 1;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "gloo",
    .probe = probe,
    .init = tdm__module_init,
    .transport = &tdm__gloo_ops,
};
