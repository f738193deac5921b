/* dropout2d: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance dropout2d_tolerance = {0};
static const op_case dropout2d_cases[] = {
    {.attrs = NULL, .rows = 3, .input = {3, {7, 3, 5}}},
    {.attrs = "p=0.1", .rows = 2, .input = {3, {13, 2, 2}}},
    {.attrs = "p=0.0", .rows = 2, .input = {3, {3, 2, 2}}},
    {.attrs = "p=1.0", .rows = 2, .input = {3, {3, 2, 1}}},
    {.attrs = "p=0.4", .rows = 5, .input = {3, {16, 4, 4}}},
    {.attrs = "p=0.3", .rows = 7, .input = {3, {40, 9, 8}}, .large = true},
};
