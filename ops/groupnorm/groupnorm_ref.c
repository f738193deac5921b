/* groupnorm: reference kernel, with the passes of layernorm's. */
#include "ops/groupnorm/groupnorm.h"
#include "ops/ops.h"

TDM_SEGMENTS_PASSES(groupnorm, tdm__segments)
TDM_REF_KERNEL(groupnorm, fits);
