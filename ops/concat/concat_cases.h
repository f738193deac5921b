/* concat: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance concat_tolerance = {0};
static const op_case concat_cases[] = {
    {.rows = 2, .input = {1, {5}}, .other = {1, {3}}, .inputs = 2},
    {.rows = 3, .input = {3, {3, 4, 5}}, .other = {3, {2, 4, 5}}, .inputs = 3},
    {.rows = 2, .input = {3, {16, 3, 4}}, .other = {3, {32, 3, 4}}, .inputs = 2},
    {.attrs = "dim=2", .rows = 2, .input = {3, {16, 3, 4}}, .other = {3, {16, 1, 4}}, .inputs = 3},
    {.attrs = "dim=-1", .rows = 2, .input = {3, {16, 2, 3}}, .other = {3, {16, 2, 5}}, .inputs = 2},
    {.attrs = "dim=-2", .rows = 3, .input = {2, {1, 6}}, .other = {2, {3, 6}}, .inputs = 2},
    {.rows = 1, .input = {1, {1}}, .inputs = TDM_MAX_INPUTS},
    {.rows = 3, .input = {3, {24, 7, 9}}, .other = {3, {8, 7, 9}}, .inputs = 4, .large = true},
    {.rows = 3, .input = {3, {5, 17, 19}}, .other = {3, {8, 17, 19}}, .inputs = 2, .large = true},
};
