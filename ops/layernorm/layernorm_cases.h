/* layernorm: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance layernorm_tolerance = {.pytorch = 2e-6, .cuda = 1e-5, .cuda_large = 1e-5};
static const op_case layernorm_cases[] = {
    {.attrs = NULL, .rows = 3, .input = {1, {7}}},
    {.attrs = "normalized_shape=[5,3] eps=1.0e-3", .rows = 4, .input = {2, {5, 3}}},
    {.attrs = "normalized_shape=6", .rows = 3, .input = {2, {4, 6}}},
    {.attrs = "normalized_shape=[4,3] elementwise_affine=false", .rows = 2, .input = {3, {2, 4, 3}}},
    {.attrs = "normalized_shape=[16,2,3] bias=false", .rows = 2, .input = {3, {16, 2, 3}}},
    {.attrs = NULL, .rows = 3, .input = {2, {2, 40}}},
    {.attrs = NULL, .rows = 2, .input = {1, {1}}},
    {.attrs = NULL, .rows = 5, .input = {1, {131}}},
    {.attrs = NULL, .rows = 37, .input = {2, {6, 36}}, .large = true},
    {.attrs = "normalized_shape=[8,25,13]", .rows = 5, .input = {3, {8, 25, 13}}, .large = true},
};
