/* upsample: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance upsample_tolerance = {.pytorch = 1e-6};
static const op_case upsample_cases[] = {
    {.attrs = "scale=2", .rows = 2, .input = {3, {2, 3, 4}}},
    {.attrs = "scale=1.7", .rows = 2, .input = {3, {3, 5, 3}}},
    {.attrs = "size=5x3", .rows = 2, .input = {3, {2, 3, 4}}},
    {.attrs = "scale=2 mode=bilinear", .rows = 2, .input = {3, {2, 3, 4}}},
    {.attrs = "scale=2 mode=bilinear align_corners=true", .rows = 2, .input = {3, {16, 3, 2}}},
    {.attrs = "scale=2 mode=bilinear", .rows = 2, .input = {3, {3, 2, 21}}},
    {.attrs = "scale=2 mode=bilinear", .rows = 1, .input = {3, {2, 3, 1}}},
    {.attrs = "scale=2.04 mode=bilinear", .rows = 1, .input = {3, {2, 2, 13}}},
    {.attrs = "scale=2.6 mode=bilinear", .rows = 1, .input = {3, {3, 4, 3}}},
    {.attrs = "size=7x2 mode=bilinear", .rows = 2, .input = {3, {2, 3, 5}}},
    {.attrs = "size=7x1 mode=bilinear align_corners=true", .rows = 1, .input = {3, {2, 1, 4}}},
    {.attrs = "size=3x9 mode=bilinear", .rows = 1, .input = {3, {2, 3, 4}}},
    {.attrs = "scale=3 mode=bilinear", .rows = 2, .input = {3, {24, 9, 13}}, .large = true},
    {.attrs = "scale=2", .rows = 2, .input = {3, {16, 11, 9}}, .large = true},
};
