/* conv1d: reference kernel. conv2d's. */
#include "ops/conv1d/conv1d.h"
#include "ops/ops.h"

TDM_SERIES_PASSES(conv1d, tdm_conv2d_attrs, tdm__conv2d_ref)
TDM_REF_KERNEL(conv1d, fits);
