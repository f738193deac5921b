/* All cases of all ops. The table is made from ops.def, so an op without cases does not compile. */
#ifndef TDM_TESTS_OP_CASES_H
#define TDM_TESTS_OP_CASES_H

#include "tests/ops/op_case.h"

#include "ops/all_cases.h" /* generated from ops.def */

typedef struct op_cases {
    const char *op;
    const op_case *items;
    int count;
} op_cases;

#define TDM_OP(name) {#name, name##_cases, (int)(sizeof name##_cases / sizeof *name##_cases)},
static const op_cases all_cases[] = {
#include "ops/ops.def"
};
#undef TDM_OP

#endif
