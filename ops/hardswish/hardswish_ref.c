/* hardswish: reference kernel. */
#include "ops/hardswish/hardswish.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(hardswish, args->x[0], 0.0f);
