/* identity: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance identity_tolerance = {0};
static const op_case identity_cases[] = {
    {.rows = 2, .input = {3, {3, 5, 7}}},
    {.rows = 2, .input = {3, {16, 4, 3}}},
    {.rows = 3, .input = {1, {4}}},
};
