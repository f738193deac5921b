/* Means over windows in the dnnl module, for avgpool2d and adaptive_avgpool2d, in every layout. */
#ifndef TDM_OPS_AVGPOOL2D_DNNL_H
#define TDM_OPS_AVGPOOL2D_DNNL_H

#include "ops/average.h"

bool tdm__average_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status tdm__average_dnnl_forward(const tdm_kernel_args *args, tdm_span_fn span);
tdm_status tdm__average_dnnl_backward(const tdm_kernel_args *args, tdm_span_fn span);

#endif
