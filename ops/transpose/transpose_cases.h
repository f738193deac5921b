/* transpose: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance transpose_tolerance = {0};
static const op_case transpose_cases[] = {
    {.rows = 2, .input = {2, {3, 5}}},
    {.rows = 3, .input = {2, {1, 4}}},
    {.rows = 2, .input = {2, {7, 1}}},
    {.rows = 5, .input = {2, {33, 70}}, .large = true},
};
