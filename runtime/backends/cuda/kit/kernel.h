/* What kernels written in CUDA share: packs of contiguous elements, grid sizes, division by constants, and sums whose
 * order never changes. For .cu files.
 *
 * Indices are 64 bits wide everywhere: tensors may have more than 2^31 elements. */
#ifndef TDM_CUDA_KIT_KERNEL_H
#define TDM_CUDA_KIT_KERNEL_H

#include <cuda_runtime.h>

#include <math.h>
#include <stdint.h>

#include <tandem/job.h>

#include "runtime/backends/cuda/kit/cuda.h"
#include "runtime/base/bf16.h"

/* The kernels of an op, from its file's templates `forward<Number>` and `backward<Number>`; of a loss, from
 * `run<Number>`; and of an optimizer: TDM_CUDA_KERNEL(relu, keep_layout); TDM_CUDA_LOSS(mse); TDM_CUDA_OPTIM(sgd, run);
 * In C++ other files see a constant only if it was declared as extern. */
#define TDM_CUDA_KERNEL(name, fits_function)                       \
    extern "C" const tdm_kernel tdm__##name##_cuda;                \
    const tdm_kernel tdm__##name##_cuda = {                        \
        .op = #name,                                               \
        .variant = "cuda",                                         \
        .fits = fits_function,                                     \
        .open = NULL,                                              \
        .close = NULL,                                             \
        .forward = by_precision<forward<float>, forward<bf16>>,    \
        .backward = by_precision<backward<float>, backward<bf16>>, \
        .statistics = NULL,                                        \
        .recompute = NULL,                                         \
        .algorithms = NULL,                                        \
        .takes_bf16 = true,                                        \
        .packed_bytes = NULL,                                      \
        .pack = NULL,                                              \
        .keeps_param = false,                                      \
    }
#define TDM_CUDA_LOSS(name)                              \
    extern "C" const tdm_loss_kernel tdm__##name##_cuda; \
    const tdm_loss_kernel tdm__##name##_cuda = {#name, "cuda", by_loss_precision<run<float>, run<bf16>>}
#define TDM_CUDA_OPTIM(name, run)                         \
    extern "C" const tdm_optim_kernel tdm__##name##_cuda; \
    const tdm_optim_kernel tdm__##name##_cuda = {#name, "cuda", run}

namespace tdm_cuda {

static constexpr int WARP = 32;
static constexpr int THREADS = 256; /* threads of a block, unless a kernel needs another number */
/* Blocks of a grid: several times what the largest device runs at once. Threads loop over the rest. */
static constexpr int64_t MOST_BLOCKS = 4096;

/* ---- grids ---- */

static inline int64_t ceil_div(int64_t count, int64_t by) {
    return (count + by - 1) / by;
}

/* Returns how many blocks to launch so that each thread has one of `count` items, or several in a loop of stride
 * thread_count(). */
static inline unsigned blocks_for(int64_t count, int threads = THREADS) {
    int64_t blocks = ceil_div(count, threads);
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

__device__ inline int64_t thread_index() {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline int64_t thread_count() {
    return (int64_t)gridDim.x * blockDim.x;
}

/* ---- bf16 ----
 *
 * A load widens to float and a store narrows, so one template serves both precisions:
 *     template <class Number> ... pack<float, WIDE> v = load<WIDE>(x, i); ... store(y, i, v);
 * where Number is float or bf16. */

struct bf16 {
    uint16_t bits;
};

__device__ inline float widened(bf16 value) {
    return tdm__bf16_float(value.bits);
}

/* The device's instruction gives the bits of tdm__bf16_of, except for NaN, which becomes 0x7fff, as in PyTorch on a
 * GPU. */
__device__ inline bf16 narrowed(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    bf16 out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
#else
    return {tdm__bf16_of(value)};
#endif
}

/* The true type of the pointers of tdm_kernel_args and tdm_loss_args if the precision is bf16. */
template <class Number> inline const Number *as(const float *pointer) {
    return (const Number *)(const void *)pointer;
}
template <class Number> inline Number *as(float *pointer) {
    return (Number *)(void *)pointer;
}

/* Picks one of two instances: `FLOATS` or, if the desc asks for bf16, `NARROW`. */
typedef tdm_status kernel_pass(const tdm_kernel_args *args);
template <kernel_pass *FLOATS, kernel_pass *NARROW> tdm_status by_precision(const tdm_kernel_args *args) {
    return args->desc->precision == TDM_BF16 ? NARROW(args) : FLOATS(args);
}
typedef tdm_status loss_pass(const tdm_loss_args *args);
template <loss_pass *FLOATS, loss_pass *NARROW> tdm_status by_loss_precision(const tdm_loss_args *args) {
    return args->precision == TDM_BF16 ? NARROW(args) : FLOATS(args);
}

/* ---- packs: `WIDE` contiguous elements, moved in one access ---- */

static constexpr int ACCESS = 16; /* the most bytes that a thread moves in one access */
template <class Number> static constexpr int PACK_OF = ACCESS / (int)sizeof(Number);
static constexpr int PACK = PACK_OF<float>;

/* A pack that is wider than an access is moved in several. */
static constexpr size_t pack_alignment(size_t bytes) {
    return bytes < ACCESS ? bytes : ACCESS;
}

template <class Number, int WIDE> struct alignas(pack_alignment(sizeof(Number) * WIDE)) pack { Number at[WIDE]; };

template <int WIDE, class Number> __device__ inline pack<Number, WIDE> load(const Number *from, int64_t index) {
    return ((const pack<Number, WIDE> *)from)[index];
}

template <int WIDE, class Number> __device__ inline void store(Number *to, int64_t index, pack<Number, WIDE> value) {
    ((pack<Number, WIDE> *)to)[index] = value;
}

template <int WIDE> __device__ inline pack<float, WIDE> load(const bf16 *from, int64_t index) {
    const pack<bf16, WIDE> in = ((const pack<bf16, WIDE> *)from)[index];
    pack<float, WIDE> out;
    for (int k = 0; k < WIDE; k++) out.at[k] = widened(in.at[k]);
    return out;
}

template <int WIDE> __device__ inline void store(bf16 *to, int64_t index, pack<float, WIDE> value) {
    pack<bf16, WIDE> out;
    for (int k = 0; k < WIDE; k++) out.at[k] = narrowed(value.at[k]);
    ((pack<bf16, WIDE> *)to)[index] = out;
}

__device__ inline float get(const float *from, int64_t index) {
    return from[index];
}
__device__ inline float get(const bf16 *from, int64_t index) {
    return widened(from[index]);
}
__device__ inline void put(float *to, int64_t index, float value) {
    to[index] = value;
}
__device__ inline void put(bf16 *to, int64_t index, float value) {
    to[index] = narrowed(value);
}

/* max(0, v); NaN passes. */
template <int WIDE> __device__ inline void clamp_at_zero(pack<float, WIDE> *v) {
    for (int k = 0; k < WIDE; k++) v->at[k] = v->at[k] < 0.0f ? 0.0f : v->at[k];
}
/* 0 where y <= 0, else d: what comes back from a relu with the output y. */
template <int WIDE> __device__ inline void keep_where_positive(pack<float, WIDE> *d, const pack<float, WIDE> &y) {
    for (int k = 0; k < WIDE; k++) d->at[k] = y.at[k] <= 0.0f ? 0.0f : d->at[k];
}

/* Whether all pointers are aligned for packs of any size. NULL counts as aligned: it is not read. */
template <class... Pointers> static inline bool is_aligned(const Pointers *...pointers) {
    return (((uintptr_t)pointers % ACCESS == 0) && ...);
}

/* ---- one elementwise pass over arrays ----
 *
 * An item is a struct of pointers and constants with `template <int WIDE> __device__ void run(int64_t index) const`,
 * which processes pack `index`. It reads before it writes, so arrays may be the same memory. */

template <int WIDE, class Item> __global__ void each_kernel(Item item, int64_t count) {
    const int64_t first = thread_index(), step = thread_count(), packs = count / WIDE;
    for (int64_t i = first; i < packs; i += step) item.template run<WIDE>(i);
    /* The rest is smaller than a pack, and every grid has more threads than that. */
    if (WIDE > 1 && packs * WIDE + first < count) item.template run<1>(packs * WIDE + first);
}

/* WIDE: elements of a pack if the arrays are `aligned`. */
template <int WIDE = PACK, class Item>
tdm_status each(tdm_cuda_device *device, const Item &item, int64_t count, bool aligned) {
    if (count == 0) return TDM_OK;
    auto kernel = aligned ? each_kernel<WIDE, Item> : each_kernel<1, Item>;
    TDM_LAUNCH(kernel, blocks_for(aligned ? ceil_div(count, WIDE) : count), THREADS, device->stream, item, count);
    return TDM_OK;
}

/* to = from, each in its own precision */
template <class To, class From> struct copy_item {
    To *to;
    const From *from;
    template <int WIDE> __device__ void run(int64_t i) const {
        store(to, i, load<WIDE>(from, i));
    }
};

template <class To, class From> tdm_status copy_each(tdm_cuda_device *device, To *to, const From *from, int64_t count) {
    return each<PACK_OF<From>>(device, copy_item<To, From>{to, from}, count, is_aligned(to, from));
}

/* ---- division by a number that is constant in a launch ----
 *
 * Granlund and Montgomery 1994: a multiplication and a shift if both numbers are below 2^31, else the slow division. */
struct divider {
    int64_t by;
    uint32_t multiplier, shift;
};

static inline divider divider_of(int64_t by) {
    divider out = {by, 0, 0};
    while (((int64_t)1 << out.shift) < by && out.shift < 31) out.shift++;
    if (by <= INT32_MAX)
        out.multiplier =
            (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << out.shift) - (uint64_t)by)) / (uint64_t)by + 1);
    return out;
}

__device__ inline int64_t quotient(const divider &d, int64_t n) {
    if (((n | d.by) >> 31) != 0) return n / d.by;
    const uint64_t high = ((uint64_t)(uint32_t)n * d.multiplier) >> 32;
    return (int64_t)((high + (uint64_t)n) >> d.shift);
}

/* The same for numbers that are both known to be below 2^31. */
__device__ inline int32_t quotient(const divider &d, int32_t n) {
    const uint32_t high = (uint32_t)(((uint64_t)(uint32_t)n * d.multiplier) >> 32);
    return (int32_t)((high + (uint32_t)n) >> d.shift);
}

/* Divides *n: *n becomes the quotient, and the remainder is returned. */
template <class Index> __device__ inline Index split(const divider &d, Index *n) {
    const Index whole = *n, part = quotient(d, whole);
    *n = part;
    return whole - part * (Index)d.by;
}

/* ---- sums of a warp and of a block, in an order that never changes ---- */

static constexpr unsigned ALL_LANES = 0xffffffffu;

template <class Number> __device__ inline Number warp_sum(Number value) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(ALL_LANES, value, offset);
    return value;
}

/* Returns the sum in every thread. `room` is shared memory for BLOCK / WARP elements, free again afterwards. */
template <int BLOCK, class Number> __device__ inline Number block_sum(Number value, Number *room) {
    value = warp_sum(value);
    if (BLOCK == WARP) return value;
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = value;
    __syncthreads();
    Number sum = room[0];
    for (int warp = 1; warp < BLOCK / WARP; warp++) sum += room[warp];
    __syncthreads();
    return sum;
}

/* For passes that have no open to grow the workspace; a device is opened with TDM_CUDA_WORKSPACE_LEAST. */
static inline tdm_status workspace_holds(const tdm_cuda_device *device, size_t bytes) {
    if (device->workspace_bytes < bytes)
        TDM_MODULE_FAIL(TDM_E_INTERNAL, "%s: a workspace of %zu bytes is needed, the device has %zu", device->base.name,
                        bytes, device->workspace_bytes);
    return TDM_OK;
}

/* ---- layouts ---- */

static inline bool takes(tdm_layout layout) {
    return layout == TDM_LAYOUT_PLAIN || layout == TDM_LAYOUT_NHWC;
}

/* Elementwise kernels keep the layout that they are offered; all sizes fit. */
static inline bool keep_layout(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_layout layout = takes(desc->x_layout[0]) ? desc->x_layout[0] : TDM_LAYOUT_PLAIN;
    for (int i = 0; i < desc->input_count; i++) fit->x_layout[i] = layout;
    fit->y_layout = layout;
    return true;
}

} /* namespace tdm_cuda */
#endif
