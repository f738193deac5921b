/* Small jobs run whole, in any mode, for laws about them. */
#ifndef TDM_TEST_LAW_H
#define TDM_TEST_LAW_H

#include <tandem/tandem.h>

enum { LAW_MAX_STEPS = 64 };

typedef struct law_result {
    tdm_status status;
    char message[512];
    int alike; /* every rank ended with this status */
    char params[40];
    double loss[LAW_MAX_STEPS];
    int64_t steps;
    int64_t comm_steps; /* whose `comm` is at least their `comm_exposed`; a step without the two is none */
    double eval_loss, accuracy;
    float buffers[64]; /* first batch-norm statistics, to see that they are replica 0's */
} law_result;

/* A convolutional net with batch norm, dropout and a residual join, over random images. */
tdm_graph *law_graph(int with_batchnorm, int with_dropout);
tdm_graph *law_log_softmax(void); /* the same with both, and log_softmax behind it, for the loss nll */
/* Of two pictures and a row of features, which the last layers take; over random numbers. */
tdm_graph *law_inputs(void);
/* Of conv1d, layernorm and gru, over random series. */
tdm_graph *law_series(void);
void law_job(tdm_job *job);
/* The same; with sanitizers on fewer samples and in fewer steps, in which runs the same code: with up to four replicas
 * the last batch of an epoch is small too, and with two and more the next epoch has begun. */
void law_short_job(tdm_job *job);
/* A small net over drawn digits, and its job, in which mixup and cutmix mix samples. */
tdm_graph *law_mixing(tdm_job *job);
/* Opens, trains to the end, closes. In ddp and on devices other than the CPU the ranks are forked and rank 0's result
 * is returned. */
law_result law_run(const tdm_job *job, const tdm_graph *graph);
/* In ddp rank r has `threads[r]` threads. */
law_result law_run_threads(const tdm_job *job, const tdm_graph *graph, const int *threads);
/* The same by a program that has parts of its own. NULL members: what law_run does. */
typedef struct law_program {
    void (*set)(tdm_run_options *options);
    tdm_status (*train)(tdm_run *run); /* in place of tdm_run_train; an evaluation follows */
} law_program;
law_result law_try_program(const tdm_job *job, const tdm_graph *graph, const law_program *program);
/* The same, and a run that fails is a failed check. */
law_result law_run_program(const tdm_job *job, const tdm_graph *graph, const law_program *program);
/* Opened to predict: evaluates the weights that the job names. */
law_result law_evaluate(const tdm_job *job, const tdm_graph *graph);
/* law_run, and a run that fails is a failed check. */
law_result law_run_ok(const tdm_job *job, const tdm_graph *graph);
/* Parameters, every loss, evaluation and buffers: the same bits. */
void law_check_same(const law_result *a, const law_result *b);

#endif
