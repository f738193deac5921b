/* adaptive_avgpool1d: the mean over window [floor(i*in/out), ceil((i+1)*in/out)) of the points: adaptive_avgpool2d with
 * a height of 1, whose kernels compute it. */
#ifndef TDM_OPS_ADAPTIVE_AVGPOOL1D_H
#define TDM_OPS_ADAPTIVE_AVGPOOL1D_H

#include "ops/adaptive_avgpool2d/adaptive_avgpool2d.h"
#include "ops/series/series.h"

typedef struct tdm_adaptive_avgpool1d_attrs {
    int64_t out;
} tdm_adaptive_avgpool1d_attrs;

/* Those of adaptive_avgpool2d. */
static inline tdm_adaptive_avgpool2d_attrs tdm__adaptive_avgpool1d_image(const void *of_series) {
    const tdm_adaptive_avgpool1d_attrs *attrs = of_series;
    return (tdm_adaptive_avgpool2d_attrs){.out = {1, attrs->out}};
}

#endif
