/* batchnorm2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance batchnorm2d_tolerance = {.pytorch = 1e-6, .cuda = 1e-5, .cuda_large = 1e-5};
static const op_case batchnorm2d_cases[] = {
    {.attrs = NULL, .rows = 4, .input = {3, {3, 3, 2}}},
    {.attrs = "affine=false", .rows = 3, .input = {3, {2, 3, 3}}},
    {.attrs = "momentum=0.3 eps=1.0e-3", .rows = 3, .input = {3, {2, 4, 4}}},
    {.attrs = "momentum=null", .rows = 3, .input = {3, {2, 2, 4}}},
    {.attrs = "track_running_stats=false", .rows = 3, .input = {3, {2, 2, 4}}},
    {.attrs = "momentum=0.0", .rows = 4, .input = {3, {4, 2, 2}}},
    {.attrs = NULL, .rows = 6, .input = {3, {16, 5, 5}}},
    {.rows = 2, .input = {3, {3, 64, 65}}, .large = true},
    {.rows = 2, .input = {3, {4, 64, 66}}, .large = true},
    {.rows = 3, .input = {3, {132, 9, 10}}, .large = true},
    {.rows = 3, .input = {3, {7, 20, 21}}, .large = true},
    {.rows = 11, .input = {3, {16, 14, 14}}, .large = true},
};
