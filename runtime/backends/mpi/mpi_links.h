/* Whether the hosts of other ranks still answer, as the kernel sees it: MPI itself waits for a cut connection as long
 * as for a slow one. */
#ifndef TDM_BACKENDS_MPI_LINKS_H
#define TDM_BACKENDS_MPI_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include <tandem/host.h>

enum { MPI_LINKS_RANKS = 256 }; /* of a job, at most */

typedef struct mpi_links mpi_links;

/* Collective over `comm`: ranks tell each other the addresses of their hosts. NULL: there is no memory. */
mpi_links *tdm__mpi_links_open(const tdm_host *host, MPI_Comm comm, int rank, int world, int64_t silence_ms);
void tdm__mpi_links_close(mpi_links *links); /* NULL is fine */

/* A message of this rank has come. tdm__mpi_links_see looks for the connection to the host of each rank of which the
 * first has: only a connection that was there can be missed. One thread at a time, as below. */
void tdm__mpi_links_heard(mpi_links *links, int rank);
void tdm__mpi_links_see(mpi_links *links);

/* A rank to whose host a connection of this process has sent data that has not been acknowledged for silence_ms, or
 * to whose host there is no connection any more; -1: there is none. Of the ranks of that host one for which
 * is_waited_for[rank] is set, if there is one. The kernel acknowledges, so a rank that is busy or stopped is no such
 * rank. Looks a few times a second at most; one thread at a time. */
int tdm__mpi_links_lost(mpi_links *links, const bool *is_waited_for);

#endif
