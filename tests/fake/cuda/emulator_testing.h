/* Kernels and helpers of the emulated CUDA's tests. */
#ifndef TDM_TEST_EMULATOR_TESTING_H
#define TDM_TEST_EMULATOR_TESTING_H

#include "tests/support/tdm_test.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <cuda_emulated.h>

#define GOOD(call) CHECK_INT(call, cudaSuccess)
#define BAD(call, error)                      \
    do {                                      \
        CHECK_INT(call, error);               \
        CHECK_INT(cudaGetLastError(), error); \
    } while (0)

/* ---- kernels ---- */

inline __global__ void add_one(float *x, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] += 1.0f;
}

inline __global__ void set_to(float *x, int count, float value) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] = value;
}

inline __global__ void copy_from(float *to, const float *from, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) to[i] = from[i];
}

inline __global__ void number(unsigned *out) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 10000 + thread;
}

/* The sum of 1..n by halving, over shared memory. */
template <int threads> __global__ void sum_shared(long long *out) {
    __shared__ long long part[threads];
    part[threadIdx.x] = static_cast<long long>(blockIdx.x) * threads + threadIdx.x + 1;
    __syncthreads();
    for (unsigned half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

/* The same without waiting: wrong, and seen to be. */
inline __global__ void sum_without_barrier(long long *out) {
    __shared__ long long part[64];
    part[threadIdx.x] = 0;
    __syncthreads();
    part[threadIdx.x] = threadIdx.x + 1;
    if (threadIdx.x == 31) {
        out[0] = 0;
        for (int i = 0; i < 64; i++) out[0] += part[i];
    }
}

inline __global__ void shuffles(double *out) {
    const unsigned lane = threadIdx.x % 32;
    double sum = threadIdx.x;
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bits);
    float down = static_cast<float>(lane);
    for (unsigned by = 16; by > 0; by /= 2) down += __shfl_down_sync(0xffffffffu, down, by);
    const int third = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x), 3);
    const long long before = __shfl_up_sync(0xffffffffu, static_cast<long long>(threadIdx.x), 1);
    const unsigned in_eight = __shfl_sync(0xffffffffu, threadIdx.x, 5, 8);
    double *own = out + 5 * threadIdx.x;
    own[0] = sum;
    own[1] = lane == 0 ? static_cast<double>(down) : 0;
    own[2] = third;
    own[3] = static_cast<double>(before);
    own[4] = in_eight;
}

inline __global__ void votes(unsigned *out) {
    const unsigned bits = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);
    const int count = __syncthreads_count(threadIdx.x % 5 == 0);
    const int any = __any_sync(0xffffffffu, threadIdx.x == 40), all = __all_sync(0xffffffffu, threadIdx.x < 32);
    if (threadIdx.x % 32 != 0) return;
    unsigned *own = out + threadIdx.x / 32 * 4;
    own[0] = bits;
    own[1] = static_cast<unsigned>(count);
    own[2] = static_cast<unsigned>(any);
    own[3] = static_cast<unsigned>(all);
}

inline __global__ void half_waits() {
    if (threadIdx.x < 16) __syncthreads();
}

/* ---- helpers ---- */

struct numbers { /* of a device, and pinned */
    float *on_device = nullptr, *pinned = nullptr;
    int count;
    explicit numbers(int how_many) : count(how_many) {
        GOOD(cudaMalloc(reinterpret_cast<void **>(&on_device), bytes()));
        GOOD(cudaMallocHost(reinterpret_cast<void **>(&pinned), bytes()));
    }
    ~numbers() {
        GOOD(cudaFree(on_device));
        GOOD(cudaFreeHost(pinned));
    }
    numbers(const numbers &) = delete;
    numbers &operator=(const numbers &) = delete;
    size_t bytes() const {
        return static_cast<size_t>(count) * sizeof(float);
    }
    void fill(float value) {
        for (int i = 0; i < count; i++) pinned[i] = value;
    }
    bool all_are(float value) const {
        for (int i = 0; i < count; i++) {
            if (!(pinned[i] == value)) return false;
        }
        return true;
    }
    cudaError_t up(cudaStream_t stream) {
        return cudaMemcpyAsync(on_device, pinned, bytes(), cudaMemcpyDefault, stream);
    }
    cudaError_t down(cudaStream_t stream) {
        return cudaMemcpyAsync(pinned, on_device, bytes(), cudaMemcpyDefault, stream);
    }
};

struct streams {
    cudaStream_t a = nullptr, b = nullptr;
    cudaEvent_t event = nullptr;
    streams() {
        GOOD(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        GOOD(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
        GOOD(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    ~streams() {
        GOOD(cudaEventDestroy(event));
        GOOD(cudaStreamDestroy(a));
        GOOD(cudaStreamDestroy(b));
    }
    streams(const streams &) = delete;
    streams &operator=(const streams &) = delete;
};

inline dim3 blocks_for(int count) {
    return dim3(static_cast<unsigned>(count + 63) / 64);
}

template <class... Arguments> cudaError_t launch(Arguments... arguments) {
    cuda_emulated::launch(arguments...);
    return cudaGetLastError();
}

/* The signal that ends a child which does `what`; 0: it ended by itself. */
template <class Body> int signal_of(Body body) {
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        std::signal(SIGABRT, SIG_DFL);
        close(2);
        body();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

#endif
