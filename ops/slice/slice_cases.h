/* slice: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance slice_tolerance = {0};
static const op_case slice_cases[] = {
    {.attrs = "start=2 end=5", .rows = 3, .input = {1, {9}}},
    {.attrs = "start=0 end=1", .rows = 2, .input = {1, {4}}},
    {.attrs = "start=3", .rows = 2, .input = {1, {4}}},
    {.attrs = "start=0", .rows = 2, .input = {2, {3, 5}}},
    {.attrs = "start=1 end=3", .rows = 2, .input = {3, {16, 2, 3}}},
    {.attrs = "start=1 end=700", .rows = 9, .input = {1, {1023}}, .large = true},
};
