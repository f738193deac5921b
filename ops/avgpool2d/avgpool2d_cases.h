/* avgpool2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance avgpool2d_tolerance = {.pytorch = 1e-6, .cuda_large = 1e-6};
static const op_case avgpool2d_cases[] = {
    {.attrs = "kernel=2", .rows = 2, .input = {3, {2, 4, 6}}},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {3, {2, 7, 6}}},
    {.attrs = "kernel=3 stride=2 padding=1 count_include_pad=false", .rows = 2, .input = {3, {2, 7, 6}}},
    {.attrs = "kernel=[2,3] stride=1", .rows = 1, .input = {3, {1, 5, 5}}},
    {.attrs = "kernel=2 padding=1 count_include_pad=false", .rows = 1, .input = {3, {1, 1, 1}}},
    {.attrs = "kernel=7", .rows = 3, .input = {3, {16, 7, 7}}},
    {.attrs = "kernel=2", .rows = 2, .input = {3, {32, 6, 6}}},
    {.attrs = "kernel=2 ceil_mode=true", .rows = 2, .input = {3, {16, 5, 7}}},
    {.attrs = "kernel=3 stride=2 padding=1 ceil_mode=true", .rows = 2, .input = {3, {2, 6, 8}}},
    {.attrs = "kernel=3 stride=2 padding=1 ceil_mode=true count_include_pad=false", .rows = 2, .input = {3, {2, 6, 8}}},
    {.attrs = "kernel=5 stride=3 ceil_mode=true", .rows = 1, .input = {3, {1, 4, 3}}},
    {.attrs = "kernel=[12,13] stride=[5,7] padding=3", .rows = 2, .input = {3, {4, 17, 26}}, .large = true},
};
