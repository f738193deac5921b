/* A batch becomes what kernels read, in one launch: rows are found, bytes become the numbers of data.transform, channels
 * move to where the plan has them. Every number is looked up in the table that the CPU's loader uses, so it is the same
 * number. */
#include <tandem/job.h>

#include "ops/cuda_module/kernel.h"

using namespace tdm_cuda;

namespace {

/* How threads divide a row of x: `items` of them, item by item `wide` numbers of the result. */
struct shares {
    divider items, points;
    int64_t total;  /* items of all rows */
    int64_t filled; /* numbers of a point in the result: channels, or more with zeros behind them */
};

struct source {
    const char *x;       /* this row's sample */
    const float *table;  /* NULL: floats */
    int64_t plane;       /* numbers that share a row of the table */
};

__device__ inline source source_of(const tdm_ingest &g, const char *place, int64_t row) {
    const int64_t size = g.channels * g.points * (g.bytes ? 1 : (int64_t)sizeof(float));
    const int64_t at = g.samples != NULL ? ((const int64_t *)(place + g.x_at))[row] : row;
    const char *first = g.samples != NULL ? (const char *)g.samples : place + g.x_at;
    return {first + at * size, g.bytes ? g.table : NULL, g.table_channels > 1 ? g.points : g.channels * g.points};
}

/* Number `i` of the sample, which is of channel `channel`. */
__device__ inline float number_at(const source &from, int64_t i, int64_t channel) {
    if (from.table == NULL) return ((const float *)from.x)[i];
    return from.table[channel * 256 + ((const uint8_t *)from.x)[i]];
}

/* Positions, and targets in words of 4 bytes. */
__device__ inline void bring_rest(const tdm_ingest &g, const char *place) {
    const int64_t words = (int64_t)(g.target_bytes / sizeof(uint32_t)), step = thread_count();
    const int64_t *index = (const int64_t *)(place + g.x_at), *position = (const int64_t *)place;
    for (int64_t i = thread_index(); i < g.rows; i += step) g.position[i] = position[i];
    if (words == 0) return;
    const uint32_t *from = (const uint32_t *)(g.samples != NULL ? (const char *)g.targets : place + g.target_at);
    for (int64_t i = thread_index(); i < g.rows * words; i += step) {
        const int64_t row = i / words, at = g.samples != NULL ? index[row] : row;
        ((uint32_t *)g.target)[i] = from[at * words + i % words];
    }
}

/* Result PLAIN: an item is WIDE neighbouring numbers, all of one channel where the table has several. */
template <int WIDE, class Number> __global__ void ingest_planes(tdm_ingest g, shares share) {
    const char *place = (const char *)g.place[g.values->place];
    for (int64_t i = thread_index(); i < share.total; i += thread_count()) {
        int64_t row = i;
        const int64_t first = split(share.items, &row) * WIDE;
        const source from = source_of(g, place, row);
        const int64_t channel = g.table_channels > 1 ? quotient(share.points, first) : 0;
        pack<float, WIDE> v;
        for (int k = 0; k < WIDE; k++) v.at[k] = number_at(from, first + k, channel);
        store((Number *)g.x, i, v);
    }
    bring_rest(g, place);
}

/* Channels last: an item is a point, all its channels and the zeros behind them. */
template <int WIDE, class Number> __global__ void ingest_points(tdm_ingest g, shares share) {
    const char *place = (const char *)g.place[g.values->place];
    for (int64_t i = thread_index(); i < share.total; i += thread_count()) {
        int64_t row = i;
        const int64_t point = split(share.points, &row);
        const source from = source_of(g, place, row);
        for (int64_t c = 0; c < share.filled; c += WIDE) {
            pack<float, WIDE> v = {};
            for (int k = 0; k < WIDE; k++)
                if (c + k < g.channels)
                    v.at[k] = number_at(from, (c + k) * g.points + point, g.table_channels > 1 ? c + k : 0);
            store((Number *)g.x, (i * share.filled + c) / WIDE, v);
        }
    }
    bring_rest(g, place);
}

template <class Number> tdm_status bring_planes(tdm_cuda_device *device, const tdm_ingest &g) {
    const int64_t width = g.channels * g.points;
    const bool packs = (g.table_channels > 1 ? g.points : width) % PACK == 0 && is_aligned((const Number *)g.x);
    const int64_t items = packs ? width / PACK : width;
    const shares share = {divider_of(items), divider_of(g.points), g.rows * items, 0};
    auto kernel = packs ? ingest_planes<PACK, Number> : ingest_planes<1, Number>;
    TDM_LAUNCH(kernel, blocks_for(share.total), THREADS, device->stream, g, share);
    return TDM_OK;
}

template <class Number> tdm_status bring_points(tdm_cuda_device *device, const tdm_ingest &g) {
    const int64_t group = g.layout == TDM_LAYOUT_NHWC4 ? 4 : g.layout == TDM_LAYOUT_NHWC8 ? 8 : 1;
    const int64_t filled = ceil_div(g.channels, group) * group;
    const shares share = {divider_of(1), divider_of(g.points), g.rows * g.points, filled};
    auto kernel = filled % PACK == 0 ? ingest_points<PACK, Number> : ingest_points<1, Number>;
    TDM_LAUNCH(kernel, blocks_for(share.total), THREADS, device->stream, g, share);
    return TDM_OK;
}

template <class Number> tdm_status bring(tdm_cuda_device *device, const tdm_ingest &g) {
    return g.layout == TDM_LAYOUT_PLAIN ? bring_planes<Number>(device, g) : bring_points<Number>(device, g);
}

} /* namespace */

tdm_status tdm__cuda_ingest(tdm_device *device, const tdm_ingest *ingest) {
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    return ingest->precision == TDM_BF16 ? bring<bf16>(cuda, *ingest) : bring<float>(cuda, *ingest);
}
