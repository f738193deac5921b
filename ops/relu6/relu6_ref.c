/* relu6: reference kernel, also the one that runs on the CPU. */
#include "ops/relu6/relu6.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(relu6, args->y, 0.0f);
