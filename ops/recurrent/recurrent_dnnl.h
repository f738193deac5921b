/* lstm and gru in the dnnl module. */
#ifndef TDM_OPS_RECURRENT_DNNL_H
#define TDM_OPS_RECURRENT_DNNL_H

#include "ops/recurrent/recurrent.h"

bool tdm__recurrent_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool is_gru);
tdm_status tdm__recurrent_dnnl_forward(const tdm_kernel_args *args, bool is_gru);
tdm_status tdm__recurrent_dnnl_backward(const tdm_kernel_args *args, bool is_gru);

#define TDM_RECURRENT_DNNL(name, is_gru)                                 \
    static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) { \
        return tdm__recurrent_dnnl_fits(desc, fit, is_gru);              \
    }                                                                    \
    static tdm_status forward(const tdm_kernel_args *args) {             \
        return tdm__recurrent_dnnl_forward(args, is_gru);                \
    }                                                                    \
    static tdm_status backward(const tdm_kernel_args *args) {            \
        return tdm__recurrent_dnnl_backward(args, is_gru);               \
    }                                                                    \
    const tdm_kernel tdm__##name##_dnnl = {                              \
        .op = #name, .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward}

#endif
