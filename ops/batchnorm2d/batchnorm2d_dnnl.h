/* What batchnorm2d for the CPU shares between floats and bf16: what is computed once per channel. */
#ifndef TDM_BATCHNORM2D_DNNL_H
#define TDM_BATCHNORM2D_DNNL_H

#include "ops/batchnorm2d/batchnorm2d.h"
#include "ops/batchnorm2d/batchnorm2d_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct tdm_batchnorm2d_call {
    const tdm_kernel_args *args;
    const tdm_batchnorm2d_attrs *attrs;
    tdm_batchnorm2d_planes norm;
    const tdm_batchnorm2d_lanes *lanes;
    tdm_batchnorm2d_blocks blocks;
    double *mean, *invstd; /* of the batch, one per channel; saved for backward */
    double *saved_count;   /* the same: values in each channel */
    double count;          /* of a channel on this replica */
    double momentum;
    bool of_batch; /* forward: the statistics are the batch's, else the running ones */
} tdm_batchnorm2d_call;

/* One channel. Forward: y = (x - center) scale + shift. */
typedef struct tdm_batchnorm2d_forward {
    double center, scale, shift;
} tdm_batchnorm2d_forward;
/* From the mean and variance of this replica's batch, unless the replicas join theirs. It saves those of the whole
 * batch, and moves the running statistics by them. Where these are used instead, `mean` and `variance` are not read. */
tdm_batchnorm2d_forward tdm__batchnorm2d_forward_of(const tdm_batchnorm2d_call *call, int64_t channel, double mean,
                                                    double variance);

/* The same once more, from what forward saved. */
tdm_batchnorm2d_forward tdm__batchnorm2d_forward_again(const tdm_batchnorm2d_call *call, int64_t channel);

/* Backward: dx = (dy - level - (x - mean) slope) scale. */
typedef struct tdm_batchnorm2d_backward {
    double mean, level, slope, scale;
} tdm_batchnorm2d_backward;
double tdm__batchnorm2d_center(const tdm_batchnorm2d_call *call,
                               int64_t channel); /* the mean that forward subtracted */
/* From this replica's sums; writes the parameters' gradients. Where the replicas join theirs, `own` is not read. */
tdm_batchnorm2d_backward tdm__batchnorm2d_backward_of(const tdm_batchnorm2d_call *call, int64_t channel,
                                                      tdm_batchnorm2d_sums own);

static inline bool tdm__batchnorm2d_joins(const tdm_batchnorm2d_call *call) {
    return call->blocks.replicas > 1;
}
/* The two numbers of a channel in this replica's block. */
double *tdm__batchnorm2d_own_pair(const tdm_batchnorm2d_call *call, int64_t channel);

/* The kernel. */
bool tdm__batchnorm2d_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status tdm__batchnorm2d_dnnl_forward(const tdm_kernel_args *args);
tdm_status tdm__batchnorm2d_dnnl_backward(const tdm_kernel_args *args);
tdm_status tdm__batchnorm2d_dnnl_statistics(const tdm_kernel_args *args);
tdm_status tdm__batchnorm2d_dnnl_recompute(const tdm_kernel_args *args);
#define TDM_BATCHNORM2D_DNNL(name)                      \
    const tdm_kernel tdm__##name##_dnnl = {             \
        .op = #name,                                    \
        .variant = "dnnl",                              \
        .fits = tdm__batchnorm2d_dnnl_fits,             \
        .forward = tdm__batchnorm2d_dnnl_forward,       \
        .backward = tdm__batchnorm2d_dnnl_backward,     \
        .statistics = tdm__batchnorm2d_dnnl_statistics, \
        .recompute = tdm__batchnorm2d_dnnl_recompute,   \
        .takes_bf16 = true,                             \
    }

/* bf16, neighbouring channels */
bool tdm__batchnorm2d_bf16_fits(const tdm_kernel_desc *desc);
size_t tdm__batchnorm2d_bf16_scratch(const tdm_kernel_desc *desc);
tdm_status tdm__batchnorm2d_bf16_forward(const tdm_batchnorm2d_call *call);
tdm_status tdm__batchnorm2d_bf16_statistics(const tdm_batchnorm2d_call *call);
tdm_status tdm__batchnorm2d_bf16_recompute(const tdm_batchnorm2d_call *call);
tdm_status tdm__batchnorm2d_bf16_backward(const tdm_batchnorm2d_call *call);

#endif
