/* groupnorm: the kernel of the dnnl module, with the passes of layernorm's. */
#include "ops/groupnorm/groupnorm.h"
#include "ops/layernorm/layernorm_dnnl.h"

TDM_SEGMENTS_PASSES(groupnorm, tdm__segments_dnnl)

const tdm_kernel tdm__groupnorm_dnnl = {
    .op = "groupnorm", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
