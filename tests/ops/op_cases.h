/* All cases of all ops. The table is made from ops.def, so an op without cases does not compile. */
#ifndef TDM_TESTS_OP_CASES_H
#define TDM_TESTS_OP_CASES_H

#include <string.h>

#include "tests/ops/op_case.h"

#include "ops/all_cases.h" /* generated from ops.def */

typedef struct op_cases {
    const char *op;
    const op_case *items;
    int count;
    const op_tolerance *tolerance;
} op_cases;

#define TDM_OP(name) {#name, name##_cases, (int)(sizeof name##_cases / sizeof *name##_cases), &name##_tolerance},
static const op_cases all_cases[] = {
#include "ops/ops.def"
};
#undef TDM_OP

static inline const op_cases *op_cases_of(const char *op) {
    for (size_t i = 0; i < sizeof all_cases / sizeof *all_cases; i++)
        if (strcmp(all_cases[i].op, op) == 0) return &all_cases[i];
    return NULL;
}

#endif
