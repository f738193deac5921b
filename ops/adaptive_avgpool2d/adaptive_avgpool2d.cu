/* adaptive_avgpool2d on CUDA. */
#include "ops/adaptive_avgpool2d/adaptive_spans_cuda.h"
#include "ops/average_cuda.h"

using namespace tdm_cuda;

namespace {

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return run_forward<Number>(args, adaptive_spans_of(args));
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return run_backward<Number>(args, adaptive_spans_of(args));
}

} /* namespace */

TDM_CUDA_KERNEL(adaptive_avgpool2d, keep_layout);
