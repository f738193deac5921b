/* What the parts of conv2d with oneDNN share: oneDNN's view of a chunk, and how scratch is laid out. */
#ifndef TDM_OPS_CONV2D_DNNL_H
#define TDM_OPS_CONV2D_DNNL_H

#include "ops/conv2d/conv2d.h"
#include "ops/conv2d/conv2d_direct_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

enum { TDM_CONV_PASSES = 3 };

/* Parameters as forward reads them, or their gradients. In bf16 only the gradients are floats. */
typedef struct tdm_conv_params {
    dnnl_memory_desc_t plain, any, bias; /* the weights in PyTorch's layout, and in one that oneDNN chooses */
} tdm_conv_params;

/* oneDNN's view of one chunk. */
typedef struct tdm_conv_plans {
    dnnl_memory_desc_t x, y;
    tdm_conv_params param, gradient;
    dnnl_primitive_desc_t pass[TDM_CONV_PASSES];    /* indexed by tdm_dnnl_pass; NULL if not needed */
    dnnl_primitive_desc_t reorder[TDM_CONV_PASSES]; /* weights into the pass's layout, or its gradient back; NULL:
                                                       PyTorch's layout will do */
    int64_t chunk;                                  /* rows */
    bool winograd;
    bool any; /* oneDNN's slow reference code is accepted */
} tdm_conv_plans;

/* Byte offsets in scratch. Shared: the weights in oneDNN's layout, the gradient of the weights summed over chunks in
 * oneDNN's layout, and the scratchpad of the reorders. For each worker, which processes one chunk
 * at a time: its own gradients, dy where y > 0, and its scratchpad. */
typedef struct tdm_conv_offsets {
    size_t weights, sum, pad;
    size_t workers, worker; /* where the workers begin, the bytes of each; offsets within a worker: */
    size_t part, bias_part, masked, worker_pad;
    size_t total;
} tdm_conv_offsets;

bool tdm__conv_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
/* The layouts were chosen for the most rows; for fewer rows they may have only slow code. `any` accepts that code if
 * there is nothing else. */
dnnl_status_t tdm__conv_plans_choose(tdm_conv_plans *plans, const tdm_dnnl_context *context,
                                     const tdm_kernel_desc *desc, int64_t rows, tdm_layout x_layout,
                                     tdm_layout y_layout, bool any, bool training);
void tdm__conv_plans_deinit(tdm_conv_plans *plans);
/* What conv2d_direct_lanes.h does of each pass: all of it, the layout of its weights, or nothing. `conv` is of passes
 * that pack. */
typedef struct tdm_conv_ways {
    bool is_direct[TDM_CONV_PASSES], packs[TDM_CONV_PASSES];
    tdm_conv_direct conv[TDM_CONV_PASSES];
} tdm_conv_ways;
void tdm__conv_direct_choose(tdm_conv_ways *ways, const tdm_conv_plans *plans, const tdm_kernel_desc *desc);
/* Bytes of one number of x, y and their gradients. */
static inline size_t tdm__conv_element_bytes(const tdm_kernel_desc *desc) {
    return desc->precision == TDM_BF16 ? sizeof(uint16_t) : sizeof(float);
}
/* Chunks in flight at once. */
int64_t tdm__conv_workers_of(const tdm_conv_plans *plans, const tdm_kernel_desc *desc, int64_t rows);
tdm_conv_offsets tdm__conv_offsets_of(const tdm_conv_plans *plans, const tdm_kernel_desc *desc, int64_t rows);
/* Of the weights in the layout of the pass, or of their gradient. */
size_t tdm__conv_weight_bytes(const tdm_conv_plans *plans, tdm_dnnl_pass pass);

#endif
