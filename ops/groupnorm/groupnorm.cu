/* groupnorm on CUDA. */
#include "ops/groupnorm/groupnorm.h"
#include "ops/layernorm/layernorm_segments_cuda.h"

using namespace tdm_cuda;

namespace {

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    return segments_fit(desc, fit, tdm__groupnorm_segments(desc, desc->y.dim[0]));
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const tdm_groupnorm_attrs *attrs = (const tdm_groupnorm_attrs *)args->desc->attrs;
    return run_segments_forward<Number>(args, tdm__groupnorm_segments(args->desc, args->rows), attrs->eps);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return run_segments_backward<Number>(args, tdm__groupnorm_segments(args->desc, args->rows));
}

} /* namespace */

TDM_CUDA_KERNEL(groupnorm, fits);
