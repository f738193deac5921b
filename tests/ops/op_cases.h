/* All cases of all ops. The table is made from ops.def, so an op without cases does not compile. */
#ifndef TDM_TESTS_OP_CASES_H
#define TDM_TESTS_OP_CASES_H

#include "tests/ops/op_case.h"

#include "ops/add/add_cases.h"
#include "ops/adaptive_avgpool2d/adaptive_avgpool2d_cases.h"
#include "ops/avgpool2d/avgpool2d_cases.h"
#include "ops/batchnorm2d/batchnorm2d_cases.h"
#include "ops/conv2d/conv2d_cases.h"
#include "ops/dropout/dropout_cases.h"
#include "ops/flatten/flatten_cases.h"
#include "ops/linear/linear_cases.h"
#include "ops/maxpool2d/maxpool2d_cases.h"
#include "ops/relu/relu_cases.h"

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
