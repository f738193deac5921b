/* The tables of ops, losses, optimizers and built-in kernels, generated from ops.def, losses.def and optims.def. */
#include "ops/ops.h"

#define TDM_OP(name) &tdm__##name##_op,
const tdm_op_def *const tdm_builtin_ops[] = {
#include "ops/ops.def"
    NULL,
};
#undef TDM_OP

#define TDM_OP(name) &tdm__##name##_ref,
const tdm_kernel *const tdm_builtin_kernels[] = {
#include "ops/ops.def"
    &tdm__reorder_ref,
    NULL,
};
#undef TDM_OP

const tdm_op_def *const tdm_builtin_layout_op = &tdm__reorder_op;
const tdm_op_def *const tdm_builtin_input_op = &tdm__slice_op;

#define TDM_LOSS(name) &tdm__##name##_loss,
const tdm_loss_def *const tdm_builtin_losses[] = {
#include "ops/losses.def"
    NULL,
};
#undef TDM_LOSS

#define TDM_OPTIM(name) &tdm__##name##_optim,
const tdm_optim_def *const tdm_builtin_optims[] = {
#include "ops/optims.def"
    NULL,
};
#undef TDM_OPTIM
