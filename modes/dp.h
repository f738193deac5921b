/* What dp's files share. dp.c: the step. dp_passes.c: forward and backward. dp_gathered.c: the passes with `loss:
 * gathered`. dp_reduce.c: the sum of the gradients. */
#ifndef TDM_MODES_DP_H
#define TDM_MODES_DP_H

#include "modes/compress/powersgd.h"
#include "modes/exchange.h"
#include "modes/parallel_apply.h"

typedef struct dp {
    tdm_mode base;
    int count;
    tdm_replica **replica;
    tdm_team team;
    bool updates_all;
    tdm_replica *output_replica;    /* on output_device. It and the next three are NULL with loss: replica */
    char *output, *output_gradient; /* gathered, [rows of all, width] */
    char *target;                   /* targets of the other replicas, gathered; NULL if every device reaches them */
    float **peer_gradient; /* of each replica, on its device, if it adds another's gradients to its own and does not
                              reach them; else NULL. All of it NULL if every device reaches them all */
} dp;

/* A step while it is submitted. */
typedef struct dp_step {
    dp *dp;
    const tdm_batch *batch;
    const tdm_update *update;
    tdm_values values;
    int64_t micro_batch;
    int apart;                              /* distance of the replicas whose gradients are added now */
    tdm_rows all[TDM_REPLICAS_MAX];         /* of each replica, where it sees them */
    tdm_rows rows[TDM_REPLICAS_MAX];        /* of this micro-batch; rows 0: the replica has none */
    int plan_step[TDM_REPLICAS_MAX];        /* of each replica: where forward or backward goes on */
    int64_t output_first[TDM_REPLICAS_MAX]; /* the first row of each replica among the gathered outputs */
} dp_step;

/* Begins the next micro-batch: the rows of each replica, and where its outputs are gathered. */
void tdm__dp_micro_batch(dp_step *step);
/* Forward and backward of this micro-batch, on all replicas in parallel. When backward begins, each replica has the
 * gradient of its outputs, or they are gathered on one device. */
tdm_status tdm__dp_forward(dp_step *step);
tdm_status tdm__dp_backward(dp_step *step);
/* Bytes of the outputs of `rows` rows. */
static inline size_t tdm__dp_output_bytes(const tdm_plan *plan, int64_t rows) {
    return (size_t)(rows * plan->output_width) * plan->element_bytes;
}
/* Memory for the outputs of all replicas, their gradient and, where they are needed, targets; released by dp's close.
 */
tdm_status tdm__dp_open_gathered(dp *d);
/* Forward, gather and loss of this micro-batch, up to the gradient of the gathered outputs. */
tdm_status tdm__dp_gathered_forward(dp_step *step);
/* Adds the gradients as the canonical tree, or approximates their sum (PowerSGD): on replica 0, with update: all on
 * every replica. */
tdm_status tdm__dp_reduce(dp_step *step);

#endif
