/* A mode: how replicas are made, and how batches, outputs and gradients travel between them.
 *
 * The trainer submits steps and collects their results. A mode's step does what PyTorch's wrapper of the same
 * name does, in the same order, and calls the executor, the loss and the optimizer. */
#ifndef TDM_EXEC_MODE_H
#define TDM_EXEC_MODE_H

#include <tandem/parts.h>
#include <tandem/sys/comm.h>
#include <tandem/sys/module.h>

#include "runtime/data/data.h"
#include "runtime/exec/replica.h"

/* How far submit goes; the mode's `backward` and `update` make the rest when the step has been collected. */
typedef enum tdm_extent { TDM_TO_UPDATE, TDM_TO_GRADIENTS, TDM_TO_LOSS } tdm_extent;

/* The optimizer's settings for one step; read while the step is submitted. */
typedef struct tdm_update {
    const tdm_optim_def *optim;
    tdm_optim_run *optim_run;     /* its kernel on this device */
    const tdm_own_optimizer *own; /* in its place; NULL: none */
    const tdm_optimizer_section *optimizer;
    unsigned states;                       /* that the replicas have: tdm__optim_states */
    double lr, momentum;                   /* of this step: schedules may change both (one-cycle) */
    double group_lr[TDM_PARAM_GROUPS_MAX]; /* of this step, for each of the optimizer's groups */
    int64_t t;                             /* the step's number, from 1 */
    int64_t updates;                       /* of the optimizer, with this one: t without the steps that skipped it */
    double clip_norm, clip_value;          /* NaN: none */
    float average_weight;                  /* of tdm_step_values */
    bool stop;                             /* this process has been asked to stop after this step */
    tdm_extent extent;                     /* of what is submitted */
} tdm_update;

typedef struct tdm_step_result {
    double loss; /* mean over the global batch: replica sums added as the canonical tree, divided once */
    int64_t rows, correct;
    /* Of that mean; with `average: ranks` the sum of the ranks' denominators. 0 if every label is ignored or weighs 0:
     * the loss is NaN. */
    double denominator;
    double grad_norm; /* before clipping; NaN without clipping */
    tdm_times times;
    int64_t bytes_moved; /* between devices: this process's share */
    bool stop;           /* some process has been asked to stop: every rank learns it in the same step */
} tdm_step_result;

typedef struct tdm_mode_params {
    const tdm_host *host;
    const tdm_plan *plan;
    const tdm_job *job;
    const tdm_device_ops *device;
    const tdm_loss_def *loss;
    tdm_status (*loss_run)(const tdm_loss_args *args); /* the device's own kernel of it; NULL: the definition's */
    const tdm_own_loss *own_loss;                      /* in its place; NULL: none */
    void (*thread_begin)(void);                        /* of the module whose kernels threads share; may be NULL */
    int replicas;                                      /* of the whole job */
    int rank;                                          /* ddp: this process's rank; else 0 */
    int first_rank;                                    /* ddp: the first rank on this host; else 0 */
    tdm_comm *comm;                                    /* ddp: of all ranks, in host memory; borrowed */
    const tdm_comm_ops *device_comm;                   /* ddp: reduces in the device's memory; NULL: `comm` reduces */
    int state_count;
    bool averages;    /* the first replica of all keeps an average of its parameters */
    bool has_ignored; /* some label may be ignored, or labels have weights: the denominator is counted each step */
    bool mixes; /* labels stand for probabilities, of which PyTorch's mean is over the rows, whatever the weights */
} tdm_mode_params;

/* A tensor of floats that is a mode's own and that a checkpoint keeps. */
typedef struct tdm_mode_tensor {
    const char *name; /* in the zone */
    tdm_shape shape;
    float *data; /* the mode's memory */
} tdm_mode_tensor;

typedef struct tdm_mode tdm_mode;
typedef struct tdm_mode_ops {
    const char *name;
    size_t bytes; /* of the mode's struct, which begins with a tdm_mode and is zeroed before open */
    /* What is known before a mode is open. A function that is NULL: 0 bytes. */
    bool process_per_device; /* a process has one replica and loads its rows; else one process has all replicas */
    bool takes_turns;        /* all replicas run on one device, one after another */
    /* Memory for outputs, their gradient and targets of all replicas on one device. */
    size_t (*gathered_bytes)(const tdm_plan *plan, const tdm_job *job, int replicas);
    /* Memory of a stage's device for what is sent instead of gradients. */
    size_t (*compression_memory)(const tdm_plan *plan, const tdm_job *job, int replicas, int stage);
    /* Bytes between devices in a step, of all devices together. `rows`: of all replicas but the first. */
    int64_t (*wire_bytes)(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows);
    /* Sets the members of tdm_mode that open sets. After a failure the mode is closed. */
    tdm_status (*open)(tdm_mode *mode);
    void (*close)(tdm_mode *mode);
    /* Starts one step on all replicas. Sets result->denominator, bytes_moved and the times of what the host
     * did. */
    tdm_status (*submit)(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result);
    /* Waits for the oldest step and sets the rest of its result. */
    tdm_status (*collect)(tdm_mode *mode, tdm_step_result *result);
    /* More of a step over this batch that was collected at the loss of its first micro-batch: the forward of the next
     * one (mode->micro_batch), the backward of the one that went forward last; and the update of a step that was
     * collected without. They wait for their work, and add what it tells to the result. */
    tdm_status (*forward)(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result);
    tdm_status (*backward)(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result);
    tdm_status (*update)(tdm_mode *mode, const tdm_update *update, tdm_step_result *result);
    /* A step has failed with this message, and no step is in flight any more. NULL if nobody else needs to know. */
    void (*step_failed)(tdm_mode *mode, const char *message);
    /* Evaluation forward of up to replica_count shards at once, shard i on local replica i. outputs[i] is [rows, width]
     * in host memory and valid until the next call. */
    tdm_status (*evaluate)(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs);
    /* Copies the first replica's parameters and buffers, and with_state the optimizer's state, to all other replicas:
     * after initialisation, a load or a tdm_run_write, before an evaluation, and after an evaluation of averaged
     * weights. Collective in ddp. NULL: there is one replica. */
    tdm_status (*sync)(tdm_mode *mode, bool with_state);
    /* ---- tensors of the mode's own: what compressed gradients have kept back. NULL: there are none. ---- */
    /* On rank 0: where they are, those of all ranks together. *count 0: this job has none, or (`saves`) not yet. */
    tdm_status (*list_state)(tdm_mode *mode, tdm_zone *zone, bool saves, tdm_mode_tensor **out, int *count);
    tdm_status (*gather_state)(tdm_mode *mode); /* collective: rank 0's are up to date now */
    /* Collective: every rank takes its part of rank 0's tensors. `found` false: the checkpoint has none, and all begin
     * anew. */
    tdm_status (*share_state)(tdm_mode *mode, bool found);
} tdm_mode_ops;

enum { TDM_MODE_DEPTH = TDM_IN_FLIGHT };
struct tdm_mode {
    const tdm_mode_ops *ops;
    tdm_mode_params params;
    /* Set by open. */
    tdm_replica **replica; /* of this process; the first holds the unwrapped module (in ddp: this rank's) */
    int replica_count;
    int depth;                     /* steps that may be in flight: 1 (unless set) to TDM_MODE_DEPTH */
    const char *gradient_backend;  /* the backend that reduces them: "shm", "nccl"; "here" (unless set): this process */
    unsigned phases;               /* that a step has: bits of tdm_phase */
    int scatter;                   /* tdm_scatter; strided, unless set */
    bool is_verified;              /* this process's replicas are to stay equal; ranks always are */
    const char *in_turn;           /* why no step can stop at its loss, for messages; NULL: it can */
    struct tdm_powersgd *powersgd; /* approximates sums of gradients (modes/compress); NULL: none */
    /* Steps in flight; the n-th step's result is result[n % TDM_MODE_DEPTH]. */
    tdm_step_result result[TDM_MODE_DEPTH];
    uint64_t submitted, collected;
    /* Of a step in pieces: the micro-batch that goes forward or backward, and whether it is the step's last. */
    int64_t micro_batch;
    bool is_last;
};

/* From modes/modes.def, found at link time; indexed by tdm_mode_kind. */
extern const tdm_mode_ops *const tdm_builtin_modes[];

tdm_status tdm__mode_open(tdm_mode **out, const tdm_mode_ops *ops, const tdm_mode_params *params);
void tdm__mode_close(tdm_mode *mode); /* NULL is fine */
/* Starts one step over the batch, which must stay unchanged until the step is collected. At most mode->depth
 * steps may be in flight. */
tdm_status tdm__mode_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update);
/* Waits for the oldest submitted step. After a failure of either no step is in flight. */
tdm_status tdm__mode_collect(tdm_mode *mode, tdm_step_result *result);
/* Into how many micro-batches a step over this batch is cut, where it is cut into the most. */
int64_t tdm__mode_micro_batches(const tdm_mode *mode, const tdm_batch *batch);
/* What the step collected last was submitted without. No step is in flight. tdm__mode_forward goes on to the next
 * micro-batch. */
tdm_status tdm__mode_forward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result);
tdm_status tdm__mode_backward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                              tdm_step_result *result);
tdm_status tdm__mode_update(tdm_mode *mode, const tdm_update *update, tdm_step_result *result);
tdm_status tdm__mode_sync(tdm_mode *mode, bool with_state);

#endif
