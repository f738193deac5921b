/* adaptive_avgpool1d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance adaptive_avgpool1d_tolerance = {.pytorch = 1e-6, .cuda_large = 1e-6};
static const op_case adaptive_avgpool1d_cases[] = {
    {.attrs = "out=1", .rows = 2, .input = {2, {3, 5}}},
    {.attrs = "out=3", .rows = 2, .input = {2, {2, 6}}},
    {.attrs = "out=4", .rows = 2, .input = {2, {2, 7}}},
    {.attrs = "out=5", .rows = 1, .input = {2, {1, 3}}},
    {.attrs = "out=1", .rows = 3, .input = {2, {32, 17}}},
    {.attrs = "out=1", .rows = 2, .input = {2, {8, 500}}, .large = true},
    {.attrs = "out=7", .rows = 1, .input = {2, {2, 1500}}, .large = true},
};
