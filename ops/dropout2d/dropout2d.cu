/* dropout2d on CUDA. The mask is computed in forward and again in backward, once for each pack of numbers. */
#include "ops/dropout2d/dropout2d.h"
#include "ops/elementwise.h"
#include "runtime/backends/cuda/kit/planes.h"

using namespace tdm_cuda;

namespace {

static constexpr int GROUP = 4; /* channels per random draw */

template <class Number> struct masked {
    const Number *in;
    Number *out;
    const tdm_step_values *values;
    const int64_t *position; /* of each row */
    uint64_t key, threshold;
    uint32_t stream;
    float scale;
    plane_index index;
    divider channels; /* planes.count is rows * channels / inner */

    __device__ float factor(int64_t row, int64_t channel) const {
        uint32_t word[GROUP];
        tdm__dropout_words(word, key, channel / GROUP, position[row], values->step, stream);
        return word[channel % GROUP] >= threshold ? scale : 0.0f;
    }
};

/* A pack is of neighbouring channels with channels last, else of one channel. The factor is a product so that NaN and
 * infinity show even where they are dropped, as in PyTorch. */
template <int WIDE, bool NHWC, class Number> __global__ void mask_channels(masked<Number> m) {
    for (int64_t i = thread_index(); i < m.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(m.index, i);
        pack<float, WIDE> v = load<WIDE>(m.in, i);
        int64_t row = at.plane;
        const int64_t channel = NHWC ? at.inner * WIDE : split(m.channels, &row);
        const float all = NHWC ? 0.0f : m.factor(row, channel);
        for (int k = 0; k < WIDE; k++) v.at[k] *= NHWC ? m.factor(row, channel + k) : all;
        store(m.out, i, v);
    }
}

template <int WIDE, class Number>
tdm_status launch(const tdm_kernel_args *args, masked<Number> m, const tdm_planes &planes, bool nhwc) {
    /* Planes of one channel: a row of a plane is its numbers, in packs. */
    tdm_planes packed = planes;
    if (!nhwc) packed = {planes.count, 1, 1, planes.height * planes.width};
    m.index = plane_index_of(packed, WIDE);
    auto kernel = nhwc ? mask_channels<WIDE, true, Number> : mask_channels<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(m.index.total), THREADS, tdm__cuda_device(args->device)->stream, m);
    return TDM_OK;
}

template <class Number> tdm_status apply(const tdm_kernel_args *args, const Number *in, Number *out) {
    static constexpr int WIDE = PACK_OF<Number>;
    const tdm_dropout_attrs *attrs = (const tdm_dropout_attrs *)args->desc->attrs;
    const bool nhwc = args->desc->y_layout == TDM_LAYOUT_NHWC;
    const tdm_planes planes = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout);
    masked<Number> m = {};
    m.in = in;
    m.out = out;
    m.values = args->values;
    m.position = args->position;
    m.key = tdm__dropout_key(args->seed);
    m.threshold = tdm__dropout_threshold(attrs->p);
    m.stream = args->stream;
    m.scale = tdm__dropout_scale(attrs->p);
    m.channels = divider_of(args->desc->y.dim[1]);
    const int64_t run = nhwc ? planes.inner : planes.height * planes.width;
    return run % WIDE == 0 && is_aligned(in, out) ? launch<WIDE>(args, m, planes, nhwc) : launch<1>(args, m, planes, nhwc);
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    if (args->training) return apply(args, as<Number>(args->x[0]), as<Number>(args->y));
    if (args->y == args->x[0]) return TDM_OK;
    return copy_each(tdm__cuda_device(args->device), as<Number>(args->y), as<Number>(args->x[0]),
                     tdm__elementwise_count(args));
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, as<Number>(args->dy), as<Number>(args->dx[0]));
}

} /* namespace */

TDM_CUDA_KERNEL(dropout2d, keep_layout);
