/* tandem/parts.h - parts of a run that the program brings itself: a loss, a metric, an optimizer. They are members of
 * tdm_run_options (tandem/tandem.h); runtime/docs/own-loop.md has examples.
 *
 * They are called with host memory, by a run on the CPU; on a GPU the run is refused (TDM_E_UNSUPPORTED). A call may
 * use no function of its run. The members of a struct that tandem fills are for reading, and their pointers are valid
 * during the call.
 *
 * Errors: a call returns TDM_OK, or the status with which the step or evaluation then fails. After a step the run can
 * only be closed.
 *
 * Lifetime: tdm_run_open copies the struct and its texts; `user` is used until tdm_run_close. In ddp every rank passes
 * the same parts. */
#ifndef TANDEM_PARTS_H
#define TANDEM_PARTS_H

#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

/* Rows of a batch: what the model put out, and what it should have. */
typedef struct tdm_outputs {
    uint32_t size;       /* of this struct in the library that calls; members are only ever added at its end */
    int64_t rows, width; /* rows: at least 1 where a part is called */
    const float *y;      /* [rows][width] */
    const void *target;  /* int64_t[rows] if the job's loss takes labels, loss.ignore_index among them; else
                            float[rows][width] */
} tdm_outputs;
#define TDM_OUTPUTS_INIT \
    { sizeof(tdm_outputs), 0, 0, NULL, NULL }

/* A loss in place of the job's. Of the job's `loss` remain: whether samples have labels or numbers, what the mean
 * divides by (the rows, or the numbers, that count, with their weights) and how accuracy is counted.
 *
 * Adds up the losses of the rows, not divided, into *sum, which comes as 0; and, unless `dy` is NULL as in an
 * evaluation, writes d(sum)/dy, [rows][width], all of it. tandem divides both by the same number.
 *
 * Calls: for each replica and micro-batch one, in the order of the micro-batches; of an evaluation for each batch. dp
 * with `loss: replica` calls from the threads of its replicas at once; otherwise the thread that trains calls, with
 * stages the last stage's. If each row's loss depends on its row alone, results have the same bits in all modes. */
typedef struct tdm_own_loss {
    uint32_t size;    /* sizeof(tdm_own_loss) */
    const char *name; /* of letters, digits, '_' and '-', at most 15: checkpoints have it, and messages */
    tdm_status (*run)(void *user, const tdm_outputs *of, double *sum, float *dy);
    void *user;
} tdm_own_loss;
#define TDM_OWN_LOSS_INIT \
    { sizeof(tdm_own_loss), NULL, NULL, NULL }

/* One more number of each evaluation, beside loss and accuracy: tdm_scores.metric, and `metric` in events and
 * metrics.jsonl. Sets *sum and *weight, which come as 0, for these rows; the metric is the sum of all sums over the sum
 * of all weights, added in the order of the batches. The thread that evaluates calls. */
typedef struct tdm_own_metric {
    uint32_t size;
    const char *name; /* as in tdm_own_loss */
    tdm_status (*run)(void *user, const tdm_outputs *of, double *sum, double *weight);
    void *user;
} tdm_own_metric;
#define TDM_OWN_METRIC_INIT \
    { sizeof(tdm_own_metric), NULL, NULL, NULL }

enum { TDM_OWN_STATES = 4 };

/* What an optimizer changes: all parameters of one group, one behind another. Between two of them there may be unused
 * numbers, whose gradients are 0. */
typedef struct tdm_own_update {
    uint32_t size;                     /* of this struct in the library that calls */
    int64_t count;                     /* numbers in each array */
    float *p;                          /* [count]: parameters, to be changed */
    const float *g;                    /* [count]: gradients of the step's mean loss, clipped as the job is */
    float *state[TDM_OWN_STATES];      /* [count], to be changed; zeros before the first step. NULL: none */
    int64_t step;                      /* from 1; a step that skips its update is not counted */
    int group;                         /* optimizer.groups[group]; -1: in no group */
    double lr, momentum, weight_decay; /* of this step and group, by the job's optimizer, schedule and groups */
} tdm_own_update;

/* An optimizer in place of the job's, of which lr, momentum, weight_decay, groups and the schedule remain. One call for
 * each group that has parameters, and with stages for each of them, in the thread of the stage; dp with `update: all`
 * calls from the threads of its replicas at once. The rule must not depend on where a number lies: modes, stages and
 * groups cut the arrays differently.
 *
 * One that follows an optimizer of tandem to the bit does what that does in float32, with fused multiply-adds (fmaf) in
 * the same places, and is compiled with -ffp-contract=off, so that there are no others. SGD, with m for the momentum, d
 * for the weight decay and r for the rate, each rounded to float:
 *     g = d != 0 ? fmaf(p, d, g) : g;    b = step == 1 || m == 0 ? g : m * b + g;    p = fmaf(b, -r, p)
 *
 * Checkpoints keep the state under the names given here: "<state>.<parameter>". */
typedef struct tdm_own_optimizer {
    uint32_t size;
    const char *name; /* as in tdm_own_loss, and none of tandem's own: a run resumes with the optimizer of this name */
    const char *state[TDM_OWN_STATES]; /* names of its arrays of state, such as "exp_avg"; NULL behind the last */
    tdm_status (*run)(void *user, const tdm_own_update *update);
    void *user;
} tdm_own_optimizer;
#define TDM_OWN_OPTIMIZER_INIT \
    { sizeof(tdm_own_optimizer), NULL, {NULL, NULL, NULL, NULL}, NULL, NULL }

TDM_END_DECLS
#endif
