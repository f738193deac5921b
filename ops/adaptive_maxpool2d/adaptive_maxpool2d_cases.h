/* adaptive_maxpool2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance adaptive_maxpool2d_tolerance = {0};
static const op_case adaptive_maxpool2d_cases[] = {
    {.attrs = "out=1", .rows = 2, .input = {3, {3, 5, 4}}, .kinks = true},
    {.attrs = "out=2x3", .rows = 2, .input = {3, {2, 6, 6}}, .kinks = true},
    {.attrs = "out=3x4", .rows = 2, .input = {3, {2, 7, 5}}, .kinks = true},
    {.attrs = "out=5", .rows = 1, .input = {3, {1, 3, 5}}, .kinks = true},
    {.attrs = "out=2", .rows = 2, .input = {3, {32, 7, 7}}, .kinks = true},
    {.attrs = "out=1", .rows = 2, .input = {3, {3, 9, 8}}, .kinks = true},
    {.attrs = "out=3x2", .rows = 1, .input = {3, {2, 7, 37}}, .kinks = true},
    {.attrs = "out=7x3", .rows = 2, .input = {3, {8, 24, 21}}, .kinks = true, .large = true},
};
