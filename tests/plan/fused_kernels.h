/* Kernels that do every epilogue, the plainest way: the reference kernel of the op, and then the epilogue. With them
 * all rewrites come to run. */
#ifndef TDM_TESTS_FUSED_KERNELS_H
#define TDM_TESTS_FUSED_KERNELS_H

#include <tandem/sys/op.h>

/* NULL-terminated. conv2d adds its bias last, in float; the other results are those of the reference kernels. */
const tdm_kernel *const *fused_kernels(void);

#endif
