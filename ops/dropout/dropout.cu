/* dropout on CUDA. */
#include "ops/dropout/dropout_cuda.h"

using namespace tdm_cuda;

namespace {

/* The items of rows: packs, or groups of which the last may be shorter. */
struct row_items {
    int64_t width, total; /* elements in a row; items in all rows */
    divider items;        /* in a row */
};

/* out = in * keep * scale, for rows that are whole packs */
template <int WIDE, class Number> __global__ void mask_packs(masked<Number> m, row_items rows) {
    static constexpr int DRAWS = WIDE / DRAWN;
    for (int64_t i = thread_index(); i < rows.total; i += thread_count()) {
        int64_t row = i;
        const int64_t group = split(rows.items, &row) * DRAWS;
        pack<float, WIDE> v = load<WIDE>(m.in, i);
        for (int d = 0; d < DRAWS; d++) {
            uint32_t word[DRAWN];
            m.draw(word, group + d, row);
            for (int k = 0; k < DRAWN; k++) v.at[d * DRAWN + k] *= m.factor(word[k]);
        }
        store(m.out, i, v);
    }
}

/* The same for other rows: one group at a time, element by element. */
template <class Number> __global__ void mask_numbers(masked<Number> m, row_items rows) {
    for (int64_t i = thread_index(); i < rows.total; i += thread_count()) {
        int64_t row = i;
        const int64_t group = split(rows.items, &row);
        const int64_t first = row * rows.width + group * DRAWN, rest = rows.width - group * DRAWN;
        uint32_t word[DRAWN];
        m.draw(word, group, row);
        for (int k = 0; k < DRAWN; k++)
            if (k < rest) put(m.out, first + k, get(m.in, first + k) * m.factor(word[k]));
    }
}

template <class Number> tdm_status apply(const tdm_kernel_args *args, const Number *in, Number *out) {
    static constexpr int WIDE = PACK_OF<Number>;
    const int64_t width = tdm__elementwise_count(args) / args->rows;
    const bool packs = width % WIDE == 0 && is_aligned(in, out);
    const int64_t items = ceil_div(width, packs ? WIDE : DRAWN);
    const row_items rows = {width, args->rows * items, divider_of(items)};
    auto kernel = packs ? mask_packs<WIDE, Number> : mask_numbers<Number>;
    TDM_LAUNCH(kernel, blocks_for(rows.total), THREADS, tdm__cuda_device(args->device)->stream,
               masked_of(args, in, out), rows);
    return TDM_OK;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return args->training ? apply(args, as<Number>(args->x[0]), as<Number>(args->y)) : copy_x<Number>(args);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, as<Number>(args->dy), as<Number>(args->dx[0]));
}

} /* namespace */

TDM_CUDA_KERNEL(dropout, tdm__plain_fits); /* the mask is defined on it */
