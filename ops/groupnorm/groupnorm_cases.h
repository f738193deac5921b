/* groupnorm: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance groupnorm_tolerance = {.pytorch = 2e-6, .cuda = 1e-5, .cuda_large = 1e-5};
static const op_case groupnorm_cases[] = {
    {.attrs = "groups=1", .rows = 3, .input = {1, {7}}},
    {.attrs = "groups=2 eps=1.0e-3", .rows = 3, .input = {1, {10}}},
    {.attrs = "groups=3", .rows = 2, .input = {3, {6, 3, 2}}},
    {.attrs = "groups=4 affine=false", .rows = 2, .input = {3, {4, 3, 3}}},
    {.attrs = "groups=2", .rows = 3, .input = {2, {4, 9}}},
    {.attrs = "groups=4", .rows = 2, .input = {3, {16, 2, 5}}},
    {.attrs = "groups=8", .rows = 9, .input = {1, {48}}},
    {.attrs = "groups=2", .rows = 7, .input = {3, {6, 19, 21}}, .large = true},
    {.attrs = "groups=4", .rows = 67, .input = {1, {132}}, .large = true},
};
