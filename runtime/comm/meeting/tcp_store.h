/* A client of PyTorch's TCPStore, the key-value store that torchrun's agent serves to its workers. Ranks under torchrun
 * cannot listen at MASTER_PORT, for the agent does. Rank 0 publishes in the store where it listens, and the others read
 * it there.
 *
 * Speaks to PyTorch 1.13 and later, with and without libuv. Keys are those of a torch.distributed.TCPStore; a
 * PrefixStore puts "prefix/" before them. One thread at a time. Every wait ends at a deadline (of tdm__now_ns), but for
 * the look-up of the host's name, which the system's resolver ends. A failed call ends the connection: later calls fail
 * at once. Failures are TDM_E_COMM. */
#ifndef TDM_COMM_MEETING_TCP_STORE_H
#define TDM_COMM_MEETING_TCP_STORE_H

#include "runtime/comm/meeting/socket.h"

/* VALUE_MAX: what PyTorch's own server takes. */
enum { TDM_STORE_KEY_MAX = 256, TDM_STORE_VALUE_MAX = 8 << 20 };

typedef struct tdm_tcp_store tdm_tcp_store;

/* Tries again until the deadline, for the agent may start later. Borrows `host`. */
tdm_status tdm__tcp_store_open(tdm_tcp_store **out, const tdm_endpoint *at, const tdm_host *host, int64_t deadline_ns);
void tdm__tcp_store_close(tdm_tcp_store *store); /* NULL is fine */

/* Returns when the store has the value. An older value of the key is replaced. */
tdm_status tdm__tcp_store_set(tdm_tcp_store *store, const char *key, const void *value, size_t bytes,
                              int64_t deadline_ns);
/* Waits until somebody has set the key. *bytes: the room in `value`, then the value's length; one that is longer than
 * the room is refused. */
tdm_status tdm__tcp_store_get(tdm_tcp_store *store, const char *key, void *value, size_t *bytes, int64_t deadline_ns);

#endif
