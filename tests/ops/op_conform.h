/* What every kernel must hold, on all cases of its op: agree with the reference (in every layout it accepts, with fewer
 * rows than planned, in place, with a relu inside, in evaluation), give the same bits twice, and keep the contract that
 * op_driver.h watches. */
#ifndef TDM_TESTS_OP_CONFORM_H
#define TDM_TESTS_OP_CONFORM_H

#include "tests/ops/op_driver.h"

typedef struct op_conform_count {
    int runs;     /* comparisons with the reference */
    int declined; /* settings that the kernel does not take, by its own word */
} op_conform_count;

/* `tolerance` is relative to the largest number of the compared tensor; 0 means equal. */
op_conform_count op_conform(const tdm_kernel *kernel, double tolerance);
/* The same on a device; also with floats that are aligned as floats only, and captured. */
op_conform_count op_conform_on(struct tdm_device *device, const tdm_kernel *kernel, double tolerance);

/* And where the device's precision is bf16: x and dy are rounded before, the reference's y and dx after. */
op_conform_count op_conform_bf16(struct tdm_device *device, const tdm_kernel *kernel, double tolerance);

/* One case, which may be in no list. */
void op_conform_case_on(op_conform_count *count, struct tdm_device *device, const tdm_kernel *kernel,
                        const op_case *test, uint64_t seed, double tolerance);

void op_conform_case_bf16(op_conform_count *count, struct tdm_device *device, const tdm_kernel *kernel,
                          const op_case *test, uint64_t seed, double tolerance);

/* The same for kernels of `reorder`, which is no layer: every pair of layouts, there and back, exact. */
op_conform_count op_conform_reorder(const tdm_kernel *kernel);
op_conform_count op_conform_reorder_on(struct tdm_device *device, const tdm_kernel *kernel);
op_conform_count op_conform_reorder_bf16(struct tdm_device *device, const tdm_kernel *kernel);

#endif
