/* A plan run by the executor, in memory that is filled beforehand. */
#ifndef TDM_TESTS_PLAN_RUN_H
#define TDM_TESTS_PLAN_RUN_H

#include "runtime/exec/replica.h"
#include "tests/plan/interpreter.h"
#include "tests/plan/random_graph.h"

enum { PLAN_POISON = 0xFF /* floats of it are NaN */, PLAN_ZEROS = 0 };

typedef struct plan_run {
    tdm_plan *plan;
    tdm_device *device;
    tdm_replica *replica; /* of the first stage */
    float *output;        /* of the last pass */
    int filling;          /* the byte that fills activations before each pass, and gradients before the first */
} plan_run;

/* With the parameters and buffers that `like` has now. False after a failed check. */
bool plan_run_open(plan_run *run, const interpreter *like, const tdm_plan_options *options, uint64_t seed, int filling);
void plan_run_close(plan_run *run);
/* first: gradients of parameters are written, else added to. */
void plan_run_pass(plan_run *run, const plan_pass *pass, bool first);

/* ---- batches ---- */

typedef struct batch {
    plan_pass pass;
    float *x, *d_output;
    int64_t *position;
    tdm_step_values values;
} batch;

/* Numbers in -1 .. 1. */
void batch_open(batch *b, const tdm_graph *graph, int64_t rows, bool training, uint64_t seed);
void batch_close(batch *b);

/* ---- comparing: the output, and after training gradients and buffers; the first that differs is told ---- */

bool plan_run_equals(const plan_run *a, const plan_run *b, const plan_pass *pass);
/* To the bit. */
bool plan_run_equals_reference(const plan_run *run, const interpreter *want, const plan_pass *pass);
/* `tolerance` is a part of the largest magnitude in a tensor; gradients: those, too. */
bool plan_run_near_reference(const plan_run *run, const interpreter *want, const plan_pass *pass, double tolerance,
                             bool gradients);

#endif
