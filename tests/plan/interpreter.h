/* A graph run without a plan: every value in memory of its own, layer by layer. */
#ifndef TDM_TESTS_INTERPRETER_H
#define TDM_TESTS_INTERPRETER_H

#include "runtime/graph/graph.h"
#include "tests/support/tdm_test.h"

/* What a pass over a batch is told, of both who interpret and who run a plan. */
typedef struct plan_pass {
    int64_t rows;
    const float *x;        /* [rows] samples */
    const float *d_output; /* [rows, output] */
    const int64_t *position;
    const tdm_step_values *values;
    uint64_t seed;
    bool training;
} plan_pass;

typedef struct interpreter {
    const tdm_graph *graph;
    const tdm_kernel *const *kernels;
    float **param, **dparam; /* by number in the graph; dparam adds up over passes */
    float **buffer;          /* kept over passes; a counter is an int64_t */
    float **value, **gradient;
    bool *needs_gradient, *has_gradient; /* by value */
    bool *frozen;                        /* by number of the parameter: it has no gradient */
    void **saved;                        /* by node */
    int64_t rows;                        /* the most */
    int passes;                          /* that were trained */
} interpreter;

/* With the first kernel of each op in the list, which must take PLAIN layouts. Parameters are drawn from the seed;
 * running means are 0 and variances 1. `freeze`: patterns of parameters that are not trained; NULL: none. */
void interpreter_open(interpreter *run, const tdm_graph *graph, const tdm_kernel *const *kernels,
                      const tdm_texts *freeze, int64_t rows, uint64_t seed);
void interpreter_close(interpreter *run);
/* value[graph->output] is the output, and with `training` dparam has the gradients. */
void interpreter_run(interpreter *run, const plan_pass *pass);

#endif
