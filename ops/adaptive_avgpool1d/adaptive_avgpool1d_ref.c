/* adaptive_avgpool1d: reference kernel. adaptive_avgpool2d's. */
#include "ops/adaptive_avgpool1d/adaptive_avgpool1d.h"
#include "ops/ops.h"

TDM_SERIES_PASSES(adaptive_avgpool1d, tdm_adaptive_avgpool2d_attrs, tdm__adaptive_avgpool2d_ref)
TDM_REF_KERNEL(adaptive_avgpool1d, fits);
