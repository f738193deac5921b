/* maxpool2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance maxpool2d_tolerance = {0};
static const op_case maxpool2d_cases[] = {
    {.attrs = "kernel=2", .rows = 2, .input = {3, {2, 4, 6}}, .kinks = true},
    {.attrs = "kernel=2", .rows = 1, .input = {3, {3, 5, 5}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {3, {2, 7, 6}}, .kinks = true},
    {.attrs = "kernel=3 stride=1", .rows = 2, .input = {3, {1, 5, 5}}, .kinks = true},
    {.attrs = "kernel=[2,3] stride=[1,2] padding=[1,1]", .rows = 2, .input = {3, {2, 4, 5}}, .kinks = true},
    {.attrs = "kernel=1 stride=2", .rows = 2, .input = {3, {2, 3, 3}}, .kinks = true},
    {.attrs = "kernel=2 padding=1", .rows = 1, .input = {3, {1, 1, 1}}, .kinks = true},
    {.attrs = "kernel=[15,17] stride=1", .rows = 1, .input = {3, {1, 16, 18}}, .kinks = true},
    {.attrs = "kernel=[16,17] stride=1", .rows = 1, .input = {3, {1, 17, 18}}, .kinks = true},
    {.attrs = "kernel=2", .rows = 4, .input = {3, {16, 6, 6}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {3, {32, 8, 8}}, .kinks = true},
    {.attrs = "kernel=2 ceil_mode=true", .rows = 2, .input = {3, {16, 5, 7}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 ceil_mode=true", .rows = 2, .input = {3, {32, 8, 6}}, .kinks = true},
    {.attrs = "kernel=3 stride=4 ceil_mode=true", .rows = 1, .input = {3, {2, 7, 9}}, .kinks = true},
    {.attrs = "kernel=[3,2] padding=1 ceil_mode=true", .rows = 2, .input = {3, {3, 5, 4}}, .kinks = true},
    {.attrs = "kernel=5 stride=3 ceil_mode=true", .rows = 1, .input = {3, {1, 4, 3}}, .kinks = true},
    {.attrs = "kernel=2 dilation=2", .rows = 2, .input = {3, {2, 5, 6}}, .kinks = true},
    {.attrs = "kernel=3x2 stride=1 padding=1x1 dilation=2x3", .rows = 2, .input = {3, {2, 6, 7}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1 dilation=2 ceil_mode=true",
     .rows = 2,
     .input = {3, {16, 8, 7}},
     .kinks = true},
    {.attrs = "kernel=3 stride=3 dilation=2", .rows = 2, .input = {3, {12, 19, 20}}, .kinks = true, .large = true},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {3, {12, 19, 20}}, .kinks = true, .large = true},
};
