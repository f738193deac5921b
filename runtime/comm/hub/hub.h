/* The connections that ranks on several hosts keep between them, for everything but data: heartbeats, the first cause
 * of a job's end, who has left, what a wait is for. They form a star: rank 0 is the hub, and each of the others has one
 * connection to it. One thread of each process serves them.
 *
 * A rank whose process ends is found at once, because its connection closes; one that is stopped, or whose link is cut,
 * by its silence. Whatever the hub hears first ends the job on all ranks with the same cause. A rank that cannot reach
 * the hub ends by itself. */
#ifndef TDM_COMM_HUB_HUB_H
#define TDM_COMM_HUB_HUB_H

#include "runtime/comm/call.h"
#include "runtime/comm/meeting/meeting.h"

enum { TDM_NAME_TEXT = TDM_PEER_NAME + 48 };

typedef struct tdm_hub tdm_hub;

/* A call of a group, told from all other calls of the job: the group's number, its first rank, the call's number. */
typedef struct tdm_hub_call {
    int32_t group, first;
    uint64_t sequence;
} tdm_hub_call;

/* Why a job has ended. TDM_E_COMM, or another status: a verdict, which only the call that it is on returns. */
typedef struct tdm_hub_cause {
    int32_t status;
    tdm_hub_call judged;
    char why[TDM_CAUSE_TEXT];
} tdm_hub_cause;

/* "rank 1 (host b, pid 12)" */
void tdm__hub_name(const tdm_hub *hub, int rank, char out[TDM_NAME_TEXT]);

/* How long a connection may be silent; a little less than the heartbeat, which messages name. 0: without limit. A
 * transport's connections may be silent for as long: then the hub speaks of a stopped host first (tdm__hub_settle). */
int64_t tdm__hub_silence_ms(const tdm_meeting *meeting);

/* Takes over the connections of a meeting, also if it fails. */
tdm_status tdm__hub_open(tdm_hub **out, const tdm_meeting *meeting);
/* Every rank gives `bytes` for each rank and gets those that each rank gave for it. Before tdm__hub_start only. */
tdm_status tdm__hub_all_to_all(tdm_hub *hub, const void *to, void *from, size_t bytes, int64_t deadline_ns);
/* Starts the thread. It calls on_end once when the job has ended; it must not wait. */
tdm_status tdm__hub_start(tdm_hub *hub, void (*on_end)(void *user), void *user);

/* Says that this rank is connected to all others, and waits until all are. What ends the job afterwards does not make
 * this call fail on any rank. */
tdm_status tdm__hub_await_all(tdm_hub *hub, int64_t timeout_ms);

/* ---- the end of a job; any thread ---- */

/* Asks the hub to end the job. The hub keeps the first cause that it hears. */
void tdm__hub_end(tdm_hub *hub, const char *why);
/* The same with a verdict, which all ranks that make this call come to by themselves. */
void tdm__hub_judge(tdm_hub *hub, tdm_status status, tdm_hub_call judged, const char *why);
void tdm__hub_abort(tdm_hub *hub);                           /* "rank N called abort"; async-signal-safe */
bool tdm__hub_has_ended(tdm_hub *hub, tdm_hub_cause *cause); /* never waits */
/* After a failure of this rank: waits until the job has ended. If nobody ends it within a second, `why` does. */
void tdm__hub_settle(tdm_hub *hub, const char *why, tdm_hub_cause *cause);

void tdm__hub_note_call(tdm_hub *hub, const tdm_call *call); /* this rank's last call, for messages of all ranks */

/* ---- waits, which the thread ends when they are in vain ---- */

typedef struct tdm_hub_wait {
    struct tdm_hub_wait *next;
    const tdm_call *call;
    const int *job_rank; /* of the group's members */
    int world, rank;     /* of the group */
    const bool *peers;   /* point to point: for which members; NULL: the call says it */
    int64_t start_ns, timeout_ms;
} tdm_hub_wait;
void tdm__hub_wait_begin(tdm_hub *hub, tdm_hub_wait *wait);
void tdm__hub_wait_end(tdm_hub *hub, tdm_hub_wait *wait);

/* ---- leaving ---- */

/* Tells the others that this rank makes no more calls, and waits until all have said so or the job has ended: a
 * transport needs both of its ends until then. At most timeout_ms. */
void tdm__hub_leave(tdm_hub *hub, int64_t timeout_ms);
void tdm__hub_close(tdm_hub *hub); /* NULL is fine */

#endif
