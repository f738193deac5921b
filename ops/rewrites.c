/* The rewrites: what layers that follow each other do together, as a table. Each row keeps the bits; what a row asks of
 * a kernel it is asked for once (tdm_kernel_fit.epilogue), and where it says no the row does nothing. */
#include <tandem/sys/rewrite.h>

#include "ops/ops.h"

const tdm_rewrite tdm_builtin_rewrites[] = {
    {.name = "relu past max pooling",
     .why =
         "max(relu(x)) = relu(max(x)), gradients too: a relu on the smaller result, and the layer in front keeps no y",
     .chain = {TDM_ANY_OP, "relu", "maxpool2d"},
     .effect = TDM_REWRITE_SWAP,
     .epilogue = TDM_EPILOGUE_RELU},
    {.name = "batchnorm2d, add and relu in one pass",
     .why = "the end of a residual block: what is normalised is neither written nor read again",
     .chain = {"batchnorm2d", "add", "relu"},
     .effect = TDM_REWRITE_FUSE,
     .epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU},
    {.name = "relu behind a layer",
     .why = "one pass less over y, each way",
     .chain = {TDM_ANY_OP, "relu"},
     .effect = TDM_REWRITE_FUSE,
     .epilogue = TDM_EPILOGUE_RELU},
    {.name = "bias past max pooling",
     .why = "rounding is monotone: max(x) + b = max(x + b). Not in training: two numbers that b makes equal share no "
            "winner, so gradients would go elsewhere",
     .chain = {"conv2d", "maxpool2d"},
     .when = TDM_WHEN_PREDICTING,
     .effect = TDM_REWRITE_MOVE_BIAS,
     .epilogue = TDM_EPILOGUE_BIAS | TDM_EPILOGUE_RELU},
    {.name = "a bias's gradient summed on its way",
     .why = "it is the sum of what the next layer sends back, which need not be read again for it",
     .chain = {TDM_ANY_OP, TDM_ANY_OP},
     .when = TDM_WHEN_TRAINING,
     .effect = TDM_REWRITE_SUM_BIAS,
     .epilogue = TDM_EPILOGUE_SUM_DX},
    {.name = "channels of the batch padded",
     .why = "tensor cores read groups of channels; the device writes the zeros when it brings in the batch",
     .chain = {TDM_ANY_OP},
     .effect = TDM_REWRITE_PAD_CHANNELS},
    {.name = "weights in the kernel's order",
     .why = "the optimizer keeps them as they are computed with, so that nothing reorders them in a step",
     .chain = {TDM_ANY_OP},
     .effect = TDM_REWRITE_ORDER_WEIGHTS},
    {.name = NULL},
};
