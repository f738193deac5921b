/* batchnorm1d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance batchnorm1d_tolerance = {.pytorch = 1e-6, .cuda = 1e-5, .cuda_large = 1e-5};
static const op_case batchnorm1d_cases[] = {
    {.attrs = NULL, .rows = 5, .input = {1, {3}}},
    {.attrs = NULL, .rows = 4, .input = {1, {1}}},
    {.attrs = NULL, .rows = 7, .input = {1, {16}}},
    {.attrs = "momentum=0.3 eps=1.0e-3", .rows = 14, .input = {1, {24}}},
    {.attrs = "affine=false", .rows = 5, .input = {1, {8}}},
    {.attrs = "momentum=null", .rows = 5, .input = {1, {5}}},
    {.attrs = "track_running_stats=false", .rows = 6, .input = {1, {16}}},
    {.attrs = NULL, .rows = 4, .input = {2, {3, 5}}},
    {.attrs = NULL, .rows = 5, .input = {2, {3, 1}}},
    {.attrs = NULL, .rows = 3, .input = {2, {16, 4}}},
    {.attrs = NULL, .rows = 3, .input = {2, {2, 37}}},
    {.attrs = "affine=false", .rows = 3, .input = {2, {2, 7}}},
    {.attrs = "track_running_stats=false", .rows = 3, .input = {2, {2, 6}}},
    {.rows = 2, .input = {2, {3, 4160}}, .large = true},
    {.rows = 3, .input = {2, {132, 90}}, .large = true},
    {.rows = 700, .input = {1, {132}}, .large = true},
    {.rows = 600, .input = {1, {7}}, .large = true},
};
