/* The data of one case of an op, and its layouts. */
#ifndef TDM_TESTS_OP_DATA_H
#define TDM_TESTS_OP_DATA_H

#include "tests/ops/op_case.h"

/* Data of a case in plain layout; kernels get copies. Values are small multiples of 1/64, or random. */
typedef struct op_data {
    const op_case *test;
    const tdm_op_def *def;
    void *attrs;
    tdm_infer infer;
    tdm_shape x_shape, y_shape; /* with rows; x: the first input */
    int64_t x_count, y_count;   /* all rows */
    /* One more input, and one more parameter with a number for each channel, where there is room: for epilogues. */
    float *x[TDM_MAX_INPUTS], *dy, *param[TDM_MAX_PARAMS], *buffer[TDM_MAX_BUFFERS];
    int64_t param_count[TDM_MAX_PARAMS], buffer_count[TDM_MAX_BUFFERS]; /* numbers in each */
    int64_t counter, *position;
} op_data;

/* Random data: x, dy and parameters normal; running variances positive. False (and a printed reason) if the case is
 * not valid. */
bool op_data_open(op_data *data, const char *op, const op_case *test, uint64_t seed);
void op_data_close(op_data *data);

/* Of any input, with rows. */
tdm_shape op_data_shape(const op_data *data, int input);
int64_t op_data_count(const op_data *data, int input);

/* Channels of the shape divide into the layout's blocks. */
bool op_layout_applies(tdm_layout layout, const tdm_shape *shape);
/* to_plain: `from` is in the layout and `to` plain; else the other way. By an index formula, element by element. */
void op_convert(float *to, const float *from, const tdm_shape *shape, int64_t rows, tdm_layout layout, bool to_plain);

const tdm_kernel *op_reference(const char *op);
/* To what bf16 has, and back to floats: of all data that a kernel gets in bf16, parameters included. */
void op_round(float *numbers, int64_t count);
void op_data_round(op_data *data);
/* Drops the bits of x, dy and parameters that tf32 has not, so that tf32 holds them exactly. */
void op_data_keep_tf32(op_data *data);
/* "conv2d 'out=4 kernel=3' 2 x 3x5x5": of the case, for messages; valid until the next call. */
const char *op_data_name(const op_data *data);

/* Zeroed memory, for free(). Ends the program if there is none. */
void *op_take(size_t bytes);

#endif
