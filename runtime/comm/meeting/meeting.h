/* How ranks on several hosts find each other: rank 0 listens at a TCP port, and each of the others connects to it and
 * keeps the connection (hub.h).
 *
 * A stranger may reach the port. Until a visitor has proved that it knows the job's secret, at most one hello of fixed
 * size is read from it, and nothing that it says has an effect. Without a secret the same proof is made with an empty
 * one, which keeps out other jobs and garbage but no attacker. */
#ifndef TDM_COMM_MEETING_MEETING_H
#define TDM_COMM_MEETING_MEETING_H

#include <tandem/comm.h>

#include "runtime/comm/meeting/secret.h"
#include "runtime/comm/meeting/socket.h"

enum { TDM_PEER_NAME = 64 };

/* What all ranks know of each one. Messages name it: "rank 3 (host b, pid 17)". */
typedef struct tdm_peer {
    char name[TDM_PEER_NAME]; /* of its host */
    int32_t pid;
    int32_t local_rank, local_world; /* as its launcher says */
    uint64_t host;                   /* hash of what tells its host and user from others */
    uint64_t token;                  /* a random number */
} tdm_peer;

typedef struct tdm_meeting {
    const tdm_host *host;
    int rank, world;
    uint64_t job; /* hash of what tells this job from others; equal on all its ranks */
    tdm_secret secret;
    tdm_endpoint at;                  /* where rank 0 listens */
    const char *file;                 /* where rank 0 writes that, on a disk that all ranks see; NULL: all know it */
    int listener;                     /* rank 0: an open listener, which stays the caller's */
    int64_t timeout_ms, heartbeat_ms; /* heartbeat 0: none */
    const char *failure;              /* why this rank will not take part: the others then fail; NULL: it does */
    /* Results, with `world` elements, of the caller's. fd: rank 0 gets a connection to each rank, the others one to
     * rank 0, in fd[0]; the caller closes them, after a failure, too. */
    int *fd;
    tdm_peer *peer;
} tdm_meeting;

/* Returns when all ranks have come, or with the same failure on all that have. */
tdm_status tdm__meeting_hold(tdm_meeting *meeting); /* by rank 0 */
tdm_status tdm__meeting_join(tdm_meeting *meeting); /* by the others */

#endif
