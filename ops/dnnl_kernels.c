/* The kernels of the dnnl module: of each op that has a file <op>_dnnl.c. */
#include "runtime/backends/dnnl/kit/dnnl.h"

#define TDM_KERNEL(name) extern const tdm_kernel tdm__##name##_dnnl;
#include "ops/dnnl_kernels.def"
#undef TDM_KERNEL

#define TDM_KERNEL(name) &tdm__##name##_dnnl,
const tdm_kernel *const tdm__dnnl_kernels[] = {
#include "ops/dnnl_kernels.def"
    NULL,
};
#undef TDM_KERNEL
