/* silu: reference kernel. */
#include "ops/silu/silu.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(silu, args->x[0], 0.0f);
