/* add: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance add_tolerance = {0};
static const op_case add_cases[] = {
    {.rows = 2, .input = {1, {37}}, .inputs = 2},
    {.rows = 2, .input = {3, {3, 5, 7}}, .inputs = 2},
    {.rows = 3, .input = {3, {16, 4, 3}}, .inputs = 3},
    {.rows = 1, .input = {1, {3}}, .inputs = TDM_MAX_INPUTS},
    {.rows = 3, .input = {3, {8, 7, 9}}, .inputs = 3, .large = true},
};
