/* What op definitions and their kernels share. */
#ifndef TDM_OPS_OPS_H
#define TDM_OPS_OPS_H

#include <tandem/sys/op.h>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

#define TDM_OP(name)                          \
    extern const tdm_op_def tdm__##name##_op; \
    extern const tdm_kernel tdm__##name##_ref;
#include "ops/ops.def"
#undef TDM_OP
extern const tdm_op_def tdm__reorder_op; /* converts between layouts; it is not a layer, so it is not in ops.def */
extern const tdm_kernel tdm__reorder_ref;
#define TDM_LOSS(name) extern const tdm_loss_def tdm__##name##_loss;
#include "ops/losses.def"
#undef TDM_LOSS
#define TDM_OPTIM(name) extern const tdm_optim_def tdm__##name##_optim;
#include "ops/optims.def"
#undef TDM_OPTIM

enum {
    TDM_MAX_FEATURES = 1 << 24, /* features or channels of an output */
    TDM_MAX_WINDOW = 4096       /* kernel, stride, padding, dilation */
};

/* Reports a fault of the user's layer, at the layer's position in the user's file. */
#define TDM_INFER_FAIL(infer, ...) TDM_FAIL_AT(&(infer)->origin, TDM_E_CONFIG, __VA_ARGS__)

/* The reference kernel of an op, from the functions `forward` and `backward` of its file:
 *     TDM_REF_KERNEL(relu, tdm__elementwise_fits); */
#define TDM_REF_KERNEL(name, fits_function) TDM_REF_KERNEL_WITH(name, fits_function, NULL)
#define TDM_REF_KERNEL_WITH(name, fits_function, statistics_function) \
    const tdm_kernel tdm__##name##_ref = {                            \
        .op = #name,                                                  \
        .variant = "ref",                                             \
        .fits = (fits_function),                                      \
        .forward = forward,                                           \
        .backward = backward,                                         \
        .statistics = (statistics_function),                          \
    }

/* That of an op that only hands on its numbers; for ops/elementwise.h. */
#define TDM_COPY_REF(name)                                                                       \
    static tdm_status forward(const tdm_kernel_args *args) {                                     \
        return tdm__copy_to_y(args);                                                             \
    }                                                                                            \
    static tdm_status backward(const tdm_kernel_args *args) {                                    \
        if (args->dx[0] != NULL && args->dx[0] != args->dy)                                      \
            memcpy(args->dx[0], args->dy, (size_t)tdm__elementwise_count(args) * sizeof(float)); \
        return TDM_OK;                                                                           \
    }                                                                                            \
    TDM_REF_KERNEL(name, NULL)

/* The infer of an op that computes each number of y from the one of x. */
tdm_status tdm__infer_elementwise(tdm_infer *infer);
/* Checks the attribute `in`, which may be left out: `expected` is its value, or TDM_INT_NULL. */
tdm_status tdm__infer_check_in(tdm_infer *infer, int64_t expected, int64_t found, const char *what);
/* Checks that the groups of a convolution divide its channels. */
tdm_status tdm__infer_check_groups(tdm_infer *infer, int64_t groups, int64_t in, int64_t out);
/* Declares weight and bias as torch.nn.Linear and Conv2d initialise them: both uniform in +-1/sqrt(fan_in). */
void tdm__infer_weight_and_bias(tdm_infer *infer, tdm_shape weight, int64_t fan_in, bool bias);
/* Declares that, after all parameters have these values, the weight is drawn anew, normal with mean 0, and the bias is
 * 0: torch.nn.init in the constructors of torchvision's networks. */
void tdm__infer_set_again(tdm_infer *infer, double std);

#endif
