/* Activations: elementwise ops of one input. <op>.h has the formula as two functions of one number,
 *     float tdm__<op>(float x, float p)                     y
 *     float tdm__<op>_gradient(float v, float dy, float p)  dx, where v is x or y, as the op's flags say
 * and p is what the attributes say, 0 if there are none. The kernels of all processors compute these functions, so
 * their bits are equal. A kernel is one line, of a macro of this file, activation_lanes.h, activation_dnnl.h or
 * activation_cuda.h. `v` is `args->x[0]` or `args->y`; `p` may use `args->desc->attrs`. */
#ifndef TDM_OPS_ACTIVATION_H
#define TDM_OPS_ACTIVATION_H

#include "ops/elementwise.h"
#include "ops/ops.h"

#define TDM_ACTIVATION_REF(op, v_pointer, p_value)                                        \
    static tdm_status forward(const tdm_kernel_args *args) {                              \
        const int64_t count = tdm__elementwise_count(args);                               \
        const float *x = args->x[0], p = (p_value);                                       \
        float *y = args->y;                                                               \
        TDM_SAME_OR_APART                                                                 \
        for (int64_t i = 0; i < count; i++) y[i] = tdm__##op(x[i], p);                    \
        return TDM_OK;                                                                    \
    }                                                                                     \
    static tdm_status backward(const tdm_kernel_args *args) {                             \
        const int64_t count = tdm__elementwise_count(args);                               \
        const float *v = (v_pointer), *dy = args->dy, p = (p_value);                      \
        float *dx = args->dx[0];                                                          \
        TDM_SAME_OR_APART                                                                 \
        for (int64_t i = 0; i < count; i++) dx[i] = tdm__##op##_gradient(v[i], dy[i], p); \
        return TDM_OK;                                                                    \
    }                                                                                     \
    TDM_REF_KERNEL(op, tdm__elementwise_fits)

#endif
