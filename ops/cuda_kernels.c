/* The kernels of the CUDA module: one for each op, loss and optimizer that has a .cu or _cuda file. */
#include "runtime/backends/cuda/kit/cuda.h"

#define TDM_KERNEL(name) extern const tdm_kernel tdm__##name##_cuda;
#include "ops/cuda_kernels.def"
#undef TDM_KERNEL
#define TDM_LOSS(name) extern const tdm_loss_kernel tdm__##name##_cuda;
#include "ops/cuda_losses.def"
#undef TDM_LOSS
#define TDM_OPTIM(name) extern const tdm_optim_kernel tdm__##name##_cuda;
#include "ops/cuda_optims.def"
#undef TDM_OPTIM

#define TDM_KERNEL(name) &tdm__##name##_cuda,
const tdm_kernel *const tdm__cuda_kernels[] = {
#include "ops/cuda_kernels.def"
    NULL,
};
#undef TDM_KERNEL

#define TDM_LOSS(name) &tdm__##name##_cuda,
const tdm_loss_kernel *const tdm__cuda_losses[] = {
#include "ops/cuda_losses.def"
    NULL,
};
#undef TDM_LOSS

#define TDM_OPTIM(name) &tdm__##name##_cuda,
const tdm_optim_kernel *const tdm__cuda_optims[] = {
#include "ops/cuda_optims.def"
    NULL,
};
#undef TDM_OPTIM
