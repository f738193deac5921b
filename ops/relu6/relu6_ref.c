/* relu6: reference kernel. */
#include "ops/relu6/relu6.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(relu6, args->y, 0.0f);
