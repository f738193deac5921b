/* What hub.c, hub_connections.c and hub_wait.c share. */
#ifndef TDM_COMM_HUB_PRIVATE_H
#define TDM_COMM_HUB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/base/system/sync.h"
#include "runtime/comm/hub/hub.h"

enum { TDM_BEAT_MS = 200, TDM_CONNECTION_BYTES = 8192 };

/* One connection. What cannot be sent at once waits in `out`. */
typedef struct tdm_connection {
    int fd; /* -1: closed */
    size_t in_bytes, out_bytes;
    int64_t silent_ns; /* since the last frame, while this process ran */
    unsigned char in[TDM_CONNECTION_BYTES], out[TDM_CONNECTION_BYTES];
} tdm_connection;

typedef enum tdm_frame_kind {
    TDM_FRAME_BEAT = 1, /* to the hub: this rank's last call; from the hub: the last calls of all ranks */
    TDM_FRAME_END,      /* tdm_hub_end */
    TDM_FRAME_LEFT,     /* to the hub: this rank has left; from the hub: the rank with this number has */
    TDM_FRAME_BYE,      /* from the hub: all have left */
    TDM_FRAME_READY,    /* to the hub: this rank is connected to all */
    TDM_FRAME_START     /* from the hub: all are */
} tdm_frame_kind;

typedef struct tdm_frame {
    uint32_t kind, bytes; /* of what follows */
} tdm_frame;

struct tdm_hub {
    const tdm_host *host;
    int rank, world;
    int64_t silence_ms; /* 0: none counts */
    pid_t owner;
    tdm_peer *peer;
    tdm_connection *connection; /* rank 0: one for each rank, its own closed; the others: one */
    int connections;
    struct pollfd *entry;
    int wake;
    tdm_worker *worker;
    _Atomic uint64_t *last_call; /* of each rank: sequence * 2^8 + kind; 0: none yet */
    atomic_bool is_aborted, is_ready, is_leaving, is_closing;
    void (*on_end)(void *user);
    void *user;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    tdm_hub_wait *waits;
    int64_t *left_ns; /* when each rank left; 0: it has not */
    int present;      /* ranks that have not left */
    int unready;      /* hub: ranks that are not ready yet */
    bool told_ready;  /* this rank has said that it is */
    bool may_start;   /* all are ready, and this rank knows it */
    bool may_go;      /* all have left, and this rank knows it */
    bool is_proposed, is_sent, has_ended;
    int64_t proposed_ns;
    tdm_hub_cause proposal, cause;
};

/* ---- hub_connections.c: frames, and what they mean ---- */

/* Sends a frame now or as soon as the connection takes it. False: it is broken. */
bool tdm__connection_send(tdm_connection *c, tdm_frame_kind kind, const void *data, size_t bytes);
/* Sends what waits. False: it is broken. */
bool tdm__connection_flush(tdm_connection *c);
/* Gets what has arrived; calls `on_frame` for each whole frame. False: the connection is closed, broken, or says
 * nonsense. */
bool tdm__connection_receive(tdm_connection *c,
                             void (*on_frame)(tdm_hub *hub, int from, tdm_frame frame, const void *data), tdm_hub *hub,
                             int from);

/* ---- hub_wait.c ---- */

/* Is a wait in vain, past its deadline or for a rank that has left? The mutex is held. */
bool tdm__hub_find_vain_wait(const tdm_hub *hub, int64_t now_ns, char why[TDM_CAUSE_TEXT]);

#endif
