/* A replica: the plan bound to one device's memory. The only stage of the run that changes while training.
 *
 * A step is: place and begin (its rows and values go to the device), run (work is put on the device's queue), leave
 * (what comes back is queued behind it), and settle, which waits for all that. On a
 * discrete device the next step may be put behind one that has not been settled; then settle speaks of the older. On
 * others all memory is the host's, nothing is copied, and work is done when it is put. */
#ifndef TDM_EXEC_REPLICA_H
#define TDM_EXEC_REPLICA_H

#include "runtime/base/hash.h"
#include "runtime/data/data.h"
#include "runtime/device/device.h"
#include "runtime/exec/phase.h"
#include "runtime/plan/plan.h"

/* Rows of a batch where a replica's kernels see them. */
typedef struct tdm_rows {
    int64_t rows;
    const void *x;           /* [rows] of plan->input_row_bytes */
    const void *target;      /* int64_t[rows] or float[rows, output]; NULL for predictions */
    const int64_t *position; /* each row's place in the order of samples of this step */
} tdm_rows;

/* What a step leaves behind. */
typedef struct tdm_outcome {
    double loss[TDM_LIST_MAX]; /* of each part of the batch, summed over its rows */
    int64_t correct;
    double grad_norm;
} tdm_outcome;

/* What a step is told, and what it leaves behind: one block, so that one copy brings the one and clears the other. */
typedef struct tdm_step_block {
    tdm_step_values values;
    tdm_outcome outcome;
} tdm_step_block;

typedef struct tdm_stage tdm_stage; /* of a discrete device: where rows and values of several steps have places */

typedef struct tdm_prepared tdm_prepared; /* kernel states for one number of rows */
typedef struct tdm_record tdm_record;     /* captured work and its stamps */

typedef enum tdm_arena_kind {
    TDM_ARENA_PARAM,
    TDM_ARENA_GRAD,
    TDM_ARENA_STATE,
    TDM_ARENA_BUFFER,
    TDM_ARENA_COUNT
} tdm_arena_kind;

/* A step under way, as the host sees it. Places: one for each of these, and one for a batch that comes. */
enum { TDM_FLIGHTS = 2, TDM_PLACES = 3 };
typedef struct tdm_flight {
    tdm_step_block *host;
    tdm_device_event *done; /* on a discrete device: its outcome is in host->outcome */
    tdm_record *record;     /* with this step's stamps; NULL: it was not timed */
    bool paused;            /* a part of its times is in the replica's sample already */
} tdm_flight;

/* Where the batches of steps come from. */
typedef struct tdm_feed {
    const tdm_packing *packing;
    tdm_rows_form form; /* TDM_ROWS_INDEX: the samples are kept in the device's memory */
    const tdm_dataset *dataset;
    const tdm_transform *transform;
} tdm_feed;

typedef struct tdm_replica {
    const tdm_plan *plan;
    const tdm_host *host;
    tdm_device *device;
    int index;                   /* in device_ids, or the rank */
    float *param, *grad, *state; /* plan->param_floats each; state: state_count times as many */
    void *narrow;                /* the parameters in bf16, where the precision is that; else NULL */
    int state_count;
    char *activation; /* plan->activation_bytes */
    char *buffer;     /* plan->buffer_bytes */
    bool owns_grad;
    tdm_prepared *prepared;         /* list, one for each number of rows seen */
    struct tdm_worker *preparation; /* makes the first of them while the run is still being opened; NULL: nothing to
                                     * wait for */
    size_t memory_bytes;            /* everything above: what the device holds */
    uint64_t seed;                  /* of the counter-based generator */

    /* In the device's memory, and the host's side of it: the same where the device is not discrete. */
    tdm_step_block *block;  /* of this step */
    tdm_step_block *blocks; /* one for each place; the only one where the device is not discrete */
    tdm_flight flight[TDM_FLIGHTS];
    uint64_t begun, settled; /* steps; the flight of the n-th is n modulo TDM_FLIGHTS */
    tdm_flat_range *ranges;  /* of the parameters, in PyTorch's order */
    /* Of a discrete device: where outputs are fetched to, copies of arenas. */
    tdm_stage *stage;
    float *host_output;
    char *mirror[TDM_ARENA_COUNT];

    tdm_record *record, *records; /* in use; all, the last used first */
    bool captures;                /* work that comes again is captured */
    bool capturing;               /* at present */
    bool captures_together;       /* other ranks capture the same: going on without is no choice of this one's */
    bool timed;                   /* phases are timed in this step */
    uint64_t timed_at;            /* the last step in which they were; 0: none */
    tdm_times sample;             /* the phases of the last step whose times are known */
} tdm_replica;

typedef struct tdm_replica_options {
    int index;
    int state_count; /* 0 sgd, 1 momentum, 2 adam */
    float *grad;     /* gradient arena lent by a communicator; NULL: its own */
    uint64_t seed;
    int64_t rows;        /* of a part of a step's batch, at most */
    int parts;           /* of a step's batch, at most */
    size_t target_bytes; /* of one row's target */
} tdm_replica_options;

tdm_status tdm__replica_open(tdm_replica **out, const tdm_host *host, const tdm_plan *plan, tdm_device *device,
                             const tdm_replica_options *options);
void tdm__replica_close(tdm_replica *replica);

/* From now on the batches of steps are this loader's; NULL: there are none, and nothing of the last one's memory is
 * used any more. Does nothing where the device is not discrete. */
tdm_status tdm__replica_feed(tdm_replica *replica, const tdm_feed *feed);

/* ---- a step ---- */

/* The parts of a step's batch, in host memory, become rows that the executor can use. `ticket` is the batch's own
 * number, not below 0: what was prefetched last under it is there already. The batch stays as it is until the step has
 * been settled. */
tdm_status tdm__replica_place(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket, tdm_rows *out);
tdm_status tdm__replica_begin(tdm_replica *replica, const tdm_step_values *values);
/* Begins to bring the parts of a later step's batch to a discrete device, beside the work of this one. The batch stays
 * as it is until its step has been settled. Does nothing on other devices. */
tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket);
/* Before the loader goes elsewhere: what was prefetched is no longer on its way, and no step takes it. */
tdm_status tdm__replica_drop_prefetched(tdm_replica *replica);
/* `work` puts a step's work on the device's queue, and nothing else: where the device can, it is captured when the same
 * `key` comes for the second time, once for each place, and run in one call from then on. The key is of all that
 * decides what `work` puts there but the contents of memory and the place. */
typedef tdm_status (*tdm_work)(void *user);
tdm_status tdm__replica_run(tdm_replica *replica, tdm_hash128 key, tdm_work work, void *user);
/* Captured work is given back; what comes next is captured anew. */
void tdm__replica_forget(tdm_replica *replica);
/* Within `work`: what was put on the queue since the last lap, or since run, was this phase. On a discrete device not
 * every step is timed. */
tdm_status tdm__replica_lap(tdm_replica *replica, tdm_phase phase);
/* Behind the work: what the step leaves behind comes to the host. */
tdm_status tdm__replica_leave(tdm_replica *replica);
/* Waits for the oldest step that has left; its phases, or those of the last one that was timed, are added to *times
 * where it has them. *outcome is valid until the next step begins. */
tdm_status tdm__replica_settle(tdm_replica *replica, tdm_times *times, const tdm_outcome **outcome);
/* What settle waits for; NULL where nothing is to be waited for. */
tdm_device_event *tdm__replica_awaited(const tdm_replica *replica);
/* Within a step, between two pieces of work: waits for the first, and keeps its phases for settle. */
tdm_status tdm__replica_pause(tdm_replica *replica);
/* After a failure: no step is under way any more. */
void tdm__replica_abandon(tdm_replica *replica);
/* Samples in host memory, floats, that no step is made of: for a forward pass. */
tdm_status tdm__replica_place_samples(tdm_replica *replica, const tdm_shard *shard, tdm_rows *out);

/* ---- arenas in host memory ---- */

/* The arena itself, or a copy of it; valid until the replica closes. */
tdm_status tdm__replica_fetch(tdm_replica *replica, tdm_arena_kind kind, void **out);
/* What was written to the memory that fetch gave becomes the arena. */
tdm_status tdm__replica_put(tdm_replica *replica, tdm_arena_kind kind);
/* On a device, after its parameters were written by other work than an optimizer's. */
tdm_status tdm__replica_params_changed(tdm_replica *replica);
/* The output of the last forward pass as floats, [rows, plan->output_width]; valid until the next. */
tdm_status tdm__replica_fetch_output(tdm_replica *replica, int64_t rows, const float **out);

/* ---- the executor: the plan's steps, in order ---- */

typedef struct tdm_exec_hooks {
    /* All gradients of the bucket are written, or will be by what the queue holds (the last micro-batch only). May be
     * NULL. */
    tdm_status (*bucket_ready)(void *user, tdm_replica *replica, int bucket);
    void *user;
} tdm_exec_hooks;

/* The forward steps. training false: evaluation rules (running statistics, no dropout), nothing is saved. */
tdm_status tdm__exec_forward(tdm_replica *replica, const tdm_rows *rows, bool training);
/* Where forward left the output, [rows, plan->output_width]; and where backward expects its gradient. */
float *tdm__exec_output(const tdm_replica *replica);
float *tdm__exec_output_gradient(const tdm_replica *replica);
/* The backward steps for the rows of the last training forward. first: gradients are written, else added to. hooks
 * may be NULL. */
tdm_status tdm__exec_backward(tdm_replica *replica, const tdm_rows *rows, bool first, const tdm_exec_hooks *hooks);

#endif
