/* Runs one kernel on one case the way the executor would, and makes every breach of the contract show:
 * guard bytes around every buffer, NaN where results must be written, inputs compared afterwards, x and y overwritten
 * before backward unless the op says it reads them, layouts converted by an index formula of its own. */
#ifndef TDM_TESTS_OP_DRIVER_H
#define TDM_TESTS_OP_DRIVER_H

#include "tests/ops/op_data.h"

typedef struct op_setting {
    int64_t rows;      /* 0: all of the case */
    tdm_layout layout; /* that the producers offer */
    bool training, relu, in_place, without_dx, fast;
    bool sums;                 /* backward also adds up dx, channel by channel */
    bool adds;                 /* the further input is added to y; of ops whose y has the shape of x */
    bool over_dy;              /* with adds: its dx lies on dy */
    bool biased;               /* the further parameter is; not in training */
    int replicas;              /* above 1: so many share the rows and exchange statistics */
    int threads;               /* 0: 1 */
    bool rounds_y;             /* y becomes bf16 before backward reads it: in a run of floats beside one of bf16 */
    int precision;             /* tdm_precision; bf16: the data is rounded already, results are widened */
    struct tdm_device *device; /* NULL: the host's memory */
    bool odd, graph;           /* on a device: floats are aligned as floats only; passes are captured, then run */
    uint64_t seed, step;
    uint32_t stream;
} op_setting;

/* In plain layout, `rows` rows. */
typedef struct op_result {
    bool ran; /* false: the kernel does not fit, `why` says why, or the layout does not apply */
    char why[96];
    int64_t y_count, x_count[TDM_MAX_INPUTS], channels;
    float *y, *dx[TDM_MAX_INPUTS], *dparam[TDM_MAX_PARAMS], *buffer[TDM_MAX_BUFFERS];
    float *sums; /* of dx[0], one for each of `channels`; NULL: not asked for */
    int64_t counter;
    tdm_status status; /* of the kernel; on failure there are no results */
} op_result;

/* As tdm_module.thread_begin, of the module under test; NULL: the calling thread does all. */
extern void (*op_thread_begin)(void);

/* A breach of the contract is printed and counted in tdm_test_failures. */
void op_run(op_result *out, const tdm_kernel *kernel, const op_data *data, const op_setting *setting);
void op_result_close(op_result *result);

/* |got - want| <= tolerance * max|want|, NaN equal to NaN; prints and counts the worst element otherwise. */
bool op_near(const char *what, const float *got, const float *want, int64_t count, double tolerance);
/* All results of two runs, gradients included when training; got's sums, where it has any, against want's dx. */
bool op_results_near(const op_data *data, const op_result *got, const op_result *want, double tolerance);
/* The same where got's y and dx were rounded to bf16 in the end and want's were not. Tolerance 0: they are equal to
 * want's, rounded; else a rounding may go the other way. */
bool op_results_near_bf16(const op_data *data, const op_result *got, const op_result *want, double tolerance);

#endif
