/* The call table of MPI's transport. */
#ifndef TDM_BACKENDS_MPI_TRANSPORT_H
#define TDM_BACKENDS_MPI_TRANSPORT_H

#include <tandem/sys/transport.h>

extern const tdm_transport_ops tdm__mpi_ops;

/* The MPI that the module was built with, and its version. False: it does not say. */
bool tdm__mpi_version(char *text, size_t bytes);

#endif
