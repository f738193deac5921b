/* embedding: the cases that every kernel of the op must pass. */
#include "tests/ops/op_case.h"

/* The row of padding_idx does not learn, though it has a slope: these cases are too large to be compared with slopes.
 */
static const op_tolerance embedding_tolerance = {0};
static const op_case embedding_cases[] = {
    {.attrs = "vocabulary=5 dim=3", .rows = 4, .input = {1, {1}}, .whole = 5},
    {.attrs = "vocabulary=1 dim=1", .rows = 2, .input = {1, {2}}, .whole = 1},
    {.attrs = "vocabulary=9 dim=2", .rows = 2, .input = {2, {3, 2}}, .whole = 9},
    {.attrs = "vocabulary=101 dim=4 padding_idx=2", .rows = 6, .input = {1, {3}}, .whole = 7},
    {.attrs = "vocabulary=201 dim=2 padding_idx=0", .rows = 5, .input = {1, {1}}, .whole = 3},
    {.attrs = "vocabulary=300 dim=40", .rows = 50, .input = {1, {7}}, .whole = 257, .large = true},
};
