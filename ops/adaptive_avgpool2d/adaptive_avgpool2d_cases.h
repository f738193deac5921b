/* adaptive_avgpool2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance adaptive_avgpool2d_tolerance = {.pytorch = 1e-6, .cuda_large = 1e-6};
static const op_case adaptive_avgpool2d_cases[] = {
    {.attrs = "out=1", .rows = 2, .input = {3, {3, 5, 4}}},
    {.attrs = "out=[2,3]", .rows = 2, .input = {3, {2, 6, 6}}},
    {.attrs = "out=[3,4]", .rows = 2, .input = {3, {2, 7, 5}}},
    {.attrs = "out=5", .rows = 1, .input = {3, {1, 3, 5}}},
    {.attrs = "out=1", .rows = 2, .input = {3, {32, 7, 7}}},
    {.attrs = "out=1", .rows = 2, .input = {3, {8, 24, 21}}, .large = true},
    {.attrs = "out=[2,3]", .rows = 1, .input = {3, {2, 31, 50}}, .large = true},
};
