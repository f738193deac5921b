/* Two levels: ranks of one host meet in shared memory, and only what they have in common goes between hosts.
 *
 * The first `lanes` ranks of each host, as many as the host with the fewest has, form a column each with those of the
 * same local rank. In an all_reduce the data has a segment for each column. First each rank of a column reduces its
 * segment over the ranks of its host; then the column reduces it between the hosts; and then the ranks of a host give
 * each other the segments.
 *
 * Sums are a tree over ranks (base/tree.h). A host forms the values of the largest subtrees within its ranks, and these
 * go between hosts: one where all hosts have the same power of two of ranks, else at most 2 log2(ranks). So it sends no
 * more than the tree permits. Values of 16 bits go as floats, because they are rounded only at the end. What is needed
 * is that hosts have their ranks one after another; else there are no levels. */
#ifndef TDM_COMM_HOSTS_LEVELS_H
#define TDM_COMM_HOSTS_LEVELS_H

#include "runtime/comm/group.h"
#include "runtime/comm/hosts/hosts.h"

typedef struct tdm_levels {
    int hosts, host, local,
        locals;              /* how many, and this rank's; its number among the ranks of its host, and how many */
    int lanes, most;         /* the fewest and the most ranks of a host */
    int *first;              /* the first rank of each host; [hosts]: the world */
    tdm_lanes blocks;        /* of this host: by local ranks */
    tdm_hosts_blocks all;    /* of all hosts: by ranks */
    tdm_hosts_comm *column;  /* NULL: this rank is in none */
    tdm_hosts_entry *padded; /* `most` for each host; only of the first rank of a host */
} tdm_levels;

/* Makes the levels of `c`, the communicator over all ranks, if its hosts have them. Collective. `peer`: of each rank.
 * `job` tells the job from others on this host. */
tdm_status tdm__levels_open(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms);

/* The first is how ranks agree on the call (hosts.h), the others follow it. */
tdm_status tdm__levels_exchange_entries(tdm_hosts_comm *c);
bool tdm__levels_can_reduce(const tdm_hosts_comm *c, const tdm_reduction *how);
tdm_status tdm__levels_all_reduce(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how);
tdm_status tdm__levels_broadcast(tdm_hosts_comm *c, tdm_span io, int root);

#endif
