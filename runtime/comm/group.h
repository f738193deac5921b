/* The machinery under `local` and `shm`: ranks that reach one shared area, as threads or as processes.
 *
 * Ranks meet in rounds. For a round each rank fills its slot (what it calls, where its data is, small data itself),
 * says "here", and waits until all are here; then it may read everybody's slot. Slots and staging memory are double:
 * what is published in round n lies in half n % 2, is read before the reader says "here" for round n + 1, and so may be
 * written anew after that round. Nothing is ever taken back or locked: a rank killed at any instruction leaves a state
 * in which the others find out who is missing. */
#ifndef TDM_COMM_GROUP_H
#define TDM_COMM_GROUP_H

#include <stdatomic.h>

#include "runtime/comm/comm.h"

enum {
    TDM_SLOT_BYTES = 2048,        /* small data travels in the slot */
    TDM_MAIL_BYTES = 32 * 1024,   /* one half of what a sender's letter box holds */
    TDM_STAGE_BYTES = 512 * 1024, /* one half of a rank's staging memory */
    TDM_CAUSE_TEXT = 400,
    TDM_CALL_TEXT = 128,
    TDM_LINE = 64
};

typedef enum tdm_call_kind {
    TDM_CALL_JOIN,
    TDM_CALL_ALL_REDUCE,
    TDM_CALL_BROADCAST,
    TDM_CALL_REDUCE,
    TDM_CALL_GATHER,
    TDM_CALL_ALL_GATHER,
    TDM_CALL_SCATTER,
    TDM_CALL_BARRIER,
    TDM_CALL_ALLOCATE,
    TDM_CALL_SPLIT,
    TDM_CALL_SEND,
    TDM_CALL_RECEIVE
} tdm_call_kind;

/* What a rank calls; equal on all ranks of a group, or the call fails. */
typedef struct tdm_call {
    int32_t kind, dtype, op, root; /* root: of a rooted call, the peer of a send or receive; else -1 */
    uint64_t count, sequence;
    uint64_t extra; /* split: hash of the list */
} tdm_call;

/* Where peers find a rank's span: region 0 is nowhere. */
typedef struct tdm_place {
    uint64_t region, offset;
} tdm_place;

typedef struct tdm_slot {
    tdm_call call;
    tdm_place place;
    _Alignas(TDM_LINE) unsigned char data[TDM_SLOT_BYTES];
} tdm_slot;

/* A rank's letter box: one letter at a time, to one reader. */
typedef struct tdm_mail {
    _Alignas(TDM_LINE) _Atomic uint64_t offer; /* number of the letter * 2^16 + rank it is for */
    uint64_t count;
    int32_t dtype;
    tdm_place place;
    _Atomic uint64_t filled;                   /* halves of the box filled so far, over all letters */
    _Alignas(TDM_LINE) _Atomic uint64_t taken; /* number of the last letter taken whole; the reader's */
    _Atomic uint64_t drained;                  /* halves emptied so far; the reader's */
} tdm_mail;

/* A rank's place in one group, in shared memory. All zero is the state before the first round. */
typedef struct tdm_seat {
    _Alignas(TDM_LINE) _Atomic uint64_t round; /* the last round it said "here" for */
    _Atomic uint64_t last_call;                /* its sequence * 2^8 + kind, for messages */
    _Atomic uint32_t left;                     /* it has closed its end */
    _Atomic uint32_t touching;                 /* it is reading or writing other ranks' spans */
    tdm_mail mail;
    tdm_slot slot[2];
} tdm_seat;

typedef enum tdm_process_state {
    TDM_PROCESS_ABSENT,
    TDM_PROCESS_JOINING,
    TDM_PROCESS_MEETING, /* from here on the entry is filled: rank 0 lets the others in, and joins after that */
    TDM_PROCESS_JOINED,
    TDM_PROCESS_LEFT
} tdm_process_state;

/* A rank's process: processes on one host watch one another. `space` tells process-number namespaces apart. */
typedef struct tdm_process {
    _Alignas(TDM_LINE) _Atomic uint32_t state;
    int32_t pid;
    uint64_t start, space;
    _Atomic uint64_t beat; /* changes while its process runs */
} tdm_process;

/* Shared by all ranks of a job, sub-groups included: one bell for whoever waits, one cause of its end. */
typedef struct tdm_control {
    char magic[8];
    uint32_t layout, world;
    tdm_process parent; /* pid 0: none to watch */
    _Atomic uint64_t file_end;
    _Alignas(TDM_LINE) _Atomic uint32_t bell; /* rung after every change that somebody may wait for */
    _Alignas(TDM_LINE) _Atomic uint32_t sleepers;
    _Alignas(TDM_LINE) _Atomic uint32_t ended; /* 1: `cause` is being written, 2: it can be read */
    char cause[TDM_CAUSE_TEXT];
} tdm_control;

typedef struct tdm_group tdm_group;
typedef struct tdm_site tdm_site;
typedef struct tdm_watch tdm_watch;

/* Memory of this process that goes with its site. */
typedef struct tdm_mapping {
    struct tdm_mapping *next;
    void *base;
    size_t bytes;
} tdm_mapping;

/* How ranks of a kind get memory that all of them reach. */
typedef struct tdm_site_ops {
    const tdm_comm_ops *comm_ops;
    /* Collective: stride * world zeroed bytes, mapped at *base here, rank r's part at r * stride. */
    tdm_status (*share)(tdm_group *group, size_t stride, unsigned char **base);
    void (*unmap)(tdm_site *site, void *base, size_t bytes);
    void (*free)(tdm_site *site);
} tdm_site_ops;

/* The shared area as one process sees it; shared by all its communicators of the job, freed with the last. */
struct tdm_site {
    const tdm_site_ops *ops;
    const tdm_host *host;
    _Atomic int users;
    tdm_control *control;
    tdm_process *process; /* of the job's ranks; NULL: threads */
    int world;            /* of the job */
    size_t page;          /* unit of sharing */
    int64_t spin_ns;      /* how long to look before sleeping */
    _Atomic(tdm_mapping *) mappings;
    /* shm */
    int fd;
    size_t control_bytes;
    tdm_watch *watch; /* NULL: there is nobody to look after */
};

typedef struct tdm_region {
    unsigned char *base;
    size_t stride;
} tdm_region;

/* One rank's end. */
struct tdm_group {
    tdm_comm comm; /* first */
    tdm_site *site;
    tdm_seat *seat;     /* of all members */
    unsigned char *box; /* letter boxes, 2 * TDM_MAIL_BYTES each; NULL: peers are reached directly */
    int *job_rank;      /* of all members */
    uint64_t round;
    int64_t deadline_ns; /* of the call under way */
    tdm_call call;       /* the call under way */
    tdm_region *region;  /* what `allocate` gave; numbered from 1 in tdm_place */
    size_t region_count, region_capacity;
    tdm_region stage;     /* base NULL until the first call that needs it */
    char abort_cause[48]; /* made beforehand: abort may come from a signal handler */
};

/* ---- control.c: the bell, waiting, the end of a job ---- */

int64_t tdm__spin_ns(int ranks);
/* Something has changed that peers may wait for. */
void tdm__site_ring(tdm_site *site);
void tdm__control_ring(tdm_control *control, bool one_process);
/* The first cause stays; whoever waits is woken. Async-signal-safe. */
void tdm__control_end(tdm_control *control, bool one_process, const char *cause);
bool tdm__site_ended(const tdm_site *site);
bool tdm__site_has_ended(const tdm_site *site, char *why, size_t bytes);
void tdm__site_release(tdm_site *site);
/* Keep `base` until the site is freed. */
tdm_status tdm__site_keep(tdm_site *site, void *base, size_t bytes);

/* Is member `r` not yet where the wait wants it? Side effects are not allowed: it is asked again and again. */
typedef bool (*tdm_missing_fn)(const tdm_group *group, int r);
/* Until nobody is missing, the deadline of the call, a peer that can never come, or the end of the job. */
tdm_status tdm__group_wait(tdm_group *group, tdm_missing_fn missing);
/* TDM_E_COMM with the job's cause in front of which the call under way stands. */
tdm_status tdm__group_ended(tdm_group *group);

/* ---- group.c: rounds and calls ---- */

/* Without seats yet. Takes a share of the site, also when it fails. */
tdm_status tdm__group_new(tdm_group **out, tdm_site *site, int rank, int world, int64_t timeout_ms);
void tdm__group_free(tdm_group *group); /* NULL is fine */
size_t tdm__seats_bytes(int world, bool boxes);
/* Lay a zeroed area of tdm__seats_bytes out as the seats of this group. */
void tdm__group_seat(tdm_group *group, void *area, bool boxes);

/* Notes a call for messages and sets its deadline. */
void tdm__group_note(tdm_group *group, const tdm_call *call);
/* Starts a call: notes it; TDM_E_COMM if the job has ended. */
tdm_status tdm__group_enter(tdm_group *group, const tdm_call *call);
/* Ends it: a failure here is the end of the job, and the caller's memory is safe from peers when this returns. */
tdm_status tdm__group_leave(tdm_group *group, tdm_status status);
/* The slot that the next round publishes, and that of a member in the round just made. */
tdm_slot *tdm__group_next_slot(tdm_group *group);
const tdm_slot *tdm__group_slot(const tdm_group *group, int r);
tdm_status tdm__group_round(tdm_group *group);
/* The first round of a collective: publish the call, `span`'s place and, if it fits, `small` bytes of `data`; check
 * that all ranks call the same. */
tdm_status tdm__group_meet(tdm_group *group, tdm_span span, const void *data, size_t small);
/* `bytes` (at most TDM_SLOT_BYTES) of the root's `data` to everybody, in one round. */
tdm_status tdm__group_tell(tdm_group *group, int root, void *data, size_t bytes);

tdm_place tdm__group_place(const tdm_group *group, const void *data, size_t bytes);
void *tdm__group_reach(const tdm_group *group, int r, tdm_place place);
/* Around the use of peers' spans. TDM_E_COMM instead if the job has ended: peers may take their spans away. */
tdm_status tdm__group_touch(tdm_group *group);
void tdm__group_untouch(tdm_group *group);

/* Collective. */
tdm_status tdm__group_share(tdm_group *group, size_t bytes, tdm_region *out);
tdm_status tdm__group_stage(tdm_group *group);

/* "all_reduce (call 17, 4 f32, sum)" */
void tdm__call_print(char out[TDM_CALL_TEXT], const tdm_call *call);
const char *tdm__call_name(tdm_call_kind kind);

/* ---- the operations behind both vtables ---- */

tdm_status tdm__group_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
tdm_status tdm__group_broadcast(tdm_comm *comm, tdm_span io, int root);
tdm_status tdm__group_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op);
tdm_status tdm__group_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root);
tdm_status tdm__group_all_gather(tdm_comm *comm, tdm_span in, tdm_span out);
tdm_status tdm__group_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root);
tdm_status tdm__group_send(tdm_comm *comm, tdm_span in, int to);
tdm_status tdm__group_receive(tdm_comm *comm, tdm_span out, int from);
tdm_status tdm__group_barrier(tdm_comm *comm);
tdm_status tdm__group_allocate(tdm_comm *comm, size_t bytes, void **out);
tdm_status tdm__group_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
void tdm__group_abort(tdm_comm *comm);
void tdm__group_abort_because(tdm_comm *comm, const char *why);
bool tdm__group_has_ended(tdm_comm *comm, char *why, size_t bytes);
void tdm__group_close(tdm_comm *comm);

#define TDM_GROUP_OPS(backend)                                                                                     \
    {                                                                                                              \
        .size = sizeof(tdm_comm_ops), .name = backend, .deterministic = true, .all_reduce = tdm__group_all_reduce, \
        .broadcast = tdm__group_broadcast, .reduce = tdm__group_reduce, .gather = tdm__group_gather,               \
        .all_gather = tdm__group_all_gather, .scatter = tdm__group_scatter, .send = tdm__group_send,               \
        .receive = tdm__group_receive, .barrier = tdm__group_barrier, .allocate = tdm__group_allocate,             \
        .split = tdm__group_split, .abort = tdm__group_abort, .close = tdm__group_close,                           \
        .abort_because = tdm__group_abort_because, .ended = tdm__group_has_ended                                   \
    }

#endif
