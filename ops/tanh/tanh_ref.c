/* tanh: reference kernel. */
#include "ops/tanh/tanh.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(tanh, args->y, 0.0f);
