/* One shape and set of attributes that every kernel of an op must get right, and how right. Lists of them, and the
 * tolerances: ops/<op>/<op>_cases.h. */
#ifndef TDM_TESTS_OP_CASE_H
#define TDM_TESTS_OP_CASE_H

#include <tandem/sys/op.h>

typedef struct op_case {
    const char *attrs; /* "out=4 kernel=[3,2]", as in a YAML file but without blanks in a value; NULL: none */
    int64_t rows;      /* the most there will be; fewer are tried too */
    tdm_shape input;   /* of every input, without rows */
    tdm_shape other;   /* of every input but the first, if those have another */
    int inputs;        /* 0 means 1 */
    bool kinks;        /* the op has some: slopes are taken where no two numbers change order or sign */
    /* Many roundings and exponentials behind each other: slopes are less exact. PyTorch's numbers hold the gradients.
     */
    bool bends;
    int whole;  /* inputs are whole numbers from 0 to below this; 0: any numbers */
    bool large; /* takes paths of the CUDA kernel that only large shapes take; other kernels do not run it */
} op_case;

/* How far a result may be from what it is compared with, relative to the largest number of the tensor; 0: equal. A
 * kernel that only chooses, copies or adds two numbers is equal; one that sums more in another order is not. */
typedef struct op_tolerance {
    double pytorch;    /* the reference kernel from PyTorch */
    double cuda;       /* the CUDA kernel from the reference kernel */
    double cuda_large; /* the same in large cases */
} op_tolerance;

#endif
