/* conv1d with oneDNN: a product of matrices where that is faster, else conv2d's kernel. Both in planes, which is how
 * values of a series lie in memory. Not in bf16, for which oneDNN wants neighbouring channels. */
#include "ops/conv1d/conv1d.h"
#include "ops/conv1d/conv1d_columns_dnnl.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

extern const tdm_kernel tdm__conv2d_dnnl;

static bool fits_columns(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->scratch_bytes = tdm__conv1d_columns_scratch(desc);
    fit->call_bytes = tdm__conv1d_columns_call_bytes(desc);
    return true;
}

TDM_SERIES_PASSES(conv1d, tdm_conv2d_attrs, tdm__conv2d_dnnl)
TDM_SERIES_STATE(conv1d, tdm_conv2d_attrs, tdm__conv2d_dnnl)

static bool fits_either(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    return tdm__conv1d_columns_wanted(desc) ? fits_columns(desc, fit) : fits(desc, fit);
}

static tdm_status open_either(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                              void **state) {
    *state = NULL;
    return tdm__conv1d_columns_wanted(desc) ? TDM_OK : open_state(device, desc, rows, training, state);
}

static tdm_status forward_either(const tdm_kernel_args *args) {
    return tdm__conv1d_columns_wanted(args->desc) ? tdm__conv1d_columns_forward(args) : forward(args);
}

static tdm_status backward_either(const tdm_kernel_args *args) {
    return tdm__conv1d_columns_wanted(args->desc) ? tdm__conv1d_columns_backward(args) : backward(args);
}

static size_t packed_bytes(const void *state) {
    return state != NULL ? tdm__conv2d_dnnl.packed_bytes(state) : 0;
}

static tdm_status pack(const tdm_kernel_args *args) {
    return run(args, tdm__conv2d_dnnl.pack);
}

const tdm_kernel tdm__conv1d_dnnl = {
    .op = "conv1d",
    .variant = "dnnl",
    .fits = fits_either,
    .open = open_either,
    .close = close_state,
    .forward = forward_either,
    .backward = backward_either,
    .packed_bytes = packed_bytes,
    .pack = pack,
};
