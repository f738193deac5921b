/* relu: reference kernel. */
#include "ops/relu/relu.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(relu, args->y, 0.0f);
