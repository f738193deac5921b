/* The crew of dp: its replicas doing one thing at once, a thread each, and the order between their devices' queues.
 *
 * A thread puts its replica's work on its device's queue. Threads are joined before the next phase, and queues wait for
 * each other by events; so a phase begins when all replicas have done the one before it, and the host waits for no
 * device. On the CPU, a queue that runs at once, the events mean nothing and the threads are all there is. */
#ifndef TDM_MODES_DP_CREW_H
#define TDM_MODES_DP_CREW_H

#include "runtime/base/system/sync.h"
#include "runtime/exec/replica.h"

typedef tdm_status (*dp_fn)(void *user, int replica);

typedef struct dp_member {
    dp_fn fn;
    void *user;
    int index;
    tdm_worker *worker;      /* NULL with one replica: it runs on the caller's thread */
    tdm_device_event *event; /* NULL with one replica */
} dp_member;

typedef struct dp_crew {
    const tdm_host *host;
    int count;
    tdm_replica *const *replica;
    dp_member *member;
    bool reaches; /* kernels of every device read and write the memory of every other */
} dp_crew;

/* The replicas are open, and closed after the crew. */
tdm_status tdm__crew_open(dp_crew *crew, const tdm_host *host, tdm_replica *const *replica, int count);
void tdm__crew_close(dp_crew *crew); /* zeroed is fine */
/* fn for every replica, each in its thread; what is put behind it runs when all are done. Within work that is being
 * captured the calling thread, which owns the capture, puts it all. The first failing replica, in their order, is
 * reported. */
tdm_status tdm__crew_each(dp_crew *crew, dp_fn fn, void *user);
/* fn for every replica, one after the other, for work that the calling thread puts in no time. Nothing waits. */
tdm_status tdm__crew_in_turn(dp_crew *crew, dp_fn fn, void *user);
/* Replica 0's queue waits for all others; all others wait for replica 0's; and the one behind the other. */
tdm_status tdm__crew_join(dp_crew *crew);
tdm_status tdm__crew_fork(dp_crew *crew);
tdm_status tdm__crew_meet(dp_crew *crew);

#endif
