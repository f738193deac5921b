/* Two levels: ranks of one host meet in shared memory, and only what they have in common goes between hosts.
 *
 * Ranks with the same local rank form a column. In an all_reduce the ranks of each host first reduce among
 * themselves, each one segment of the data. Then each column reduces its segment between the hosts; and then the ranks of
 * a host give each other their segments. So a host sends what a single rank would.
 *
 * Sums are a tree over ranks (reduce.h), of which the ranks of a host must be a branch: else its partial sums are not in
 * the result. So there are levels only if all hosts have the same number of ranks, a power of two, one after another. */
#ifndef TDM_COMM_HOSTS_LEVELS_H
#define TDM_COMM_HOSTS_LEVELS_H

#include "runtime/comm/hosts/hosts.h"

/* Makes the levels of `c`, the communicator over all ranks, if its hosts have them. Collective. `peer`: of each rank.
 * `job` tells the job from others on this host. */
tdm_status tdm__levels_open(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms);

/* The first is how ranks agree on the call (hosts.h), the others follow it. */
tdm_status tdm__levels_exchange_entries(tdm_hosts_comm *c);
bool tdm__levels_can_reduce(const tdm_hosts_comm *c, const tdm_reduction *how);
tdm_status tdm__levels_all_reduce(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how);
tdm_status tdm__levels_broadcast(tdm_hosts_comm *c, tdm_span io, int root);

#endif
