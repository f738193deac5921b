/* leaky_relu: the cases that every kernel of the op must pass. `.input` is {number of dimensions, {sizes}},
 * without the batch dimension. */
#include "tests/ops/op_case.h"

static const op_tolerance leaky_relu_tolerance = {.pytorch = 0};
static const op_case leaky_relu_cases[] = {
    {.rows = 1, .input = {1, {1}}, .kinks = true},
    {.attrs = "negative_slope=0.25", .rows = 3, .input = {1, {37}}, .kinks = true},
    {.attrs = "negative_slope=0", .rows = 2, .input = {3, {3, 5, 7}}, .kinks = true},
    {.rows = 2, .input = {3, {16, 4, 3}}, .kinks = true},
    {.rows = 2, .input = {3, {17, 33, 5}}, .kinks = true, .large = true},
};
