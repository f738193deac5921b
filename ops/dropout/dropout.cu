/* dropout on CUDA: the mask is drawn in forward and once more in backward, which costs less than to keep it. */
#include "ops/cuda_module/kernel.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/elementwise.h"

using namespace tdm_cuda;

namespace {

static constexpr int GROUP = 4; /* elements of one draw */

struct masked {
    const float *in;
    float *out;
    const tdm_step_values *values;
    const int64_t *position; /* of each row */
    uint64_t key, threshold;
    uint32_t stream;
    float scale;
    int64_t width, total; /* numbers in a row; groups of all rows */
    divider groups;       /* of a row; the last may be shorter */
};

/* out = in * keep * scale. The factor is 0 or the scale: a product, so that NaN and infinity show even where they are
 * dropped, as in PyTorch. PACKS: rows are whole groups, and memory is aligned. */
template <bool PACKS> __global__ void mask(masked m) {
    const uint64_t step = m.values->step;
    for (int64_t i = thread_index(); i < m.total; i += thread_count()) {
        int64_t n = i;
        const int64_t group = split(m.groups, &n);
        uint32_t word[GROUP];
        tdm__dropout_words(word, m.key, group, m.position[n], step, m.stream);
        if (PACKS) {
            pack<float, GROUP> v = load<GROUP>(m.in, i);
            for (int k = 0; k < GROUP; k++) v.at[k] *= word[k] >= m.threshold ? m.scale : 0.0f;
            store(m.out, i, v);
            continue;
        }
        const int64_t first = n * m.width + group * GROUP, rest = m.width - group * GROUP;
        for (int k = 0; k < GROUP; k++)
            if (k < rest) m.out[first + k] = m.in[first + k] * (word[k] >= m.threshold ? m.scale : 0.0f);
    }
}

tdm_status apply(const tdm_kernel_args *args, const float *in, float *out) {
    const tdm_dropout_attrs *attrs = (const tdm_dropout_attrs *)args->desc->attrs;
    masked m = {};
    m.in = in;
    m.out = out;
    m.values = args->values;
    m.position = args->position;
    m.key = tdm__dropout_key(args->seed);
    m.threshold = tdm__dropout_threshold(attrs->p);
    m.stream = args->stream;
    m.scale = tdm__dropout_factor(attrs->p);
    m.width = tdm__elementwise_count(args) / args->rows;
    const int64_t groups = ceil_div(m.width, GROUP);
    m.groups = divider_of(groups);
    m.total = args->rows * groups;
    const bool packs = m.width % GROUP == 0 && is_aligned(in) && is_aligned(out);
    auto kernel = packs ? mask<true> : mask<false>;
    TDM_LAUNCH(kernel, blocks_for(m.total), THREADS, tdm__cuda_device(args->device)->stream, m);
    return TDM_OK;
}

struct copy_item {
    const float *from;
    float *to;
    template <int WIDE> __device__ void run(int64_t i) const {
        store(to, i, load<WIDE>(from, i));
    }
};

/* The mask is counted in the plain layout. */
bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    (void)desc;
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    return true;
}

tdm_status forward(const tdm_kernel_args *args) {
    if (args->training) return apply(args, args->x[0], args->y);
    if (args->y == args->x[0]) return TDM_OK;
    const copy_item item = {args->x[0], args->y};
    return each(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),
                is_aligned(item.from) && is_aligned(item.to));
}

tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, args->dy, args->dx[0]);
}

} /* namespace */

const tdm_kernel tdm__dropout_cuda = {
    .op = "dropout",
    .variant = "cuda",
    .fits = fits,
    .open = NULL,
    .close = NULL,
    .forward = forward,
    .backward = backward,
};
