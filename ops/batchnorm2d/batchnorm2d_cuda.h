/* The kernel of batchnorm2d on CUDA, which batchnorm1d has too. For .cu files. */
#ifndef TDM_OPS_BATCHNORM2D_CUDA_H
#define TDM_OPS_BATCHNORM2D_CUDA_H

#include <tandem/sys/op.h>

namespace tdm_cuda {

bool batchnorm2d_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status batchnorm2d_forward(const tdm_kernel_args *args);
tdm_status batchnorm2d_backward(const tdm_kernel_args *args);
tdm_status batchnorm2d_statistics(const tdm_kernel_args *args);
tdm_status batchnorm2d_recompute(const tdm_kernel_args *args);

} /* namespace tdm_cuda */

/* In C++ other files see a constant only if it was declared as extern. */
#define TDM_BATCHNORM2D_CUDA(name)                      \
    extern "C" const tdm_kernel tdm__##name##_cuda;     \
    const tdm_kernel tdm__##name##_cuda = {             \
        .op = #name,                                    \
        .variant = "cuda",                              \
        .fits = tdm_cuda::batchnorm2d_fits,             \
        .open = NULL,                                   \
        .close = NULL,                                  \
        .forward = tdm_cuda::batchnorm2d_forward,       \
        .backward = tdm_cuda::batchnorm2d_backward,     \
        .statistics = tdm_cuda::batchnorm2d_statistics, \
        .recompute = tdm_cuda::batchnorm2d_recompute,   \
        .algorithms = NULL,                             \
        .takes_bf16 = true,                             \
        .packed_bytes = NULL,                           \
        .pack = NULL,                                   \
        .keeps_param = false,                           \
    }

#endif
