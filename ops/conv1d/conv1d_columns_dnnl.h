/* conv1d in the dnnl module as a product of matrices: oneDNN's convolutions in planes are slower than its sgemm. */
#ifndef TDM_OPS_CONV1D_COLUMNS_DNNL_H
#define TDM_OPS_CONV1D_COLUMNS_DNNL_H

#include <tandem/sys/op.h>

bool tdm__conv1d_columns_wanted(const tdm_kernel_desc *desc);
size_t tdm__conv1d_columns_scratch(const tdm_kernel_desc *desc);
size_t tdm__conv1d_columns_call_bytes(const tdm_kernel_desc *desc); /* as tdm_kernel_fit's */
tdm_status tdm__conv1d_columns_forward(const tdm_kernel_args *args);
tdm_status tdm__conv1d_columns_backward(const tdm_kernel_args *args);

#endif
