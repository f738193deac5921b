/* What `local` and `shm` have in common: ranks, as threads or as processes, that reach one shared area.
 *
 * Ranks synchronize in rounds. In a round each rank writes its entry (its call, the address of its data, and small data
 * itself), announces the round, and waits until all ranks have announced it. Then it may read every entry.
 *
 * Entries and staging memory have two halves. Data of round n lies in half n % 2. A rank reads it before it announces
 * round n + 1. So after round n + 1 all ranks have read half n % 2, and round n + 2 may overwrite it.
 *
 * There are no locks, and no counter ever goes back. A rank may be killed at any instruction; the others still find out
 * which rank is missing. */
#ifndef TDM_COMM_GROUP_H
#define TDM_COMM_GROUP_H

#include <stdatomic.h>

#include "runtime/comm/call.h"

enum {
    TDM_ENTRY_BYTES = 2048,         /* data up to this size travels in the entry */
    TDM_MAIL_BYTES = 32 * 1024,     /* one half of a sender's mailbox */
    TDM_STAGING_BYTES = 512 * 1024, /* one half of a rank's staging memory */
    TDM_IN_PLACE_SPANS = 128,       /* spans whose addresses an entry holds */
    TDM_LINE = 64
};

/* Where peers find a rank's span. Region 0: peers cannot reach it. */
typedef struct tdm_peer_address {
    uint64_t region, offset;
} tdm_peer_address;

typedef struct tdm_entry {
    tdm_call call;
    tdm_peer_address address;
    _Alignas(TDM_LINE) unsigned char data[TDM_ENTRY_BYTES];
} tdm_entry;

/* What one rank sends to another: one message at a time. Numbers count messages, halves those of the sender's mailbox. */
typedef struct tdm_offer {
    _Alignas(TDM_LINE) _Atomic uint64_t number; /* of the last message; the sender writes this line */
    uint64_t count;
    int32_t dtype;
    tdm_peer_address address;
    _Atomic uint64_t filled;                      /* halves so far, over all messages */
    _Alignas(TDM_LINE) _Atomic uint64_t accepted; /* number of the last message begun; the receiver writes this line */
    _Atomic uint64_t taken;                       /* number of the last message received */
    _Atomic uint64_t drained;                     /* halves so far */
} tdm_offer;

/* The state of one rank in one group, in shared memory. Before the first round it is all zero. */
typedef struct tdm_seat {
    _Alignas(TDM_LINE) _Atomic uint64_t round; /* the last round that the rank announced */
    _Atomic uint64_t last_call;                /* sequence * 2^8 + kind of its last call, for messages */
    _Atomic uint32_t left;                     /* the rank has closed its end */
    _Atomic uint32_t touching;                 /* the rank is reading or writing other ranks' spans */
    tdm_entry entry[2];
} tdm_seat;

typedef enum tdm_process_state {
    TDM_PROCESS_ABSENT,
    TDM_PROCESS_JOINING,
    TDM_PROCESS_MEETING, /* rank 0 admits the others at the rendezvous. From here on the entry is filled in. */
    TDM_PROCESS_JOINED,
    TDM_PROCESS_LEFT
} tdm_process_state;

/* The process of a rank. Processes on one host watch one another. */
typedef struct tdm_process {
    _Alignas(TDM_LINE) _Atomic uint32_t state;
    int32_t pid;
    uint64_t start;        /* start time, which tells it from a later process with the same pid */
    uint64_t space;        /* the pid namespace: a pid means nothing in another one */
    _Atomic uint64_t beat; /* counts up while the process runs */
} tdm_process;

/* Shared by all ranks of a job, sub-groups included: one bell that wakes every waiting rank, and one cause of the
 * job's end. */
typedef struct tdm_control {
    char magic[8];
    uint32_t layout, world;
    tdm_process parent; /* the launcher; pid 0: there is none to watch */
    _Atomic uint64_t file_end;
    _Alignas(TDM_LINE) _Atomic uint32_t bell; /* counts up after every change that a rank may wait for */
    _Alignas(TDM_LINE) _Atomic uint32_t sleepers;
    _Alignas(TDM_LINE) _Atomic uint32_t ended; /* 1: `cause` is being written; 2: `cause` is complete */
    char cause[TDM_CAUSE_TEXT];
} tdm_control;

typedef struct tdm_group tdm_group;
typedef struct tdm_batch tdm_batch; /* mail.c */
typedef struct tdm_site tdm_site;
typedef struct tdm_watch tdm_watch;

/* A mapping that is freed together with its site. */
typedef struct tdm_mapping {
    struct tdm_mapping *next;
    void *base;
    size_t bytes;
} tdm_mapping;

/* How a backend allocates memory that all ranks reach. */
typedef struct tdm_site_ops {
    const tdm_comm_ops *comm_ops;
    /* Collective: maps stride * world zeroed bytes at *base. Rank r's part begins at r * stride. */
    tdm_status (*share)(tdm_group *group, size_t stride, unsigned char **base);
    void (*unmap)(tdm_site *site, void *base, size_t bytes);
    void (*free)(tdm_site *site);
} tdm_site_ops;

/* The shared area as one process sees it. All communicators of the job in this process share it; the last one frees
 * it. */
struct tdm_site {
    const tdm_site_ops *ops;
    const tdm_host *host;
    _Atomic int users;
    tdm_control *control;
    tdm_process *process; /* one for each rank of the job; NULL if the ranks are threads */
    int world;            /* number of ranks of the job */
    size_t page;          /* allocations are multiples of this */
    int64_t spin_ns;      /* how long a wait spins before it sleeps */
    _Atomic(tdm_mapping *) mappings;
    /* shm */
    int fd;
    size_t control_bytes;
    tdm_watch *watch; /* NULL: no other process to watch */
};

typedef struct tdm_region {
    unsigned char *base;
    size_t stride;
} tdm_region;

/* One rank's end of a group. Its members are the ranks of the group, numbered from 0. */
struct tdm_group {
    tdm_comm comm; /* must be first */
    tdm_site *site;
    tdm_seat *seat;     /* one for each member */
    tdm_offer *offer;   /* from each member to each: the receivers of one sender are neighbours */
    unsigned char *box; /* mailboxes of the members, 2 * TDM_MAIL_BYTES each; NULL: peers are reached directly */
    tdm_batch *batch;   /* messages under way; NULL: none */
    int *job_rank;      /* the rank of each member in the job */
    uint64_t round;
    int64_t deadline_ns; /* deadline of `call` */
    tdm_call call;       /* the call in flight */
    tdm_region *region;  /* results of `allocate`; tdm_peer_address counts them from 1 */
    size_t region_count, region_capacity;
    tdm_region staging;   /* staging memory; base is NULL until a call needs it */
    uint64_t *parts;      /* of an all_to_all_v: this rank's row, then those of all; NULL until a call needs it */
    char abort_cause[48]; /* formatted in advance, because abort may be called from a signal handler */
};

/* ---- control.c: the bell, waiting, the end of a job ---- */

int64_t tdm__spin_ns(int ranks);
/* Wakes waiting ranks after a change that they may wait for. */
void tdm__site_ring(tdm_site *site);
void tdm__control_ring(tdm_control *control, bool one_process);
/* Ends the job and wakes all waiting ranks. Only the first cause is kept. Async-signal-safe. */
void tdm__control_end(tdm_control *control, bool one_process, const char *cause);
bool tdm__site_ended(const tdm_site *site);
bool tdm__site_has_ended(const tdm_site *site, char *why, size_t bytes);
void tdm__site_release(tdm_site *site);
/* Unmaps `base` when the site is freed. */
tdm_status tdm__site_add_mapping(tdm_site *site, void *base, size_t bytes);

/* Must the wait go on for member `r`? Called repeatedly; must have no side effects. */
typedef bool (*tdm_missing_fn)(const tdm_group *group, int r);
/* Waits until no member is missing. Fails at the deadline of the call, if a missing member has left, or if the job has
 * ended. */
tdm_status tdm__group_wait(tdm_group *group, tdm_missing_fn missing);
/* Returns TDM_E_COMM; the message is the call in flight, then the cause of the job's end. */
tdm_status tdm__group_ended(tdm_group *group);

/* ---- group.c: rounds and calls ---- */

/* Makes a group without seats. Takes a reference to the site; after a failure it has released it again. */
tdm_status tdm__group_new(tdm_group **out, tdm_site *site, int rank, int world, int64_t timeout_ms);
void tdm__group_free(tdm_group *group); /* NULL is fine */
size_t tdm__seats_bytes(int world, bool boxes);
/* Uses `area`, tdm__seats_bytes zeroed bytes, as the seats of this group. */
void tdm__group_seat(tdm_group *group, void *area, bool boxes);

/* Records a call for messages and sets its deadline. */
void tdm__group_note(tdm_group *group, const tdm_call *call);
/* Starts a call: records it. TDM_E_COMM if the job has ended. */
tdm_status tdm__group_enter(tdm_group *group, const tdm_call *call);
/* Ends a call. If `status` is a failure, ends the job and waits until no peer uses the caller's memory. */
tdm_status tdm__group_leave(tdm_group *group, tdm_status status);
/* This rank's entry in the next round; a member's entry in the current round. */
tdm_entry *tdm__group_next_entry(tdm_group *group);
const tdm_entry *tdm__group_entry(const tdm_group *group, int r);
tdm_status tdm__group_round(tdm_group *group);
/* The first round of a collective: publishes the call, the address of `span` and, if they fit, `small` bytes of `data`.
 * Fails unless all ranks make the same call. */
tdm_status tdm__group_meet(tdm_group *group, tdm_span span, const void *data, size_t small);
/* Copies `bytes` (at most TDM_ENTRY_BYTES) of the root's `data` to all members, in one round. */
tdm_status tdm__group_tell(tdm_group *group, int root, void *data, size_t bytes);

/* Of the spans of the current round: peers can reach those of `count` ranks from `first` on; where member r's is. */
bool tdm__group_reaches(const tdm_group *group, int first, int count);
void *tdm__group_peer_span(const tdm_group *group, int r);
/* The same of several spans. In the next round this rank's entry has their addresses as its data, at most
 * TDM_IN_PLACE_SPANS. Returns the span with which to meet: peers reach all if they reach this one. */
tdm_span tdm__group_publish(tdm_group *group, const tdm_span *spans, size_t count);
void *tdm__group_peer_span_at(const tdm_group *group, int r, size_t i);
tdm_peer_address tdm__group_address(const tdm_group *group, const void *data, size_t bytes);
void *tdm__group_reach(const tdm_group *group, int r, tdm_peer_address address);
/* Every access to peers' spans stands between these two. After the job has ended, touch returns TDM_E_COMM: peers may
 * already have freed their spans. */
tdm_status tdm__group_touch(tdm_group *group);
void tdm__group_untouch(tdm_group *group);

/* Collective: memory that all members reach, `bytes` for each; and the staging memory. */
tdm_status tdm__group_share(tdm_group *group, size_t bytes, tdm_region *out);
tdm_status tdm__group_open_staging(tdm_group *group);
/* The half of the staging memory that this rank writes for the next round; that which rank r has published in the
 * current round. */
unsigned char *tdm__group_own_staging(const tdm_group *group);
unsigned char *tdm__group_peer_staging(const tdm_group *group, int r);

/* ---- the operations behind both vtables ---- */

tdm_status tdm__group_run(tdm_comm *comm, const tdm_comm_call *call);

/* Who gets what of a reduce_scatter: the first `parts` ranks a part each. Of it either the result over all ranks, or
 * the value (reduce.h) of each of `blocks` blocks of ranks, one behind another. */
typedef struct tdm_lanes {
    int parts, blocks;
    const int *first; /* blocks + 1: block i begins with rank first[i], and ends where the next one begins */
    bool keeps_values;
} tdm_lanes;

/* in.count = parts * out.count. `out` of a rank that gets a part may be its own part of `in`; for values it has room
 * for `blocks` of its size, of tdm__partial_dtype, and does not overlap `in`. */
tdm_status tdm__group_reduce_lanes(tdm_comm *comm, tdm_span in, tdm_span out, const tdm_lanes *lanes, tdm_reduce_op op);
/* For its tdm_call_table. */
tdm_status tdm__group_broadcast(tdm_comm *comm, tdm_span io, int root);
tdm_status tdm__group_gather(tdm_comm *comm, const tdm_pairs *what, int root);
tdm_status tdm__group_distribute(tdm_comm *comm, tdm_span in, tdm_span out, size_t bytes, int root);
tdm_status tdm__group_all_to_all_v(tdm_comm *comm, const tdm_comm_call *call);
tdm_status tdm__group_batch(tdm_comm *comm, const tdm_transfer *transfers, size_t count);
tdm_status tdm__group_receive_any(tdm_comm *comm, tdm_span out, int *from);
tdm_status tdm__group_allocate(tdm_comm *comm, size_t bytes, void **out);
tdm_status tdm__group_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
void tdm__group_abort(tdm_comm *comm, const char *why);
bool tdm__group_has_ended(tdm_comm *comm, char *why, size_t bytes);
void tdm__group_close(tdm_comm *comm);

#define TDM_GROUP_OPS(backend)                                                                                         \
    {                                                                                                                  \
        .name = backend, .deterministic = true, .run = tdm__group_run, .allocate = tdm__group_allocate,                \
        .split = tdm__group_split, .abort = tdm__group_abort, .close = tdm__group_close, .ended = tdm__group_has_ended \
    }

#endif
