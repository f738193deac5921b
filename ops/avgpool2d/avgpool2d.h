/* avgpool2d: y[n,c,p,q] = the mean of x in the window of (p,q). */
#ifndef TDM_OPS_AVGPOOL2D_H
#define TDM_OPS_AVGPOOL2D_H

#include "ops/average.h"
#include "ops/window.h"

typedef struct tdm_avgpool2d_attrs {
    tdm_pool_attrs pool;
    bool count_include_pad;
} tdm_avgpool2d_attrs;

/* Its tdm_span_fn. */
static inline tdm_average_range tdm__avgpool2d_span(const void *attrs_pointer, int axis, int64_t at, int64_t in,
                                                    int64_t out) {
    (void)out;
    const tdm_avgpool2d_attrs *attrs = (const tdm_avgpool2d_attrs *)attrs_pointer;
    const tdm_window window = tdm__pool_window(&attrs->pool);
    const tdm_window_part part = tdm__window_part(&window, axis, at, in);
    const int64_t padded = tdm__window_padded(&window, axis, part.corner, in);
    return (tdm_average_range){part.begin, part.end, attrs->count_include_pad ? padded : part.end - part.begin};
}

#endif
