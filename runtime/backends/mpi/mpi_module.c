/* libtandem-mpi.so: messages between hosts with the MPI that was there when it was built. */
#include <stdio.h>

#include <tandem/sys/module.h>

#include "runtime/backends/kit/module_host.h"
#include "runtime/backends/mpi/mpi_transport.h"

static int probe(char *text, size_t bytes) {
    if (tdm__mpi_version(text, bytes)) return 1;
    snprintf(text, bytes, "MPI does not say which version it is");
    return 0;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "mpi",
    .probe = probe,
    .init = tdm__module_init,
    .transport = &tdm__mpi_ops,
};
