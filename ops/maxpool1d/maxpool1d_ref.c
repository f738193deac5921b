/* maxpool1d: reference kernel. maxpool2d's. */
#include "ops/maxpool1d/maxpool1d.h"
#include "ops/ops.h"

TDM_SERIES_PASSES(maxpool1d, tdm_maxpool2d_attrs, tdm__maxpool2d_ref)
TDM_REF_KERNEL(maxpool1d, fits);
