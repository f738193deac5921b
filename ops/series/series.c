/* Shapes of series. */
#include "ops/series/series.h"

#include "ops/ops.h"
#include "ops/window.h"

tdm_status tdm__infer_check_series(const tdm_infer *infer) {
    if (infer->input[0].ndim != 2)
        TDM_INFER_FAIL(infer, "%s needs an input of channels x points, got %s", infer->layer,
                       tdm__shape_text(&infer->input[0]).text);
    return TDM_OK;
}

tdm_status tdm__series_infer_points(const tdm_infer *infer, const tdm_window *window, int64_t *out) {
    const int64_t padding = window->padding[1], padded = infer->input[0].dim[1] + 2 * padding;
    const int64_t reach = tdm__window_reach(window, 1);
    if (reach > padded)
        TDM_INFER_FAIL(infer, "%s: kernel %lld%s is larger than the %sinput of %lld points", infer->layer,
                       (long long)reach, window->dilation[1] != 1 ? " (spread by its dilation)" : "",
                       padding > 0 ? "padded " : "", (long long)padded);
    *out = (padded - reach) / window->stride[1] + 1;
    return TDM_OK;
}
