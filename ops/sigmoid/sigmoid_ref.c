/* sigmoid: reference kernel. */
#include "ops/sigmoid/sigmoid.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(sigmoid, args->y, 0.0f);
