/* A communicator over several hosts: collectives made from the messages of a transport (gloo, mpi).
 *
 * Every collective begins with its ranks agreeing on the call: the entry of each (the call, and small data itself) goes
 * to all others. So all find out whether the calls are equal before any data moves, and small data needs nothing more. */
#ifndef TDM_COMM_HOSTS_HOSTS_H
#define TDM_COMM_HOSTS_HOSTS_H

#include <stdatomic.h>

#include <tandem/sys/transport.h>

#include "runtime/comm/hub/hub.h"

enum {
    TDM_HOSTS_ENTRY_BYTES = 448,             /* data up to this size travels in the entry */
    TDM_HOSTS_CHUNK_BYTES = 4 * 1024 * 1024, /* of the data that is reduced at a time */
    /* To so many members messages go directly, which is the least to wait for. Between more, messages cost more than
     * that: entries go in rounds, and data up to this size through a tree. */
    TDM_HOSTS_FEW = 16,
    TDM_HOSTS_TREE_BYTES = 64 * 1024,
    TDM_HOSTS_GROUPS = TDM_TAGS / 8 /* groups of one job */
};

/* The numbers of groups: that of all ranks, the columns (levels.h), and the first of `split`. */
enum { TDM_GROUP_ALL, TDM_GROUP_COLUMNS, TDM_GROUP_FIRST };

typedef struct tdm_hosts_entry {
    tdm_call call;
    unsigned char data[TDM_HOSTS_ENTRY_BYTES];
} tdm_hosts_entry;

/* What all communicators of a job have in common. The last one closes it. */
typedef struct tdm_hosts_job {
    const tdm_host *host;
    tdm_comm_ops ops; /* of its communicators: the transport names them */
    atomic_int users;
    tdm_hub *hub;
    tdm_transport *transport;
    _Atomic(tdm_comm *) inside; /* over the ranks of this host, in shared memory; NULL: there is none */
    int64_t timeout_ms;
    atomic_int next_group;
    _Atomic(struct tdm_hosts_block *) blocks; /* hosts_memory.c */
} tdm_hosts_job;

/* The subtrees of ranks whose values the members of a column bring. */
typedef struct tdm_hosts_blocks {
    int ranks, count;     /* of the ranks; of the blocks of all members */
    bool is_even;         /* each member brings one block, and these are a tree like that of ranks */
    const int *of_member; /* the number of each member's first block; [world]: count */
    const int *first;     /* the first rank of each block */
} tdm_hosts_blocks;

typedef struct tdm_hosts_comm {
    tdm_comm comm; /* must be first */
    tdm_hosts_job *job;
    int *job_rank; /* of each member */
    int group;     /* its number, equal on all members and different in all groups that share a rank */
    tdm_call call; /* the call in flight */
    int64_t start_ns;
    struct tdm_levels *levels;      /* of the communicator over all ranks; NULL: calls go between all ranks alike */
    const tdm_hosts_blocks *blocks; /* of a column (levels.h); NULL: a member brings its own values */
    unsigned char *sums;    /* of a column: this member's values, block after block, each as long as the call's span;
                                      * NULL: it has one block, whose values are in the span */
    tdm_hosts_entry *entry; /* of each member, in the current call */
    bool shares_entries;    /* they are in memory of `inside` */
    /* Where the others' entries of this call and the next one come in, in turn, and the bytes of a member's. NULL until
     * the first call. */
    unsigned char *arrivals;
    size_t arrival_bytes;
    int turn;
    tdm_message *message; /* room for four to each member at least */
    size_t message_room;
    const bool *peers; /* point to point: for which members this rank waits; NULL: the call says it */
    unsigned char *scratch;
    size_t scratch_bytes;
} tdm_hosts_comm;

/* What a message is for: part of its tag. */
typedef enum tdm_hosts_use {
    TDM_USE_ENTRY,
    TDM_USE_DATA,
    TDM_USE_RESULT,
    TDM_USE_HEAD,
    TDM_USE_BODY,
    TDM_USE_TAKEN
} tdm_hosts_use;

enum { TDM_SENDS = 1, TDM_RECEIVES = 2 }; /* bits: which of some messages */

/* Takes over the hub and the transport. */
tdm_status tdm__hosts_job_new(tdm_hosts_job **out, const tdm_host *host, tdm_hub *hub, tdm_transport *transport,
                              int64_t timeout_ms);
void tdm__hosts_job_release(tdm_hosts_job *job); /* NULL is fine */
/* A communicator of `world` ranks of the job; job_rank says which (NULL: all). */
tdm_status tdm__hosts_comm_new(tdm_hosts_comm **out, tdm_hosts_job *job, int rank, int world, int group,
                               const int *job_rank);
void tdm__hosts_comm_free(tdm_hosts_comm *c); /* NULL is fine */

/* ---- hosts_memory.c ---- */

/* Memory of this process that stays until the job's transport is closed: what `allocate` returns, whose spans are sent
 * from where they lie, like all others; and that into which messages may still come when a communicator is closed. */
tdm_status tdm__hosts_memory_new(tdm_hosts_job *job, size_t bytes, void **out);
void tdm__hosts_memory_delete(tdm_hosts_job *job); /* all */

/* ---- hosts_messages.c ---- */

/* `bytes` to or from a member; the order of messages of one use between two ranks is that of the calls. */
tdm_message tdm__hosts_send(const tdm_hosts_comm *c, int member, tdm_hosts_use use, const void *data, size_t bytes);
tdm_message tdm__hosts_receive(const tdm_hosts_comm *c, int member, tdm_hosts_use use, void *data, size_t bytes);
/* Begins those of the first `count` of c->message that `which` says: a later exchange of the same messages finishes
 * them. A receive should be begun as soon as its size is known, because Gloo sends a message only when it knows that
 * the other end waits for it: to tell it that while it still computes saves half of what a message takes on its way. */
void tdm__hosts_begin(tdm_hosts_comm *c, int count, int which);
/* After a failed call: its memory is the caller's again. */
void tdm__hosts_forget(tdm_hosts_comm *c);
/* Carries out the first `count` of c->message. A failure is the end of the job. */
tdm_status tdm__hosts_exchange(tdm_hosts_comm *c, int count);
/* What this call waits for, for the hub; and the end of a wait that has failed: how the job has ended. */
tdm_hub_wait tdm__hosts_wait_of(const tdm_hosts_comm *c);
tdm_status tdm__hosts_settle(const tdm_hosts_comm *c);
tdm_status tdm__hosts_message_room(tdm_hosts_comm *c, size_t count); /* makes room for so many */
tdm_status tdm__hosts_scratch(tdm_hosts_comm *c, size_t bytes);
/* TDM_OK, or how the job has ended. */
tdm_status tdm__hosts_check(const tdm_hosts_comm *c);
/* Returns the status, to which every member comes for this call. Not TDM_OK: it ends the job; a member that learns that
 * from the hub before it has all entries returns the same. */
tdm_status tdm__hosts_judge(const tdm_hosts_comm *c, tdm_status status);

/* ---- hosts_mail.c: point to point ---- */

tdm_status tdm__hosts_batch(tdm_comm *comm, const tdm_transfer *transfers, size_t count);
tdm_status tdm__hosts_receive_any(tdm_comm *comm, tdm_span out, int *from);

/* ---- hosts_entries.c ---- */

/* Block r of `blocks` goes from member r to all others. */
tdm_status tdm__hosts_exchange_blocks(tdm_hosts_comm *c, void *blocks, size_t bytes);

/* ---- hosts_agree.c ---- */

/* Begins a collective: see above. `small` bytes of `data` travel along if they fit. */
tdm_status tdm__hosts_agree_on_call(tdm_hosts_comm *c, const void *data, size_t small);

/* ---- hosts_data.c ---- */

/* Begins the receives of an all_reduce or reduce, if possible before the ranks have agreed on the call;
 * tdm__hosts_reduce_data of the same must follow. */
tdm_status tdm__hosts_begin_reduction(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how);
/* What a rank needs to reduce `count` numbers of `width` bytes between ranks of which each has one copy. */
size_t tdm__hosts_reduction_bytes(int world, size_t count, size_t width);
/* The data of an all_reduce or reduce, and of a broadcast, after the ranks have agreed on the call. */
tdm_status tdm__hosts_reduce_data(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how);
void tdm__hosts_begin_broadcast(tdm_hosts_comm *c, void *data, size_t bytes, int root); /* may come before that */
tdm_status tdm__hosts_broadcast_data(tdm_hosts_comm *c, void *data, size_t bytes, int root);

/* ---- hosts_tree.c: the same for small data among many members ---- */

bool tdm__hosts_prefers_tree(const tdm_hosts_comm *c, size_t bytes);
tdm_status tdm__hosts_reduce_in_tree(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how);
tdm_status tdm__hosts_broadcast_in_tree(tdm_hosts_comm *c, void *data, size_t bytes, int root);

/* ---- hosts_call.c ---- */

tdm_status tdm__hosts_run(tdm_comm *comm, const tdm_comm_call *call);
/* Records a call, and the time from which its deadline counts. */
void tdm__hosts_enter(tdm_hosts_comm *c, const tdm_call *call);
/* A failure of this rank ends the job. */
tdm_status tdm__hosts_leave(tdm_hosts_comm *c, tdm_status status);

#endif
