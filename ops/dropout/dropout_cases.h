/* dropout: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

static const op_tolerance dropout_tolerance = {0};
static const op_case dropout_cases[] = {
    {.attrs = NULL, .rows = 3, .input = {1, {37}}},
    {.attrs = "p=0.1", .rows = 2, .input = {3, {3, 5, 7}}},
    {.attrs = "p=0.0", .rows = 2, .input = {1, {5}}},
    {.attrs = "p=1.0", .rows = 2, .input = {1, {6}}},
    {.attrs = "p=0.9", .rows = 5, .input = {3, {16, 4, 4}}},
    {.attrs = "p=0.3", .rows = 7, .input = {1, {1028}}, .large = true},
};
