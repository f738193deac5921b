/* linear: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance linear_tolerance = {.pytorch = 1e-6};
static const op_case linear_cases[] = {
    {.attrs = "out=3", .rows = 2, .input = {1, {5}}},
    {.attrs = "out=1", .rows = 1, .input = {1, {1}}},
    {.attrs = "out=4 bias=false", .rows = 3, .input = {1, {9}}},
    {.attrs = "out=10", .rows = 7, .input = {1, {64}}},
    {.attrs = "out=4", .rows = 3, .input = {2, {5, 6}}},
    {.attrs = "out=6 in=4", .rows = 2, .input = {3, {16, 3, 4}}},
    {.attrs = "out=32", .rows = 5, .input = {2, {7, 48}}},
    {.attrs = "out=33", .rows = 17, .input = {1, {50}}},
    {.attrs = "out=64", .rows = 32, .input = {1, {128}}},
    {.attrs = "out=6", .rows = 300, .input = {1, {21}}},
};
