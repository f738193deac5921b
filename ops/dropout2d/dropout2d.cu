/* dropout2d on CUDA: the mask is computed once for each pack of numbers. */
#include "ops/dropout/dropout_cuda.h"
#include "runtime/backends/cuda/kit/planes.h"

using namespace tdm_cuda;

namespace {

template <class Number> __device__ float channel_factor(const masked<Number> &m, int64_t row, int64_t channel) {
    uint32_t word[DRAWN];
    m.draw(word, channel / DRAWN, row);
    return m.factor(word[channel % DRAWN]);
}

/* A pack is of neighbouring channels with channels last, else of one channel. Planes are rows * channels / inner. */
template <int WIDE, bool NHWC, class Number>
__global__ void mask_channels(masked<Number> m, plane_index index, divider channels) {
    for (int64_t i = thread_index(); i < index.total; i += thread_count()) {
        const point<int64_t> at = point_at(index, i);
        pack<float, WIDE> v = load<WIDE>(m.in, i);
        int64_t row = at.plane;
        const int64_t channel = NHWC ? at.inner * WIDE : split(channels, &row);
        const float all = NHWC ? 0.0f : channel_factor(m, row, channel);
        for (int k = 0; k < WIDE; k++) v.at[k] *= NHWC ? channel_factor(m, row, channel + k) : all;
        store(m.out, i, v);
    }
}

template <int WIDE, class Number>
tdm_status launch(const tdm_kernel_args *args, const masked<Number> &m, const tdm_planes &planes, bool nhwc) {
    /* Planes of one channel: a row of a plane is its numbers, in packs. */
    tdm_planes packed = planes;
    if (!nhwc) packed = {planes.count, 1, 1, planes.height * planes.width};
    const plane_index index = plane_index_of(packed, WIDE);
    auto kernel = nhwc ? mask_channels<WIDE, true, Number> : mask_channels<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(index.total), THREADS, tdm__cuda_device(args->device)->stream, m, index,
               divider_of(args->desc->y.dim[1]));
    return TDM_OK;
}

template <class Number> tdm_status apply(const tdm_kernel_args *args, const Number *in, Number *out) {
    static constexpr int WIDE = PACK_OF<Number>;
    const bool nhwc = args->desc->y_layout == TDM_LAYOUT_NHWC;
    const tdm_planes planes = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout);
    const masked<Number> m = masked_of(args, in, out);
    const int64_t run = nhwc ? planes.inner : planes.height * planes.width;
    return run % WIDE == 0 && is_aligned(in, out) ? launch<WIDE>(args, m, planes, nhwc) : launch<1>(args, m, planes, nhwc);
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return args->training ? apply(args, as<Number>(args->x[0]), as<Number>(args->y)) : copy_x<Number>(args);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, as<Number>(args->dy), as<Number>(args->dx[0]));
}

} /* namespace */

TDM_CUDA_KERNEL(dropout2d, keep_layout);
