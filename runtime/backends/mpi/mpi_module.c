/* libtandem-mpi.so: messages between hosts with the MPI that was there when it was built. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <tandem/sys/module.h>

#include "runtime/backends/kit/module_host.h"
#include "runtime/backends/mpi/mpi_transport.h"

static int probe(char *text, size_t bytes) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) {
        snprintf(text, bytes, "MPI does not say which version it is");
        return 0;
    }
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;) *tab = ' '; /* MPICH's */
    snprintf(text, bytes, "%s", version);
    return 1;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "mpi",
    .probe = probe,
    .init = tdm__module_init,
    .transport = &tdm__mpi_ops,
};
