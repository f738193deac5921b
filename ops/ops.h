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
extern const tdm_op_def tdm__reorder_op; /* between layouts; no layer, so not in ops.def */
extern const tdm_kernel tdm__reorder_ref;
#define TDM_LOSS(name) extern const tdm_loss_def tdm__##name##_loss;
#include "ops/losses.def"
#undef TDM_LOSS
#define TDM_OPTIM(name) extern const tdm_optim_def tdm__##name##_optim;
#include "ops/optims.def"
#undef TDM_OPTIM

enum {
    TDM_MAX_FEATURES = 1 << 24, /* of an output: features or channels */
    TDM_MAX_WINDOW = 4096       /* kernel, stride, padding, dilation */
};

/* A fault of the user's layer, at its place in the user's file. */
#define TDM_INFER_FAIL(infer, ...) \
    return (infer)->calls->fail(TDM_E_CONFIG, __FILE__, __LINE__, &(infer)->origin, __VA_ARGS__)
#define TDM_INFER_TRY(infer, expression)                                                          \
    do {                                                                                          \
        tdm_status try_status_ = (expression);                                                    \
        if (try_status_ != TDM_OK) return (infer)->calls->frame(try_status_, __FILE__, __LINE__); \
    } while (0)

/* "64x32x32", as a value that lives to the end of the expression: for messages. */
typedef struct tdm_shape_text {
    char text[128];
} tdm_shape_text;
tdm_shape_text tdm__shape_text(const tdm_shape *shape);

/* The last line of every infer: refuses tensors whose number of elements is beyond any machine. */
tdm_status tdm__infer_done(tdm_infer *infer);
/* `in` may be written in a layer, and is then checked: `expected` is TDM_INT_NULL or what was written. */
tdm_status tdm__infer_check_in(tdm_infer *infer, int64_t expected, int64_t found, const char *what);
/* Weight and bias as torch.nn.Linear and Conv2d make them: uniform in +-1/sqrt(fan_in), both. */
void tdm__infer_weight_and_bias(tdm_infer *infer, tdm_shape weight, int64_t fan_in, bool bias);

#endif
