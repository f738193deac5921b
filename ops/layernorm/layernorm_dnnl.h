/* Normalisation in segments in the dnnl module: layernorm and groupnorm. */
#ifndef TDM_OPS_LAYERNORM_DNNL_H
#define TDM_OPS_LAYERNORM_DNNL_H

#include "ops/layernorm/layernorm_segments.h"

bool tdm__segments_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_segments *of);
tdm_status tdm__segments_dnnl_forward(const tdm_kernel_args *args, const tdm_segments *of, double eps);
tdm_status tdm__segments_dnnl_backward(const tdm_kernel_args *args, const tdm_segments *of);

#endif
