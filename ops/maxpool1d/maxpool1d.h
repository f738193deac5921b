/* maxpool1d: y[n,c,q] = the largest x in the window of q; padding never wins: maxpool2d with a height of 1, whose
 * kernels compute it. */
#ifndef TDM_OPS_MAXPOOL1D_H
#define TDM_OPS_MAXPOOL1D_H

#include "ops/maxpool2d/maxpool2d.h"
#include "ops/series/series.h"

typedef struct tdm_maxpool1d_attrs {
    int64_t kernel;
    int64_t stride; /* TDM_INT_NULL: the kernel size */
    int64_t padding, dilation;
    bool ceil_mode;
} tdm_maxpool1d_attrs;

/* Those of maxpool2d. */
static inline tdm_maxpool2d_attrs tdm__maxpool1d_image(const void *of_series) {
    const tdm_maxpool1d_attrs *attrs = of_series;
    const int64_t stride = attrs->stride == TDM_INT_NULL ? attrs->kernel : attrs->stride;
    return (tdm_maxpool2d_attrs){.pool = {.kernel = {1, attrs->kernel},
                                          .stride = {1, stride},
                                          .padding = {0, attrs->padding},
                                          .dilation = {1, attrs->dilation},
                                          .ceil_mode = attrs->ceil_mode}};
}

#endif
