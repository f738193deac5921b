/* tanh: the cases that every kernel of the op must pass. `.input` is {number of dimensions, {sizes}},
 * without the batch dimension. */
#include "tests/ops/op_case.h"

static const op_tolerance tanh_tolerance = {.pytorch = 1e-6};
static const op_case tanh_cases[] = {
    {.rows = 1, .input = {1, {1}}},
    {.rows = 3, .input = {1, {37}}},
    {.rows = 2, .input = {3, {3, 5, 7}}},
    {.rows = 2, .input = {3, {16, 4, 3}}},
    {.rows = 2, .input = {3, {17, 33, 5}}, .large = true},
};
