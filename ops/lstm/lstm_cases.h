/* lstm: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance lstm_tolerance = {.pytorch = 2e-6};
static const op_case lstm_cases[] = {
    {.attrs = "hidden=3", .rows = 2, .input = {2, {4, 2}}, .bends = true},
    {.attrs = "hidden=2 outputs=all", .rows = 3, .input = {2, {3, 3}}, .bends = true},
    {.attrs = "hidden=2 layers=2", .rows = 2, .input = {2, {3, 1}}, .bends = true},
    {.attrs = "hidden=3 layers=3 outputs=all", .rows = 2, .input = {2, {101, 2}}},
    {.attrs = "hidden=1", .rows = 1, .input = {2, {1, 1}}, .bends = true},
    {.attrs = "hidden=20 layers=2", .rows = 9, .input = {2, {11, 6}}, .large = true},
};
