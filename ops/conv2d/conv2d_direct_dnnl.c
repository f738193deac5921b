/* Which passes of a convolution conv2d_direct_lanes.c does in oneDNN's place, and for which it brings the weights into
 * oneDNN's layout, which threads share. No pass of windows of one point: oneDNN is as fast there, and adds in another
 * order. */
#include "ops/conv2d/conv2d_dnnl.h"

/* Forward, and so the gradient of the weights: from x to y. */
static tdm_conv_direct forward_of(const tdm_kernel_desc *desc, int64_t rows) {
    const tdm_window window = tdm__conv2d_window(desc->attrs);
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    tdm_conv_direct conv = {.rows = rows, .in_blocks = x[1] / TDM_CONV_BLOCK, .out_blocks = y[1] / TDM_CONV_BLOCK};
    for (int axis = 0; axis < 2; axis++) {
        conv.in[axis] = x[axis + 2];
        conv.out[axis] = y[axis + 2];
        conv.kernel[axis] = window.kernel[axis];
        conv.stride[axis] = window.stride[axis];
        conv.first[axis] = -window.padding[axis];
        conv.step[axis] = window.dilation[axis];
    }
    conv.in_weights = window.kernel[0] * window.kernel[1] * TDM_CONV_BLOCK * TDM_CONV_BLOCK;
    conv.out_weights = conv.in_blocks * conv.in_weights;
    conv.in_plain = window.kernel[0] * window.kernel[1];
    conv.out_plain = x[1] * conv.in_plain;
    return conv;
}

/* ---- layouts of the weights ---- */

static bool is_layout(const tdm_conv_plans *p, const tdm_kernel_desc *desc, tdm_dnnl_pass pass, dnnl_format_tag_t tag) {
    const int64_t *w = desc->param[0].dim;
    const dnnl_dims_t dims = {w[0], w[1], w[2], w[3]};
    const int argument = pass == TDM_DNNL_BACKWARD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    dnnl_memory_desc_t own = {0};
    const bool is_equal = tdm__dnnl_desc_init(&own, 4, dims, dnnl_f32, tag) == dnnl_success &&
                          dnnl_memory_desc_equal(tdm__dnnl_ref(&own), tdm__dnnl_argument(p->pass[pass], argument)) != 0;
    tdm__dnnl_desc_deinit(&own);
    return is_equal;
}

/* Whether `pack` and `unpack` know the layout in which oneDNN's plan has the weights, or gives their gradient; sets how
 * its blocks follow one another. */
static bool has_layout(const tdm_conv_plans *p, const tdm_kernel_desc *desc, tdm_conv_direct *conv,
                       tdm_dnnl_pass pass) {
    const bool back = pass == TDM_DNNL_BACKWARD_DATA;
    const int64_t pair = conv->kernel[0] * conv->kernel[1] * TDM_CONV_BLOCK * TDM_CONV_BLOCK;
    if (p->pass[pass] == NULL) return false;
    if (is_layout(p, desc, pass, back ? dnnl_OIhw16o16i : dnnl_OIhw16i16o)) return true;
    conv->in_weights = back ? pair : conv->out_blocks * pair;
    conv->out_weights = back ? conv->in_blocks * pair : pair;
    return is_layout(p, desc, pass, back ? dnnl_IOhw16o16i : dnnl_IOhw16i16o);
}

static bool packs(const tdm_conv_plans *p, const tdm_kernel_desc *desc, tdm_conv_direct *conv, tdm_dnnl_pass pass) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    if (TDM_LANES(tdm__conv_direct_lanes)->pack == NULL || p->winograd || desc->precision == TDM_BF16) return false;
    if (attrs->groups != 1 || desc->x_layout[0] != TDM_LAYOUT_C16 || desc->y_layout != TDM_LAYOUT_C16) return false;
    return has_layout(p, desc, conv, pass);
}

/* ---- passes ---- */

/* Of those that pack. */
static bool applies(const tdm_conv_direct *conv, tdm_dnnl_pass pass) {
    if (conv->out_blocks % 2 != 0 || conv->kernel[0] * conv->kernel[1] == 1) return false;
    if (pass == TDM_DNNL_BACKWARD_DATA && (conv->stride[0] != 1 || conv->stride[1] != 1)) return false;
    return pass == TDM_DNNL_BACKWARD_WEIGHTS || tdm__conv_direct_group(conv).count != 0;
}

void tdm__conv_direct_choose(tdm_conv_ways *ways, const tdm_conv_plans *p, const tdm_kernel_desc *desc) {
    const tdm_conv_direct forward = forward_of(desc, p->chunk), data = tdm__conv_direct_data(&forward);
    *ways = (tdm_conv_ways){0};
    for (int pass = 0; pass < TDM_CONV_PASSES; pass++) {
        tdm_conv_direct conv = pass == TDM_DNNL_BACKWARD_DATA ? data : forward;
        if (!packs(p, desc, &conv, (tdm_dnnl_pass)pass)) continue;
        ways->packs[pass] = true;
        ways->is_direct[pass] = applies(&conv, (tdm_dnnl_pass)pass);
        ways->conv[pass] = conv;
    }
}
