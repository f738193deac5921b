/* conv1d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance conv1d_tolerance = {.pytorch = 1e-6};
static const op_case conv1d_cases[] = {
    {.attrs = "out=2 kernel=3", .rows = 2, .input = {2, {3, 7}}},
    {.attrs = "out=3 kernel=3 padding=1", .rows = 3, .input = {2, {2, 5}}},
    {.attrs = "out=4 kernel=1", .rows = 2, .input = {2, {3, 6}}},
    {.attrs = "out=2 kernel=1 stride=2 bias=false", .rows = 2, .input = {2, {4, 5}}},
    {.attrs = "out=3 kernel=4 stride=3 padding=2", .rows = 2, .input = {2, {2, 10}}},
    {.attrs = "out=2 kernel=3 dilation=3 padding=2", .rows = 2, .input = {2, {2, 9}}},
    {.attrs = "out=6 kernel=3 padding=1 groups=2", .rows = 2, .input = {2, {4, 4}}},
    {.attrs = "out=8 kernel=5 padding=2 groups=4 bias=false", .rows = 2, .input = {2, {4, 6}}},
    {.attrs = "out=3 kernel=3 padding=3", .rows = 1, .input = {2, {1, 1}}},
    {.attrs = "out=3 kernel=4 padding=same", .rows = 2, .input = {2, {2, 5}}},
    {.attrs = "out=2 kernel=3 padding=same dilation=2", .rows = 2, .input = {2, {3, 8}}},
    {.attrs = "out=4 kernel=3 padding=valid stride=2", .rows = 2, .input = {2, {3, 8}}},
    {.attrs = "out=16 kernel=3 padding=1", .rows = 5, .input = {2, {16, 37}}},
    {.attrs = "out=32 kernel=5 padding=same bias=false", .rows = 3, .input = {2, {16, 21}}},
    {.attrs = "out=16 kernel=3 stride=2 padding=1 groups=16", .rows = 2, .input = {2, {16, 16}}},
    {.attrs = "out=16 kernel=4 stride=3 padding=2", .rows = 9, .input = {2, {9, 41}}},
    {.attrs = "out=17 kernel=1", .rows = 2, .input = {2, {33, 70}}},
    {.attrs = "out=16 kernel=3 dilation=5 padding=7 bias=false", .rows = 2, .input = {2, {12, 19}}},
    {.attrs = "out=24 kernel=7 padding=3", .rows = 9, .input = {2, {3, 129}}},
};
