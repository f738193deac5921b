/* tandem/sys/transport.h - carries messages between ranks on several hosts. For writers of backends (gloo, mpi).
 *
 * A transport moves bytes and computes nothing: tandem makes its collectives from messages, so that sums have the same
 * order over every transport. tandem's own connections between the ranks tell who has
 * died or left.
 *
 * Threads: several threads may call `exchange` at once, with different tags; any thread may call `abort`. */
#ifndef TANDEM_SYS_TRANSPORT_H
#define TANDEM_SYS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

TDM_BEGIN_DECLS

enum { TDM_TAGS = 1 << 15 }; /* tags are below this: the least that MPI promises */

/* One message. A receive gets the message that its peer sends with the same tag; both must say the same size. Messages
 * from one rank to another with one tag arrive in the order in which they were sent. */
typedef struct tdm_message {
    bool sends;     /* else it receives */
    int peer;       /* its rank; not used if `any` is set */
    const int *any; /* receives: from whichever of these ranks sends first; NULL: from `peer` */
    int any_count;
    int *from; /* receives from any: gets the sender's rank */
    uint32_t tag;
    void *data; /* only read if it sends */
    size_t bytes;
} tdm_message;

typedef struct tdm_transport tdm_transport;

typedef struct tdm_transport_ops {
    const char *name; /* "gloo" */
    /* Bytes that a rank must know of another one to connect to it. 0: ranks are connected when `open` returns, and have
     * their numbers from the transport's own launcher. */
    size_t address_bytes;
    /* Opens the end of `rank` among `world`. `interface` is the numeric address at which this host is reached; the
     * peers connect within timeout_ms. A connection whose other end's host has not answered for silence_ms is lost (0:
     * never). `addresses` gets, for each rank, the address_bytes that it needs. */
    tdm_status (*open)(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                       int64_t timeout_ms, int64_t silence_ms, void *addresses);
    /* Connects to all ranks: part r of `addresses` is what rank r's `open` wrote for this rank. NULL: address_bytes is
     * 0. */
    tdm_status (*connect)(tdm_transport *transport, const void *addresses);
    /* Sends and receives all `count` messages, and returns when the memory of all is the caller's again. Has no
     * deadline: tandem calls `abort` when a peer is lost or late. After a failure the transport can only be closed, and
     * `lost` is the peer with which a message failed; -1: that is not known. */
    tdm_status (*exchange)(tdm_transport *transport, const tdm_message *message, int count, int *lost);
    /* Begins messages, none from any, that a later `exchange` names again, with the same memory, and finishes. Their
     * memory is the transport's until that has returned. They go on whatever the next calls of `exchange` wait for. The
     * next `exchange` reports a failure. */
    void (*begin)(tdm_transport *transport, const tdm_message *message, int count);
    /* Drops what was begun with this tag and not finished, after a failure: its memory is the caller's again. */
    void (*forget)(tdm_transport *transport, uint32_t tag);
    /* Makes all calls of `connect` and `exchange` end, those in progress and later ones; `exchange` fails. */
    void (*abort)(tdm_transport *transport);
    void (*close)(tdm_transport *transport); /* NULL is fine */
} tdm_transport_ops;

/* A transport's own struct begins with this one. */
struct tdm_transport {
    const tdm_transport_ops *ops;
    const tdm_host *host;
    int rank, world;
};

TDM_END_DECLS
#endif
