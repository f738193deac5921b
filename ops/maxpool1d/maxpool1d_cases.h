/* maxpool1d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance maxpool1d_tolerance = {0};
static const op_case maxpool1d_cases[] = {
    {.attrs = "kernel=2", .rows = 2, .input = {2, {3, 6}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {2, {2, 9}}, .kinks = true},
    {.attrs = "kernel=3 stride=1", .rows = 2, .input = {2, {2, 7}}, .kinks = true},
    {.attrs = "kernel=1 stride=2", .rows = 2, .input = {2, {3, 5}}, .kinks = true},
    {.attrs = "kernel=2 padding=1", .rows = 1, .input = {2, {1, 1}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 ceil_mode=true", .rows = 2, .input = {2, {2, 8}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1 dilation=2", .rows = 2, .input = {2, {4, 11}}, .kinks = true},
    {.attrs = "kernel=300 stride=1", .rows = 1, .input = {2, {1, 302}}, .kinks = true},
    {.attrs = "kernel=2", .rows = 5, .input = {2, {16, 21}}, .kinks = true},
    {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {2, {12, 500}}, .kinks = true, .large = true},
};
