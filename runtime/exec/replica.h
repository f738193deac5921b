/* A replica: the plan bound to one device's memory. The only stage of the run that changes while training. */
#ifndef TDM_EXEC_REPLICA_H
#define TDM_EXEC_REPLICA_H

#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

/* A batch as a replica sees it: rows [0, rows). */
typedef struct tdm_rows {
    int64_t rows;
    const float *x;          /* [rows, input] */
    const void *target;      /* int64_t[rows] or float[rows, output] */
    const int64_t *position; /* each row's place in the order of samples of this step */
} tdm_rows;

typedef struct tdm_prepared tdm_prepared; /* kernel states for one number of rows */

typedef struct tdm_replica {
    const tdm_plan *plan;
    const tdm_host *host;
    tdm_device *device;
    int index;                   /* in device_ids, or the rank */
    float *param, *grad, *state; /* plan->param_floats each; state: state_count times as many */
    int state_count;
    char *activation; /* plan->activation_bytes */
    char *buffer;     /* plan->buffer_bytes */
    bool owns_grad;
    tdm_prepared *prepared;         /* list, one for each number of rows seen */
    struct tdm_worker *preparation; /* makes the first of them while the run is still being opened; NULL: nothing to
                                     * wait for */
    size_t memory_bytes;            /* everything above: what the device holds */
    uint64_t seed, step;            /* of the counter-based generator */
} tdm_replica;

typedef struct tdm_replica_options {
    int index;
    int state_count; /* 0 sgd, 1 momentum, 2 adam */
    float *grad;     /* gradient arena lent by a communicator; NULL: its own */
    uint64_t seed;
} tdm_replica_options;

tdm_status tdm__replica_open(tdm_replica **out, const tdm_host *host, const tdm_plan *plan, tdm_device *device,
                             const tdm_replica_options *options);
void tdm__replica_close(tdm_replica *replica);

/* The executor: the plan's steps, in order, on the calling thread. */
typedef struct tdm_exec_hooks {
    /* All gradients of the bucket are written (the last micro-batch only). May be NULL. */
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
