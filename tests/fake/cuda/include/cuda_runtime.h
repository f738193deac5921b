/* The words of CUDA C++ that kernels use, for the host's compiler: see ../README.md. */
#ifndef CUDA_EMULATED_RUNTIME_H
#define CUDA_EMULATED_RUNTIME_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#include <algorithm>
#include <cmath>
#include <math.h>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static /* blocks run one after the other */

#define CUDA_EMULATED_VECTOR(type, name, alignment)                        \
    struct name##2 {                                                       \
        type x, y;                                                         \
    }                                                                      \
    __attribute__((aligned(2 * sizeof(type))));                            \
    struct name##3 {                                                       \
        type x, y, z;                                                      \
    };                                                                     \
    struct name##4 {                                                       \
        type x, y, z, w;                                                   \
    }                                                                      \
    __attribute__((aligned(alignment)));                                   \
    static inline name##2 make_##name##2(type x, type y) {                 \
        return {x, y};                                                     \
    }                                                                      \
    static inline name##3 make_##name##3(type x, type y, type z) {         \
        return {x, y, z};                                                  \
    }                                                                      \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { \
        return {x, y, z, w};                                               \
    }
CUDA_EMULATED_VECTOR(float, float, 16)
CUDA_EMULATED_VECTOR(double, double, 16)
CUDA_EMULATED_VECTOR(int, int, 16)
CUDA_EMULATED_VECTOR(unsigned, uint, 16)
CUDA_EMULATED_VECTOR(unsigned char, uchar, 4)
CUDA_EMULATED_VECTOR(long long, longlong, 16)
CUDA_EMULATED_VECTOR(unsigned long long, ulonglong, 16)
#undef CUDA_EMULATED_VECTOR

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
};

extern CUDA_EMULATED_API uint3 threadIdx, blockIdx; /* of the thread that runs */
extern CUDA_EMULATED_API dim3 blockDim, gridDim;
constexpr int warpSize = 32;

CUDA_EMULATED_API void __syncthreads();
CUDA_EMULATED_API int __syncthreads_count(int predicate);
static inline int __syncthreads_or(int predicate) {
    return __syncthreads_count(predicate) != 0;
}
static inline int __syncthreads_and(int predicate) {
    return __syncthreads_count(!predicate) == 0;
}
CUDA_EMULATED_API void __syncwarp(unsigned mask = 0xffffffffu);
CUDA_EMULATED_API unsigned __ballot_sync(unsigned mask, int predicate);
static inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

namespace cuda_emulated {
/* The lanes of a warp lay down their values, and each takes that of lane `from`; -1: its own. */
CUDA_EMULATED_API uint64_t exchange(unsigned mask, uint64_t value, int from);
CUDA_EMULATED_API int lane();

template <class T> T exchange_value(unsigned mask, T value, int from) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, from);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
} // namespace cuda_emulated

/* Lanes outside the segment of `width` give back the own value. */
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    return cuda_emulated::exchange_value(mask, value, (cuda_emulated::lane() & ~(width - 1)) | (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const int lane = cuda_emulated::lane(), from = lane ^ bits;
    return cuda_emulated::exchange_value(mask, value, from < (lane & ~(width - 1)) + width ? from : -1);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int lane = cuda_emulated::lane(), from = lane + static_cast<int>(by);
    return cuda_emulated::exchange_value(mask, value, from < (lane & ~(width - 1)) + width ? from : -1);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int lane = cuda_emulated::lane(), from = lane - static_cast<int>(by);
    return cuda_emulated::exchange_value(mask, value, from >= (lane & ~(width - 1)) ? from : -1);
}

/* One thread runs at a time, so a plain update is atomic. Those of floats are left out: their order is not fixed. */
template <class T> T cuda_emulated_update(T *at, T value) {
    const T old = *at;
    *at = value;
    return old;
}
static inline int atomicAdd(int *at, int by) {
    return cuda_emulated_update(at, *at + by);
}
static inline unsigned atomicAdd(unsigned *at, unsigned by) {
    return cuda_emulated_update(at, *at + by);
}
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long by) {
    return cuda_emulated_update(at, *at + by);
}
template <class T> T atomicMax(T *at, T value) {
    return cuda_emulated_update(at, std::max(*at, value));
}
template <class T> T atomicMin(T *at, T value) {
    return cuda_emulated_update(at, std::min(*at, value));
}
template <class T> T atomicExch(T *at, T value) {
    return cuda_emulated_update(at, value);
}
static inline unsigned atomicOr(unsigned *at, unsigned bits) {
    return cuda_emulated_update(at, *at | bits);
}
static inline unsigned atomicCAS(unsigned *at, unsigned compare, unsigned value) {
    return cuda_emulated_update(at, *at == compare ? value : *at);
}
static inline int atomicCAS(int *at, int compare, int value) {
    return cuda_emulated_update(at, *at == compare ? value : *at);
}

template <class T> T __ldg(const T *at) {
    return *at;
}
template <class T> T __ldcs(const T *at) {
    return *at;
}
template <class T> void __stcs(T *at, T value) {
    *at = value;
}

template <class To, class From> To cuda_emulated_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
static inline int __float_as_int(float value) {
    return cuda_emulated_bits<int>(value);
}
static inline unsigned __float_as_uint(float value) {
    return cuda_emulated_bits<unsigned>(value);
}
static inline float __int_as_float(int value) {
    return cuda_emulated_bits<float>(value);
}
static inline float __uint_as_float(unsigned value) {
    return cuda_emulated_bits<float>(value);
}
static inline long long __double_as_longlong(double value) {
    return cuda_emulated_bits<long long>(value);
}
static inline double __longlong_as_double(long long value) {
    return cuda_emulated_bits<double>(value);
}

/* Rounded to nearest, never contracted. */
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __fsqrt_rn(float a) {
    return std::sqrt(a);
}
static inline float __frcp_rn(float a) {
    return 1.0f / a;
}
static inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
static inline double __dadd_rn(double a, double b) {
    return a + b;
}
static inline double __dmul_rn(double a, double b) {
    return a * b;
}
static inline double __fma_rn(double a, double b, double c) {
    return std::fma(a, b, c);
}
static inline float rsqrtf(float a) {
    return 1.0f / std::sqrt(a);
}
static inline double rsqrt(double a) {
    return 1.0 / std::sqrt(a);
}
static inline float __saturatef(float a) {
    return a > 0 ? (a < 1 ? a : 1) : 0;
}

static inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
static inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
static inline int __clz(int bits) {
    return bits != 0 ? __builtin_clz(static_cast<unsigned>(bits)) : 32;
}
static inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}

/* In CUDA these are there without a std::; of mixed types, as its headers have them. */
#define CUDA_EMULATED_MINMAX(type)           \
    static inline type min(type a, type b) { \
        return a < b ? a : b;                \
    }                                        \
    static inline type max(type a, type b) { \
        return a > b ? a : b;                \
    }
CUDA_EMULATED_MINMAX(int)
CUDA_EMULATED_MINMAX(unsigned)
CUDA_EMULATED_MINMAX(long)
CUDA_EMULATED_MINMAX(unsigned long)
CUDA_EMULATED_MINMAX(long long)
CUDA_EMULATED_MINMAX(unsigned long long)
#undef CUDA_EMULATED_MINMAX
static inline float min(float a, float b) {
    return std::fmin(a, b);
}
static inline float max(float a, float b) {
    return std::fmax(a, b);
}
static inline double min(double a, double b) {
    return std::fmin(a, b);
}
static inline double max(double a, double b) {
    return std::fmax(a, b);
}
#endif
#endif
