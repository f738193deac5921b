/* dropout on CUDA. The mask is computed in forward and again in backward: this costs less than storing it. */
#include "runtime/backends/cuda/kit/kernel.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/elementwise.h"

using namespace tdm_cuda;

namespace {

static constexpr int GROUP = 4; /* elements per random draw */

template <class Number> struct masked {
    const Number *in;
    Number *out;
    const tdm_step_values *values;
    const int64_t *position; /* of each row */
    uint64_t key, threshold;
    uint32_t stream;
    float scale;
    int64_t width, total; /* elements in a row; items in all rows */
    divider items;        /* items in a row: packs, or groups of which the last may be shorter */

    __device__ void draw(uint32_t word[GROUP], int64_t group, int64_t row) const {
        tdm__dropout_words(word, key, group, position[row], values->step, stream);
    }
    /* The factor is 0 or the scale. It is a product so that NaN and infinity show even where they are dropped, as in
     * PyTorch. */
    __device__ float factor(uint32_t word) const {
        return word >= threshold ? scale : 0.0f;
    }
};

/* out = in * keep * scale, for rows that are whole packs */
template <int WIDE, class Number> __global__ void mask_packs(masked<Number> m) {
    static constexpr int DRAWS = WIDE / GROUP;
    for (int64_t i = thread_index(); i < m.total; i += thread_count()) {
        int64_t row = i;
        const int64_t group = split(m.items, &row) * DRAWS;
        pack<float, WIDE> v = load<WIDE>(m.in, i);
        for (int d = 0; d < DRAWS; d++) {
            uint32_t word[GROUP];
            m.draw(word, group + d, row);
            for (int k = 0; k < GROUP; k++) v.at[d * GROUP + k] *= m.factor(word[k]);
        }
        store(m.out, i, v);
    }
}

/* The same for other rows: one group at a time, element by element. */
template <class Number> __global__ void mask_numbers(masked<Number> m) {
    for (int64_t i = thread_index(); i < m.total; i += thread_count()) {
        int64_t row = i;
        const int64_t group = split(m.items, &row);
        const int64_t first = row * m.width + group * GROUP, rest = m.width - group * GROUP;
        uint32_t word[GROUP];
        m.draw(word, group, row);
        for (int k = 0; k < GROUP; k++)
            if (k < rest) put(m.out, first + k, get(m.in, first + k) * m.factor(word[k]));
    }
}

template <class Number> tdm_status apply(const tdm_kernel_args *args, const Number *in, Number *out) {
    static constexpr int WIDE = PACK_OF<Number>;
    const tdm_dropout_attrs *attrs = (const tdm_dropout_attrs *)args->desc->attrs;
    masked<Number> m = {};
    m.in = in;
    m.out = out;
    m.values = args->values;
    m.position = args->position;
    m.key = tdm__dropout_key(args->seed);
    m.threshold = tdm__dropout_threshold(attrs->p);
    m.stream = args->stream;
    m.scale = tdm__dropout_scale(attrs->p);
    m.width = tdm__elementwise_count(args) / args->rows;
    const bool packs = m.width % WIDE == 0 && is_aligned(in, out);
    const int64_t items = ceil_div(m.width, packs ? WIDE : GROUP);
    m.items = divider_of(items);
    m.total = args->rows * items;
    auto kernel = packs ? mask_packs<WIDE, Number> : mask_numbers<Number>;
    TDM_LAUNCH(kernel, blocks_for(m.total), THREADS, tdm__cuda_device(args->device)->stream, m);
    return TDM_OK;
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

TDM_CUDA_KERNEL(dropout, tdm__plain_fits); /* the mask is defined on it */
