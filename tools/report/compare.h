/* compare.h - the runs of one `tandem compare` and their differences. */
#ifndef COMPARE_H
#define COMPARE_H

#include <tandem/checkpoint.h>

#include "tools/report/report.h"

enum { COMPARE_MODES_MAX = 6 };

typedef struct comparison {
    tool *t;
    const tdm_job *job;
    char *folder;
    const char *mode[COMPARE_MODES_MAX];
    int count;
    report_run run[COMPARE_MODES_MAX];
    int runs;          /* number of entries of `run` read so far */
    double one_device; /* samples/s in single mode */
    int64_t steps;     /* of each run; 0: as in the file */
    /* A setting of the job that only ddp computes: runs in other modes are without it. NULL: there is none. */
    const char *only_ddp;
    const char *hosts;    /* --hosts: where ddp runs; NULL: here */
    char *devices;        /* with hosts, an override for the other modes: as many devices as there are ranks */
    bool is_without_dp;   /* dp is left out: the job has parallel.stages */
    bool tolerance_given; /* false: every bit must be equal */
    double loss_tolerance, param_tolerance;
    /* the results: each run against the first */
    double max_loss_diff, max_param_diff;
    int64_t max_loss_step;        /* the step with the largest difference; 0: none */
    int64_t first_differing_step; /* 0: none */
    char max_param_name[160];
    bool equal_bits, within;
} comparison;

/* Is run `i` without settings of the job? */
bool compare_is_without(const comparison *c, int i);
/* Compares the losses step by step, then the final checkpoints. */
int compare_measure(comparison *c);
json_t *compare_json(const comparison *c);
void compare_print(const comparison *c); /* on stdout */

#endif
