/* Turns a batch into what kernels read, in one launch: finds the rows, turns bytes into floats by data.transform, and
 * moves channels to where the plan has them. Every value is looked up in the table that the CPU's loader uses, so the
 * values are the same.
 *
 * The first blocks bring positions and targets, the others x, so neither waits for the other's memory. A thread issues
 * all loads of an item before it uses the first. */
#include <tandem/job.h>

#include "runtime/backends/cuda/cuda_passes.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

constexpr int BYTES = 256;         /* values of a byte, and entries in a row of the table */
constexpr int NEAR_CHANNELS = 4;   /* rows of the table that fit into shared memory */
constexpr int64_t X_BLOCKS = 1024; /* about as many as the largest device runs at once; each reads the table */
constexpr int64_t REST_BLOCKS = 256;
constexpr int64_t MOST_ITEMS = INT32_MAX - X_BLOCKS * THREADS; /* counters are 32 bits and step past the end once */

/* How threads divide the work. */
struct shares {
    int rest_blocks;
    divider words;  /* words of 4 bytes in a row's target */
    divider items;  /* items in a row of x */
    divider points; /* points in a channel */
    int total;      /* items in all rows */
    int filled;     /* elements of a point in the result: its channels, and zeros after them */
};

/* ---- from a stored value to a float ---- */

template <class Number> __device__ inline Number number_of(float value);
template <> __device__ inline float number_of<float>(float value) {
    return value;
}
template <> __device__ inline bf16 number_of<bf16>(float value) {
    return narrowed(value);
}

/* `images`: the types that most images have; 1 and 3 channels have kernels of their own. */
template <class Number> struct from_float {
    static constexpr bool images = false;
    typedef float stored;
    __device__ explicit from_float(const tdm_ingest &) {}
    __device__ Number operator()(float value, int) const {
        return number_of<Number>(value);
    }
};

/* The table in global memory. */
template <class Number> struct from_table {
    static constexpr bool images = false;
    typedef uint8_t stored;
    const float *table;
    __device__ explicit from_table(const tdm_ingest &g) : table(g.table) {}
    __device__ Number operator()(uint8_t byte, int channel) const {
        return number_of<Number>(table[channel * BYTES + byte]);
    }
};

/* The table in shared memory, in the result's precision. All threads of the block make it together. */
template <class Number> struct from_near_table {
    static constexpr bool images = true;
    typedef uint8_t stored;
    const Number *table;
    __device__ explicit from_near_table(const tdm_ingest &g) {
        static_assert(THREADS == BYTES, "a thread makes a column of the table");
        __shared__ Number near[NEAR_CHANNELS * BYTES];
        float value[NEAR_CHANNELS];
        for (int c = 0; c < NEAR_CHANNELS; c++)
            if (c < g.table_channels) value[c] = g.table[c * BYTES + (int)threadIdx.x];
        for (int c = 0; c < NEAR_CHANNELS; c++)
            if (c < g.table_channels) near[c * BYTES + (int)threadIdx.x] = number_of<Number>(value[c]);
        __syncthreads();
        table = near;
    }
    __device__ Number operator()(uint8_t byte, int channel) const {
        return table[channel * BYTES + byte];
    }
};

/* ---- kernels ---- */

/* Returns where row `row` of the batch begins. */
template <class Stored> __device__ inline const Stored *sample_of(const tdm_ingest &g, int64_t row) {
    const char *packed = (const char *)g.packed;
    const int64_t numbers = g.channels * g.points;
    if (g.samples == NULL) return (const Stored *)(packed + g.x_at) + row * numbers;
    return (const Stored *)g.samples + ((const int64_t *)(packed + g.x_at))[row] * numbers;
}

/* Brings positions, and targets in words of 4 bytes. */
__device__ inline void bring_rest(const tdm_ingest &g, const shares &share) {
    const char *packed = (const char *)g.packed;
    const int64_t first = thread_index(), step = (int64_t)share.rest_blocks * blockDim.x;
    for (int64_t i = first; i < g.rows; i += step) g.position[i] = ((const int64_t *)packed)[i];
    const bool gathers = g.samples != NULL && g.targets != NULL;
    const uint32_t *from = (const uint32_t *)(gathers ? (const char *)g.targets : packed + g.target_at);
    const int64_t words = (int64_t)(g.target_bytes / sizeof(uint32_t)), total = g.rows * words;
    for (int64_t i = first; i < total; i += step) {
        int64_t row = i;
        const int64_t word = split(share.words, &row);
        const int64_t at = gathers ? ((const int64_t *)(packed + g.x_at))[row] : row;
        ((uint32_t *)g.target)[i] = from[at * words + word];
    }
}

/* The thread's index among the threads that bring x, and how many there are. */
__device__ inline int x_index(const shares &share) {
    return ((int)blockIdx.x - share.rest_blocks) * THREADS + (int)threadIdx.x;
}
__device__ inline int x_count(const shares &share) {
    return ((int)gridDim.x - share.rest_blocks) * THREADS;
}

/* Result PLAIN: an item is WIDE contiguous elements, all of one channel if the table has several rows. */
template <class Number, class Rule, int WIDE>
__global__ void __launch_bounds__(THREADS) ingest_planes(tdm_ingest g, shares share) {
    if ((int)blockIdx.x < share.rest_blocks) {
        bring_rest(g, share);
        return;
    }
    const Rule rule(g);
    for (int i = x_index(share); i < share.total; i += x_count(share)) {
        int row = i;
        const int item = split(share.items, &row);
        const int channel = g.table_channels > 1 ? quotient(share.points, item * WIDE) : 0;
        const auto in = load<WIDE>(sample_of<typename Rule::stored>(g, row), item);
        pack<Number, WIDE> out;
        for (int k = 0; k < WIDE; k++) out.at[k] = rule(in.at[k], channel);
        store((Number *)g.x, i, out);
    }
}

/* Channels last: an item is a point with all its channels and the zeros after them, stored WIDE at a time. If CHANNELS
 * is not 0 it is the number of channels; WIDE is then 1 or the number of elements of a point in the result. */
template <class Number, class Rule, int CHANNELS, int WIDE>
__global__ void __launch_bounds__(THREADS) ingest_points(tdm_ingest g, shares share) {
    constexpr int GROUP = WIDE > 1 ? WIDE : PACK; /* channels read together */
    if ((int)blockIdx.x < share.rest_blocks) {
        bring_rest(g, share);
        return;
    }
    const Rule rule(g);
    const int channels = CHANNELS > 0 ? CHANNELS : (int)g.channels, points = (int)g.points;
    const int filled = CHANNELS > 0 && WIDE > 1 ? WIDE : share.filled, several = g.table_channels > 1;
    for (int i = x_index(share); i < share.total; i += x_count(share)) {
        int row = i;
        const int point = split(share.items, &row);
        const auto *from = sample_of<typename Rule::stored>(g, row) + point;
        Number *to = (Number *)g.x + (int64_t)i * filled;
        for (int c = 0; c < filled; c += GROUP) {
            typename Rule::stored in[GROUP] = {};
            for (int k = 0; k < GROUP; k++)
                if (c + k < channels) in[k] = from[(c + k) * points];
            pack<Number, GROUP> out = {};
            for (int k = 0; k < GROUP; k++)
                if (c + k < channels) out.at[k] = rule(in[k], (c + k) * several);
            if (WIDE > 1) store(to, c / GROUP, out);
            for (int k = 0; WIDE == 1 && k < GROUP; k++)
                if (c + k < filled) to[c + k] = out.at[k];
        }
    }
}

/* ---- launches ---- */

typedef void (*ingest_kernel)(tdm_ingest g, shares share);

bool is_multiple(const void *pointer, size_t bytes, size_t offset = 0) {
    return ((uintptr_t)pointer + offset) % bytes == 0;
}

/* Whether PACK values of a sample can be read in one access, wherever the sample begins. */
template <class Stored> bool reads_packs(const tdm_ingest &g) {
    constexpr size_t bytes = PACK * sizeof(Stored);
    if (g.channels * g.points % PACK != 0) return false;
    return g.samples != NULL ? is_multiple(g.samples, bytes) : is_multiple(g.packed, bytes, g.x_at);
}

/* Launches a kernel for `items` per row and `filled` elements per point of the result. */
tdm_status start(cudaStream_t stream, ingest_kernel kernel, const tdm_ingest &g, int64_t items, int64_t filled) {
    const int64_t words = (int64_t)(g.target_bytes / sizeof(uint32_t)), per_row = words > 0 ? words : 1;
    const int64_t rest = ceil_div(g.rows * per_row, THREADS), x = ceil_div(g.rows * items, THREADS);
    if (g.channels * g.points > MOST_ITEMS || g.rows * items > MOST_ITEMS)
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED,
                      "ingest: a batch of %lld samples of %lld numbers is too large; make it smaller",
                      (long long)g.rows, (long long)(g.channels * g.points));
    shares share = {};
    share.rest_blocks = (int)(rest < REST_BLOCKS ? rest : REST_BLOCKS);
    share.words = divider_of(per_row);
    share.items = divider_of(items);
    share.points = divider_of(g.points);
    share.total = (int)(g.rows * items);
    share.filled = (int)filled;
    TDM_LAUNCH(kernel, (unsigned)(share.rest_blocks + (x < X_BLOCKS ? x : X_BLOCKS)), THREADS, stream, g, share);
    return TDM_OK;
}

template <class Number, class Rule> tdm_status bring_planes(cudaStream_t stream, const tdm_ingest &g) {
    const bool packs = reads_packs<typename Rule::stored>(g) && is_multiple(g.x, PACK * sizeof(Number)) &&
                       (g.table_channels == 1 || g.points % PACK == 0);
    const int64_t numbers = g.channels * g.points;
    if (packs) return start(stream, ingest_planes<Number, Rule, PACK>, g, numbers / PACK, 1);
    return start(stream, ingest_planes<Number, Rule, 1>, g, numbers, 1);
}

template <class Number, class Rule, int CHANNELS> ingest_kernel points_kernel(const void *x, int64_t filled) {
    constexpr int MOST = PACK_OF<Number>;
    if (filled % MOST == 0 && is_multiple(x, MOST * sizeof(Number))) return ingest_points<Number, Rule, CHANNELS, MOST>;
    if (filled % PACK == 0 && is_multiple(x, PACK * sizeof(Number))) return ingest_points<Number, Rule, CHANNELS, PACK>;
    return ingest_points<Number, Rule, CHANNELS, 1>;
}

template <class Number, class Rule> tdm_status bring_points(cudaStream_t stream, const tdm_ingest &g) {
    const int64_t filled = g.x_channels;
    const bool fits = filled <= PACK_OF<Number>; /* a point fits into one access */
    ingest_kernel kernel = points_kernel<Number, Rule, 0>(g.x, filled);
    if constexpr (Rule::images) {
        if (g.channels == 1 && fits) kernel = points_kernel<Number, Rule, 1>(g.x, filled);
        if (g.channels == 3 && fits) kernel = points_kernel<Number, Rule, 3>(g.x, filled);
    }
    return start(stream, kernel, g, g.points, filled);
}

template <class Number, class Rule> tdm_status bring_by(cudaStream_t stream, const tdm_ingest &g) {
    const bool moves = g.layout != TDM_LAYOUT_PLAIN && g.x_channels > 1;
    return moves ? bring_points<Number, Rule>(stream, g) : bring_planes<Number, Rule>(stream, g);
}

template <class Number> tdm_status bring(cudaStream_t stream, const tdm_ingest &g) {
    if (!g.bytes) return bring_by<Number, from_float<Number>>(stream, g);
    if (g.table_channels > NEAR_CHANNELS) return bring_by<Number, from_table<Number>>(stream, g);
    return bring_by<Number, from_near_table<Number>>(stream, g);
}

} /* namespace */

tdm_status tdm__cuda_ingest(tdm_device *device, tdm_queue *queue, const tdm_ingest *ingest) {
    const cudaStream_t stream = queue != NULL ? (cudaStream_t)queue : tdm__cuda_device(device)->stream;
    if (ingest->rows == 0) return TDM_OK;
    TDM_CUDA_ENTER(device);
    return ingest->precision == TDM_BF16 ? bring<bf16>(stream, *ingest) : bring<float>(stream, *ingest);
}
