/* linear for the CPU in bf16 (linear_bf16_dnnl.c), for linear_dnnl.c. */
#ifndef TDM_OPS_LINEAR_DNNL_H
#define TDM_OPS_LINEAR_DNNL_H

#include "runtime/backends/dnnl/kit/dnnl.h"

bool tdm__linear_bf16_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status tdm__linear_bf16_open(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                                 void **state);
void tdm__linear_bf16_close(void *state);
tdm_status tdm__linear_bf16_forward(const tdm_kernel_args *args, void *state);
tdm_status tdm__linear_bf16_backward(const tdm_kernel_args *args, void *state);

#endif
