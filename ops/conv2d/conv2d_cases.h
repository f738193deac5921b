/* conv2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance conv2d_tolerance = {.pytorch = 1e-6};
static const op_case conv2d_cases[] = {
    {.attrs = "out=2 kernel=3", .rows = 2, .input = {3, {2, 5, 4}}},
    {.attrs = "out=3 kernel=3 padding=1", .rows = 2, .input = {3, {2, 4, 5}}},
    {.attrs = "out=4 kernel=1", .rows = 3, .input = {3, {3, 4, 4}}},
    {.attrs = "out=2 kernel=1 stride=2 bias=false", .rows = 2, .input = {3, {4, 5, 5}}},
    {.attrs = "out=3 kernel=[3,2] stride=[2,1] padding=[1,0]", .rows = 2, .input = {3, {2, 6, 5}}},
    {.attrs = "out=2 kernel=3 dilation=2 padding=2", .rows = 2, .input = {3, {2, 6, 6}}},
    {.attrs = "out=2 kernel=2 dilation=[1,3] stride=[3,2]", .rows = 1, .input = {3, {1, 7, 9}}},
    {.attrs = "out=6 kernel=3 padding=1 groups=2", .rows = 2, .input = {3, {4, 4, 4}}},
    {.attrs = "out=8 kernel=3 padding=1 groups=4 bias=false", .rows = 2, .input = {3, {4, 5, 5}}},
    {.attrs = "out=3 kernel=3 padding=3", .rows = 1, .input = {3, {1, 1, 1}}},
    {.attrs = "out=2 kernel=5 stride=5 padding=2", .rows = 1, .input = {3, {1, 11, 11}}},
    {.attrs = "out=2 kernel=[1,7] padding=[0,3]", .rows = 2, .input = {3, {1, 3, 7}}},
    {.attrs = "out=16 kernel=3 padding=1", .rows = 4, .input = {3, {16, 6, 6}}},
    {.attrs = "out=32 kernel=3 padding=1 bias=false", .rows = 3, .input = {3, {16, 7, 5}}},
    {.attrs = "out=16 kernel=3 stride=2 padding=1 groups=16", .rows = 2, .input = {3, {16, 8, 8}}},
    {.attrs = "out=24 kernel=3 padding=1", .rows = 2, .input = {3, {3, 9, 9}}},
    {.attrs = "out=32 kernel=1", .rows = 3, .input = {3, {32, 4, 4}}},
    {.attrs = "out=32 kernel=3 padding=1", .rows = 6, .input = {3, {16, 13, 10}}},
    {.attrs = "out=3 kernel=[4,2] padding=same dilation=[1,3]", .rows = 2, .input = {3, {2, 3, 5}}},
    {.attrs = "out=16 kernel=2 padding=same", .rows = 3, .input = {3, {16, 5, 6}}},
    {.attrs = "out=4 kernel=3 padding=valid stride=2", .rows = 2, .input = {3, {3, 6, 5}}},
};
