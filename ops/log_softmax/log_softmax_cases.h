/* log_softmax: the cases that every kernel of the op must pass. In a gradient of few classes large numbers cancel, so
 * CUDA's floats are further from doubles. */
#include "tests/ops/op_case.h"

static const op_tolerance log_softmax_tolerance = {.pytorch = 1e-6, .cuda = 1e-5, .cuda_large = 1e-5};
static const op_case log_softmax_cases[] = {
    {.rows = 1, .input = {1, {1}}},   {.rows = 3, .input = {1, {2}}},
    {.rows = 5, .input = {1, {10}}},  {.rows = 2, .input = {1, {37}}},
    {.rows = 9, .input = {1, {131}}}, {.rows = 70, .input = {1, {1000}}, .large = true},
};
