/* dp's replicas in parallel, as torch.nn.parallel.parallel_apply: a thread for each replica, and the order between
 * their devices' queues.
 *
 * A thread queues its replica's work on its device. A call ends when all threads have, and the queues wait for one
 * another with events. So the work of a call begins when all replicas have ended that of the call before it, and the
 * host waits for no device. The CPU runs work when it is queued: there the events do nothing, and the threads alone
 * give the order. */
#ifndef TDM_MODES_PARALLEL_APPLY_H
#define TDM_MODES_PARALLEL_APPLY_H

#include "runtime/base/system/sync.h"
#include "runtime/exec/replica.h"

typedef tdm_status (*tdm_replica_fn)(void *user, int replica);

typedef struct tdm_team_member {
    tdm_worker *worker;      /* NULL with one replica: it runs on the caller's thread */
    tdm_device_event *event; /* NULL with one replica */
} tdm_team_member;

typedef struct tdm_team {
    const tdm_host *host;
    int count;
    tdm_replica *const *replica;
    tdm_team_member *member;
    bool reaches; /* kernels of every device can read and write the memory of every other */
} tdm_team;

/* The replicas are open, and stay open until the team is closed. */
tdm_status tdm__team_open(tdm_team *team, const tdm_host *host, tdm_replica *const *replica, int count);
void tdm__team_close(tdm_team *team); /* zeroed is fine */
/* Calls fn for every replica, each in its thread; work that is queued later runs after all of it. While work is being
 * captured, the calling thread, which owns the capture, makes all calls. Reports the failing replica with the lowest
 * index. */
tdm_status tdm__parallel_apply(tdm_team *team, tdm_replica_fn fn, void *user);
/* Calls fn for every replica, one after another on the calling thread. The queues do not wait. */
tdm_status tdm__apply_in_turn(tdm_team *team, tdm_replica_fn fn, void *user);
/* join: replica 0's queue waits for all others. fork: all others wait for replica 0's. sync: both, in this order. */
tdm_status tdm__queues_join(tdm_team *team);
tdm_status tdm__queues_fork(tdm_team *team);
tdm_status tdm__queues_sync(tdm_team *team);

#endif
