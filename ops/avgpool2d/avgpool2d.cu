/* avgpool2d on CUDA. */
#include "ops/avgpool2d/avgpool2d.h"
#include "ops/average_cuda.h"

using namespace tdm_cuda;

namespace {

struct pool_spans {
    sliding windows;
    bool count_include_pad;
    __device__ tdm_average_range of(int axis, int64_t at) const {
        const int64_t corner = windows.corner(axis, at), past = corner + windows.window.kernel[axis];
        const int64_t begin = corner > 0 ? corner : 0, end = past < windows.in[axis] ? past : windows.in[axis];
        const int64_t most = windows.in[axis] + windows.window.padding[axis];
        return {begin, end, count_include_pad ? (past < most ? past : most) - corner : end - begin};
    }
    __device__ reach<int64_t> windows_of(int axis, int64_t at) const {
        return windows.windows_of(axis, at);
    }
    int64_t most_points() const {
        return windows.window.kernel[0] * windows.window.kernel[1];
    }
};

pool_spans spans_of(const tdm_kernel_args *args) {
    const tdm_avgpool2d_attrs *attrs = (const tdm_avgpool2d_attrs *)args->desc->attrs;
    const tdm_window window = tdm__pool_window(&attrs->pool);
    return {sliding_of(window, args->desc), attrs->count_include_pad};
}

} /* namespace */

TDM_CUDA_AVERAGE(avgpool2d, spans_of);
