/* The table of rewrites: what consecutive layers do together, and how a layer's tensors are stored. Rows keep the bits,
 * with two exceptions: see runtime/docs/decisions/009-rewrites-are-rows.md. A kernel says what it can do
 * (tdm_kernel_fit.epilogue) and is asked again with what a row needs; if it declines, the row does nothing. Earlier
 * rows are tried first. */
#include <tandem/sys/rewrite.h>

#include "ops/ops.h"

const tdm_rewrite tdm_builtin_rewrites[] = {
    {.name = "relu past max pooling",
     .why =
         "max(relu(x)) = relu(max(x)), gradients too: the relu has less to do, and the layer before need not keep its y",
     .chain = {TDM_ANY_OP, "relu", "maxpool2d"},
     .effect = TDM_REWRITE_SWAP,
     .epilogue = TDM_EPILOGUE_RELU},
    {.name = "batchnorm2d, add and relu in one pass",
     .why = "the end of a residual block: the normalised values are not written and read again",
     .chain = {"batchnorm2d", "add", "relu"},
     .effect = TDM_REWRITE_FUSE,
     .epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU},
    {.name = "batchnorm1d, add and relu in one pass",
     .why = "the same at the end of a residual block of linear layers",
     .chain = {"batchnorm1d", "add", "relu"},
     .effect = TDM_REWRITE_FUSE,
     .epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU},
    {.name = "relu behind a layer",
     .why = "saves one pass over y in each direction",
     .chain = {TDM_ANY_OP, "relu"},
     .effect = TDM_REWRITE_FUSE,
     .epilogue = TDM_EPILOGUE_RELU},
    {.name = "bias past max pooling",
     .why = "rounding is monotone: max(x) + b = max(x + b). Not in training: adding b can make two numbers equal, and "
            "then another one wins and gets the gradient",
     .chain = {"conv2d", "maxpool2d"},
     .when = TDM_WHEN_PREDICTING,
     .effect = TDM_REWRITE_MOVE_BIAS,
     .epilogue = TDM_EPILOGUE_BIAS | TDM_EPILOGUE_RELU},
    {.name = "bias gradient summed by the next layer",
     .why = "the bias's gradient is the sum of the next layer's dx: summed there, no number is read again",
     .chain = {TDM_ANY_OP, TDM_ANY_OP},
     .when = TDM_WHEN_TRAINING,
     .effect = TDM_REWRITE_SUM_BIAS,
     .epilogue = TDM_EPILOGUE_SUM_DX},
    {.name = "channels of the batch padded",
     .why = "tensor cores read groups of channels; the device writes the zeros while it brings in the batch",
     .chain = {TDM_ANY_OP},
     .effect = TDM_REWRITE_PAD_CHANNELS},
    {.name = "weights in the kernel's order",
     .why = "the optimizer keeps them in the order that the kernel or its input has, so no step reorders either",
     .chain = {TDM_ANY_OP},
     .effect = TDM_REWRITE_ORDER_WEIGHTS},
    {.name = NULL},
};
