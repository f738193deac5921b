/* A mode: how replicas are made, and how batches, outputs and gradients travel between them.
 *
 * The trainer submits optimizer steps and collects their results; the mode tells the story of its step in the order in
 * which PyTorch's wrapper of the same name does it, calling the executor, the loss and the optimizer. */
#ifndef TDM_EXEC_MODE_H
#define TDM_EXEC_MODE_H

#include <tandem/sys/comm.h>

#include "runtime/data/data.h"
#include "runtime/exec/replica.h"

/* What the optimizer is told for one step; read while the step is submitted. */
typedef struct tdm_update {
    const tdm_optim_def *optim;
    tdm_optim_run *optim_run; /* its kernel on this device */
    const tdm_optimizer_section *optimizer;
    double lr, momentum; /* of this step: schedules may change both (one-cycle) */
    int64_t t;           /* optimizer steps done before this one + 1 */
    double clip_norm;    /* NaN: none */
    bool stop;           /* this process has been asked to stop after this step */
} tdm_update;

typedef struct tdm_step_result {
    double loss; /* mean over the global batch: replica sums added in replica order, divided once */
    int64_t rows, correct;
    int64_t denominator; /* of that mean; 0 where every label is ignored, and the loss is NaN */
    double grad_norm;    /* before clipping; NaN when not asked for */
    tdm_times times;
    int64_t bytes_moved; /* between replicas, by this process */
    bool stop;           /* some process has been asked to stop: every rank learns it in the same step */
} tdm_step_result;

typedef struct tdm_mode_params {
    const tdm_host *host;
    const tdm_plan *plan;
    const tdm_job *job;
    const tdm_device_ops *device;
    const tdm_loss_def *loss;
    tdm_status (*loss_run)(const tdm_loss_args *args); /* the loss's kernel on this device */
    const void *loss_attrs;
    int replicas;                    /* of the whole job */
    int rank;                        /* ddp: this process's replica; else 0 */
    tdm_comm *comm;                  /* ddp: of all ranks, in host memory; borrowed */
    const tdm_comm_ops *device_comm; /* ddp: the backend that reduces in the device's memory; NULL: `comm` does it */
    int state_count;
    bool has_ignored; /* some label may be ignored: the denominator of the mean is counted each step */
} tdm_mode_params;

typedef struct tdm_mode tdm_mode;
typedef struct tdm_mode_ops {
    const char *name, *doc;
    tdm_status (*open)(tdm_mode **out, const tdm_mode_params *params);
    /* One optimizer step over the batch, all replicas: begins it. The batch stays as it is until it is collected. */
    tdm_status (*submit)(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update);
    /* Waits for the oldest step that was submitted. At most mode->depth may be under way. */
    tdm_status (*collect)(tdm_mode *mode, tdm_step_result *result);
    /* Evaluation forward of up to replicas-here shards at once, shard i on local replica i; outputs[i] is [rows, width]
     * in host memory and stays valid until the next call. */
    tdm_status (*forward)(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs);
    /* Spread the root replica's parameters, buffers and optimizer state to all others (after initialisation, a load, or
     * before evaluation). Collective in ddp. */
    tdm_status (*spread)(tdm_mode *mode, bool with_state);
    void (*close)(tdm_mode *mode);
} tdm_mode_ops;
enum { TDM_MODE_DEPTH = TDM_IN_FLIGHT };
struct tdm_mode {
    const tdm_mode_ops *ops;
    tdm_mode_params params;
    /* Set by open. */
    tdm_replica **replica; /* of this process; the first holds the unwrapped module (in ddp: this rank's) */
    int replica_count;
    int depth;             /* steps that may be submitted before the first is collected: 1 to TDM_MODE_DEPTH */
    const char *gradients; /* where those of several replicas meet: "here", "shm", "nccl" */
};

/* From modes/modes.def, found at link time; indexed by tdm_mode_kind. */
extern const tdm_mode_ops tdm_mode_single, tdm_mode_dp, tdm_mode_ddp;
extern const tdm_mode_ops *const tdm_builtin_modes[];

#endif
