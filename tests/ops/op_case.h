/* One shape and set of attributes that every kernel of an op must get right. Lists of them: ops/<op>/<op>_cases.h. */
#ifndef TDM_TESTS_OP_CASE_H
#define TDM_TESTS_OP_CASE_H

#include <tandem/sys/op.h>

typedef struct op_case {
    const char *attrs; /* "out=4 kernel=[3,2]", as in a YAML file but without blanks in a value; NULL: none */
    int64_t rows;      /* the most there will be; fewer are tried too */
    tdm_shape input;   /* of every input, without rows */
    int inputs;        /* 0 means 1 */
    bool kinks;        /* the op has some: slopes are taken where no two numbers change order or sign */
} op_case;

#endif
