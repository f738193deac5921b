/* A replica: the plan bound to one device's memory. Only replicas change while training.
 *
 * A step is: take and begin (its rows and values are sent to the device), run (its work is queued there), end (the copy
 * of its outcome is queued after the work), wait (for the outcome). Up to TDM_IN_FLIGHT steps may have begun before the
 * first of them is waited for. The CPU runs work when it is queued: the same calls, and everything is done when they
 * return. */
#ifndef TDM_EXEC_REPLICA_H
#define TDM_EXEC_REPLICA_H

#include "runtime/base/hash.h"
#include "runtime/data/data.h"
#include "runtime/device/device.h"
#include "runtime/exec/phase.h"
#include "runtime/plan/plan.h"

/* Of a job: each has a device of parallel.device_ids. */
enum { TDM_REPLICAS_MAX = TDM_LIST_MAX };

/* Rows of a batch where a replica's kernels see them. */
typedef struct tdm_rows {
    int64_t rows;
    const void *x;           /* [rows] of tdm__plan_batch_row_bytes */
    const void *target;      /* int64_t[rows] or float[rows, output]; NULL for predictions */
    const int64_t *position; /* each row's index in the global batch of this step */
    /* Where replicas exchange statistics: which of them this one is, and which have rows in this pass, a bit each. */
    int replica;
    uint64_t present;
} tdm_rows;

/* The outcome of a step. */
typedef struct tdm_outcome {
    double loss[TDM_REPLICAS_MAX]; /* of each part of the batch, summed over its rows */
    int64_t correct;
    double grad_norm;
} tdm_outcome;

/* The values of a step, once for each set of the optimizer's settings: first with those of parameters in no group,
 * which all kernels but optimizers read, then with those of each group. */
enum { TDM_SETTINGS_MAX = 1 + TDM_PARAM_GROUPS_MAX };
typedef struct tdm_values {
    int count;
    tdm_step_values of[TDM_SETTINGS_MAX];
} tdm_values;

/* The values of a step and its outcome: one block, so that one copy brings the values and clears the outcome. */
typedef struct tdm_step_block {
    tdm_step_values values[TDM_SETTINGS_MAX];
    tdm_outcome outcome;
} tdm_step_block;

typedef struct tdm_slots tdm_slots;                 /* rows, values and outcomes of several steps */
typedef struct tdm_prepared_list tdm_prepared_list; /* kernel states, for each number of rows seen */
typedef struct tdm_recorder tdm_recorder;           /* captured work and its stamps */

typedef enum tdm_arena_kind {
    TDM_ARENA_PARAM,
    TDM_ARENA_GRAD,
    TDM_ARENA_STATE,
    TDM_ARENA_BUFFER,
    TDM_ARENA_AVERAGE,
    TDM_ARENA_COUNT
} tdm_arena_kind;

/* Steps in flight have begun and have not been waited for. Each has a slot, and the batch that is being copied has one.
 */
enum { TDM_IN_FLIGHT = 2, TDM_SLOTS = 3 };

/* Where the batches of steps come from. */
typedef struct tdm_feed {
    const tdm_packing *packing;
    tdm_rows_form form; /* TDM_ROWS_INDEX: the samples are kept in the device's memory */
    const tdm_dataset *dataset;
    const tdm_transform *transform;
} tdm_feed;

/* Host copies of device memory, on devices with memory of their own, and of outputs that are not floats. */
typedef struct tdm_mirror {
    char *arena[TDM_ARENA_COUNT]; /* NULL before the first fetch */
    float *output;                /* [plan->options.rows, plan->output_width]; NULL where it is not needed */
    float *norms;                 /* of several stages: the replica's norms */
    float *gradient;              /* of the output, where the loss computes in floats but the plan does not */
} tdm_mirror;

/* Parameters and buffers that replicas which only predict read and do not own: several use the same, and parameters may
 * lie in a file. Each parameter begins at a multiple of TDM_ALIGN and is in PyTorch's layout. */
typedef struct tdm_weights {
    const float *const *param;         /* by their index in the graph */
    const uint16_t *const *param_bf16; /* the same in bf16, where the precision is that; else NULL */
    const char *buffer;                /* the arena of buffers; the same for every number of rows */
} tdm_weights;

/* What is kept from step to step, in the device's memory; of a stage, its ranges: see tdm__replica_floats_at. */
typedef struct tdm_replica_arenas {
    float *param;        /* plan->param_floats */
    float *grad, *state; /* plan->trained_floats; state: state_count times as many */
    float *average;      /* of the parameters over the steps (train.ema), with their offsets; NULL: none */
    void *param_bf16;    /* the parameters in bf16, where the precision is that; else NULL */
    char *buffer;        /* plan->buffer_bytes */
    int state_count;
    bool owns_grad;
} tdm_replica_arenas;

/* What the passes of a step write and read, in the device's memory. */
typedef struct tdm_replica_passes {
    char *activation; /* of each micro-batch in flight */
    char *batch_bf16; /* the batch in bf16, where it would come as floats from the host's memory; else NULL */
    char *statistics; /* plan->statistics_bytes: blocks of all replicas */
} tdm_replica_passes;

/* Norms of gradients and parameters, in the device's memory. */
typedef struct tdm_replica_norms {
    tdm_flat_range *ranges; /* of the trained parameters, in PyTorch's order */
    int range_count;
    float *gradient; /* [range_count], for the norm over all stages; NULL with one stage */
    float *each;     /* [range_count] of the parameters, then as many of their gradients, clipped, for an optimizer that
                      * takes them; else NULL */
} tdm_replica_norms;

/* See repeats.h. */
typedef struct tdm_repeats {
    int64_t count;
    double *ms; /* [plan->step_count][count]; NULL: layers run once, untimed */
} tdm_repeats;

/* What a replica that only predicts has from others. */
typedef struct tdm_replica_borrowed {
    const tdm_weights *weights; /* NULL: it has arenas of its own */
    void *const *packed;        /* by plan node: its param 0 as tdm__exec_pack wrote it; NULL: none */
} tdm_replica_borrowed;

typedef struct tdm_replica tdm_replica;
struct tdm_replica {
    const tdm_plan *plan;
    const tdm_host *host;
    tdm_device *device;
    int index;            /* in device_ids, or the rank */
    int stage;            /* of plan->stages: the part of the plan that it runs */
    tdm_replica **stages; /* [plan->stage_count]: all of them, this one among them; owned by the first */
    int64_t micro_batch;  /* that is being computed: of the stage's memory for activations it has a part */
    uint64_t seed;        /* of the counter-based generator */
    size_t memory_bytes;  /* of the device, for all that follows */
    size_t lent_bytes;    /* of these, what others have allocated: memory that ranks share, compression's */
    tdm_replica_borrowed borrowed;
    tdm_replica_arenas arena;
    tdm_replica_passes pass;
    tdm_replica_norms norms;
    double *loss_weight;   /* loss.weight or pos_weight, where kernels do not read the host's memory; else NULL */
    tdm_step_block *block; /* of this step, in the device's memory */
    tdm_slots *slots;
    tdm_prepared_list *prepared;
    tdm_recorder *recorder;
    tdm_repeats repeats;
    tdm_mirror mirror;
};

typedef struct tdm_replica_options {
    int index;
    int state_count;                /* of the optimizer: arenas of state */
    float *grad;                    /* a communicator's memory for the gradient arena; NULL: the replica allocates it */
    const tdm_numbers *loss_weight; /* tdm__loss_weight of the job; NULL: none */
    const tdm_weights *weights;     /* borrowed; only without training, on one stage in host memory. NULL: its own */
    bool averages;                  /* it keeps an average of the parameters */
    bool takes_norms;               /* the optimizer does */
    uint64_t seed;
    int64_t rows;        /* of a part of a step's batch, at most */
    int parts;           /* of a step's batch, at most */
    size_t target_bytes; /* of one row's target */
    tdm_replica *first;  /* of a stage but the first: the replica of that; NULL: this is the first */
    int stage;
    bool untimed; /* the phases of a step are those of another replica, which runs the work of both */
} tdm_replica_options;

/* loss.weight or pos_weight of the job, whichever its loss has; count 0: none. */
const tdm_numbers *tdm__loss_weight(const tdm_job *job);

/* With several stages: opens one of them, the first before the others. The first stands for all where arenas, outputs
 * and feeds are meant, in tdm__exec_evaluate and tdm__replica_abandon. Steps (take to wait) are those of each stage. */
tdm_status tdm__replica_open(tdm_replica **out, const tdm_host *host, const tdm_plan *plan, tdm_device *device,
                             const tdm_replica_options *options);
void tdm__replica_close(tdm_replica *replica);

/* Floats of parameters in its arenas. */
static inline size_t tdm__replica_trained(const tdm_replica *replica) {
    return replica->plan->stages[replica->stage].trained_floats;
}
static inline size_t tdm__replica_floats(const tdm_replica *replica) {
    return tdm__replica_trained(replica) + replica->plan->stages[replica->stage].frozen_floats;
}
/* Where in its arenas the plan's `offset` is. A stage has two ranges of the plan's arenas: of the parameters that are
 * trained, and, behind it, of those that are frozen. */
static inline size_t tdm__replica_floats_at(const tdm_replica *replica, size_t offset) {
    const tdm_plan_stage *own = &replica->plan->stages[replica->stage];
    if (offset < replica->plan->trained_floats) return offset - own->trained_at;
    return own->trained_floats + (offset - own->frozen_at);
}

/* Is its memory the host's, so that others reach it without copies? */
static inline bool tdm__replica_in_host(const tdm_replica *replica) {
    return tdm__device_on_host(replica->device->ops);
}

/* Of the replica's device, counted in memory_bytes; *out is a pointer of any type. Released with the device's release. */
#define tdm__replica_allocate(replica, bytes, out, what) \
    tdm__replica_allocate_at(replica, bytes, TDM_POINTER_AT(out), what)
tdm_status tdm__replica_allocate_at(tdm_replica *replica, size_t bytes, void *out, const char *what);

/* From now on batches come from this loader. NULL: from none, and the last loader's memory is no longer read. */
tdm_status tdm__replica_feed(tdm_replica *replica, const tdm_feed *feed);

/* ---- a step ---- */

/* Turns the parts of the step's batch, in host memory, into rows for the executor. If they were prefetched, it must
 * have been these. The caller leaves the batch unchanged until the step has been waited for. */
tdm_status tdm__replica_take(tdm_replica *replica, const tdm_shard *parts, int count, tdm_rows *out);
/* The rows of the parts that were taken last, again. */
void tdm__replica_rows(const tdm_replica *replica, const tdm_shard *parts, int count, tdm_rows *out);
tdm_status tdm__replica_begin(tdm_replica *replica, const tdm_values *values);
/* For more work of the step that was waited for last: what it has told goes on. */
tdm_status tdm__replica_again(tdm_replica *replica, const tdm_values *values);
/* Starts to bring the next step's batch to the device while this step works. The caller leaves the batch unchanged
 * until that step has been waited for. */
tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_shard *parts, int count);
/* Before the loader seeks: waits for what was prefetched and drops it. */
tdm_status tdm__replica_drop_prefetched(tdm_replica *replica);
/* `work` queues a step's work on the device and does nothing else. When the same `key` comes for the second time,
 * a device that can capture captures the work, once for each slot, and runs it in one call from then on. The key covers
 * all that decides what `work` queues, except the slot and the contents of memory. */
typedef tdm_status (*tdm_work)(void *user);
tdm_status tdm__replica_run(tdm_replica *replica, tdm_hash128 key, tdm_work work, void *user);
typedef enum tdm_captures {
    TDM_CAPTURES_NEVER,
    TDM_CAPTURES_ALONE,   /* work that cannot be captured is run call by call, with a warning */
    TDM_CAPTURES_TOGETHER /* other ranks capture the same work, so failing to capture is an error */
} tdm_captures;
/* No effect on a device that cannot capture. */
void tdm__replica_set_captures(tdm_replica *replica, tdm_captures captures);
bool tdm__replica_is_capturing(const tdm_replica *replica); /* within `work` */
/* Frees captured work; later work is captured again. */
void tdm__replica_forget(tdm_replica *replica);
/* Within `work`: what was queued since the last lap, or since run, belongs to this phase. Not every captured step is
 * timed. */
tdm_status tdm__replica_lap(tdm_replica *replica, tdm_phase phase);
/* Queues the copy of the outcome to the host. */
tdm_status tdm__replica_end(tdm_replica *replica);
/* Waits for the oldest step that has ended. Adds its phases, or those of the last timed step, to those that *times has.
 * *outcome is valid until the next step begins. */
tdm_status tdm__replica_wait(tdm_replica *replica, tdm_times *times, const tdm_outcome **outcome);
/* The event that tdm__replica_wait waits for. */
tdm_device_event *tdm__replica_awaited(const tdm_replica *replica);
/* Within a step, between two pieces of work: waits for the first, and keeps its phases for tdm__replica_wait. */
tdm_status tdm__replica_wait_work(tdm_replica *replica);
/* After a failure: no step is in flight any more. */
void tdm__replica_abandon(tdm_replica *replica);
/* For a forward pass outside of steps: turns samples in host memory, floats, into rows for the executor. */
tdm_status tdm__replica_take_samples(tdm_replica *replica, const tdm_shard *shard, tdm_rows *out);
/* Counts memory that others have allocated for the replica. */
static inline void tdm__replica_lend(tdm_replica *replica, size_t bytes) {
    replica->memory_bytes += bytes;
    replica->lent_bytes += bytes;
}

/* Steps that may be in flight. */
static inline int tdm__replica_depth(const tdm_replica *replica) {
    return tdm__replica_in_host(replica) ? 1 : TDM_IN_FLIGHT;
}

/* ---- arenas ---- */

/* In the device's memory; NULL where the replica has none. Of a stage: its part. */
void *tdm__replica_arena(const tdm_replica *replica, tdm_arena_kind kind, size_t *bytes);
/* Of all stages together. */
size_t tdm__replica_arena_bytes(const tdm_replica *replica, tdm_arena_kind kind);

/* ---- arenas in host memory ---- */

/* The arena itself, or a copy of it, of all stages; valid until the replica closes. */
tdm_status tdm__replica_fetch(tdm_replica *replica, tdm_arena_kind kind, void **out);
/* Writes the memory that fetch gave back to the arena. */
tdm_status tdm__replica_put(tdm_replica *replica, tdm_arena_kind kind);
/* One parameter from the arena's form to PyTorch's, or back; what is beside the channels stays 0. */
void tdm__param_change_form(const tdm_plan_param *param, const float *from, float *to, bool to_plain);
/* After anything but an optimizer has written the parameters on a device, of one stage. */
tdm_status tdm__replica_params_changed(tdm_replica *replica);
tdm_status tdm__mirror_open(tdm_replica *replica);
void tdm__mirror_close(tdm_replica *replica);
/* The output of the last forward pass as floats, [rows, plan->output_width]; valid until the next. */
tdm_status tdm__replica_fetch_output(tdm_replica *replica, int64_t rows, const float **out);

/* ---- the executor: the plan's steps, in order ---- */

typedef struct tdm_exec_hooks {
    /* All gradients of the bucket are written, or queued work will write them. NULL: nobody reduces them now, because
     * another micro-batch follows, or all buckets are summed after backward. */
    tdm_status (*bucket_ready)(void *user, int bucket);
    /* Of tdm__pass and of the stages: replicas exchange statistics, as tdm_reducer_ops.exchange. NULL if the plan has
     * none. */
    tdm_status (*exchange)(void *user, int stage, char *blocks, size_t bytes);
    /* A stage has failed, so those of other ranks would wait for it in an exchange. The message is this thread's. */
    void (*stage_failed)(void *user);
    void *user;
} tdm_exec_hooks;

/* Runs the forward steps of a training pass for a micro-batch, counted from 0: from *step to where replicas exchange
 * statistics, or to the end. *step is first the `forward` of the replica's stage in plan->stages, then where to go on.
 * A replica without rows computes nothing, here and in backward: it stops where the others do, and its buckets
 * become ready. */
tdm_status tdm__exec_forward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch, int *step);
/* After forward: copies what the next stage reads of this micro-batch into that stage's memory. That has room for
 * plan->stages[].in_flight micro-batches between send and backward. */
tdm_status tdm__exec_send(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch);
/* The backward steps for the rows of that forward pass, likewise; *step is first the stage's `backward`. Gradients of
 * micro-batch 0 are written, those of others added. In the end the gradients of what the stage before has sent go into
 * that stage's memory. hooks may be NULL. */
tdm_status tdm__exec_backward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                              const tdm_exec_hooks *hooks, int *step);
/* What replicas exchange in front of `step`: blocks of *bytes, one for each replica, in the device's memory, of which
 * this replica has written its own. NULL: nothing, the pass has ended. */
char *tdm__exec_statistics(const tdm_replica *replica, int step, size_t *bytes);
/* All forward steps by the rules of evaluation: running statistics, no dropout, nothing is saved. */
tdm_status tdm__exec_evaluate(tdm_replica *replica, const tdm_rows *rows);
/* Returns the bytes of param 0 in the layout that the node's kernel prefers; 0: the kernel reads it as it is stored.
 * Only with borrowed weights, once the kernels are ready (tdm__prepare_wait). */
size_t tdm__exec_packed_bytes(const tdm_replica *replica, int node);
/* Writes param 0 in that layout into `to`, which begins on a line of 64 bytes. Replicas of the same plan may have it in
 * `packed`. */
tdm_status tdm__exec_pack(tdm_replica *replica, int node, void *to);
/* The output of the last forward steps, [rows, plan->output_width], and the memory for its gradient, which backward
 * reads. */
float *tdm__exec_output(const tdm_replica *replica);
float *tdm__exec_output_gradient(const tdm_replica *replica);

#endif
