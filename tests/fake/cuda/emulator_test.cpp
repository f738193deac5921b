/* The emulated CUDA against what CUDA says of itself: closed forms, orders, refusals. */
#include "tests/support/tdm_test.h"

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

static __global__ void add_one(float *x, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] += 1.0f;
}

static __global__ void set_to(float *x, int count, float value) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] = value;
}

static __global__ void copy_from(float *to, const float *from, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) to[i] = from[i];
}

static __global__ void number(unsigned *out) {
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
static __global__ void sum_without_barrier(long long *out) {
    __shared__ long long part[64];
    part[threadIdx.x] = 0;
    __syncthreads();
    part[threadIdx.x] = threadIdx.x + 1;
    if (threadIdx.x == 31) {
        out[0] = 0;
        for (int i = 0; i < 64; i++) out[0] += part[i];
    }
}

static __global__ void shuffles(double *out) {
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

static __global__ void votes(unsigned *out) {
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

static __global__ void half_waits() {
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

static dim3 blocks_for(int count) {
    return dim3(static_cast<unsigned>(count + 63) / 64);
}

template <class... Arguments> static cudaError_t launch(Arguments... arguments) {
    cuda_emulated::launch(arguments...);
    return cudaGetLastError();
}

/* The signal that ends a child which does `what`; 0: it ended by itself. */
template <class Body> static int signal_of(Body body) {
    std::fflush(nullptr);
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

/* ---- memory and copies ---- */

TEST(copies_go_every_way) {
    streams s;
    numbers x(1000), y(1000);
    std::vector<float> pageable(1000, 7.0f), back(1000, 0.0f);
    GOOD(cudaMemcpyAsync(x.on_device, pageable.data(), x.bytes(), cudaMemcpyHostToDevice, s.a));
    GOOD(cudaMemcpyAsync(y.on_device, x.on_device, x.bytes(), cudaMemcpyDeviceToDevice, s.a));
    GOOD(cudaMemcpyAsync(back.data(), y.on_device, x.bytes(), cudaMemcpyDeviceToHost, s.a));
    CHECK(back == pageable); /* to pageable memory: there when the call returns */
    x.fill(3);
    GOOD(x.up(s.a));
    GOOD(cudaMemcpyAsync(y.pinned, x.on_device, x.bytes(), cudaMemcpyDefault, s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(y.all_are(3));
    GOOD(cudaMemcpyAsync(x.pinned, back.data(), x.bytes(), cudaMemcpyDefault, s.a));
    GOOD(cudaMemsetAsync(y.on_device + 500, 0, 2000, s.a));
    GOOD(y.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(7));
    CHECK(y.pinned[499] == 7 && y.pinned[500] == 0 && y.pinned[999] == 0);
}

TEST(wrong_copies_are_refused) {
    numbers x(10);
    std::vector<float> host(20);
    BAD(cudaMemcpyAsync(x.on_device, host.data(), 44, cudaMemcpyDefault), cudaErrorInvalidValue);
    BAD(cudaMemcpyAsync(x.on_device + 5, host.data(), 24, cudaMemcpyDefault), cudaErrorInvalidValue);
    BAD(cudaMemcpyAsync(host.data(), x.on_device, 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    BAD(cudaMemcpyAsync(nullptr, x.on_device, 40, cudaMemcpyDefault), cudaErrorInvalidValue);
    BAD(cudaMemsetAsync(host.data(), 0, 4), cudaErrorInvalidValue);
    GOOD(cudaMemcpyAsync(nullptr, nullptr, 0, cudaMemcpyDefault));
}

TEST(copies_between_devices) {
    streams s;
    numbers x(100);
    GOOD(cudaSetDevice(1));
    float *there = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&there), x.bytes()));
    GOOD(cudaSetDevice(0));
    x.fill(5);
    GOOD(x.up(s.a));
    GOOD(cudaMemcpyPeerAsync(there, 1, x.on_device, 0, x.bytes(), s.a));
    GOOD(cudaMemsetAsync(x.on_device, 0, x.bytes(), s.a));
    GOOD(cudaMemcpyPeerAsync(x.on_device, 0, there, 1, x.bytes(), s.a));
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(5));
    BAD(cudaMemcpyPeerAsync(there, 0, x.on_device, 0, x.bytes(), s.a), cudaErrorInvalidValue);
    cudaPointerAttributes about;
    GOOD(cudaPointerGetAttributes(&about, there + 3));
    CHECK(about.type == cudaMemoryTypeDevice && about.device == 1);
    GOOD(cudaPointerGetAttributes(&about, x.pinned));
    CHECK_INT(about.type, cudaMemoryTypeHost);
    GOOD(cudaPointerGetAttributes(&about, &s));
    CHECK_INT(about.type, cudaMemoryTypeUnregistered);
    GOOD(cudaFree(there));
}

TEST(pageable_memory_is_read_at_once_and_pinned_late) {
    streams s;
    numbers x(100);
    std::vector<float> pageable(100, 1.0f);
    GOOD(cudaMemcpyAsync(x.on_device, pageable.data(), x.bytes(), cudaMemcpyDefault, s.a));
    pageable.assign(100, 2.0f);
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(1));
    x.fill(3);
    GOOD(x.up(s.a));
    x.fill(4); /* too early */
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(4));
}

TEST(fresh_memory_is_nan) {
    streams s;
    numbers x(1000);
    x.fill(0);
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    for (int i = 0; i < x.count; i++) CHECK(x.pinned[i] != x.pinned[i]);
}

TEST(the_host_cannot_touch_device_memory) {
    numbers x(10);
    volatile float *at = x.on_device;
    CHECK_INT(signal_of([&] { *at = 1; }), SIGSEGV);
    CHECK_INT(signal_of([&] { (void)*at; }), SIGSEGV);
    CHECK_INT(signal_of([&] { x.pinned[0] = 1; }), 0);
    float *freed = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&freed), 40));
    GOOD(cudaFree(freed));
    at = freed;
    CHECK_INT(signal_of([&] { (void)*at; }), SIGSEGV);
}

TEST(kernels_cannot_touch_what_is_not_theirs) {
    streams s;
    numbers x(64);
    /* far behind the end; and a little behind it, seen when the memory is freed */
    CHECK_INT(signal_of([&] {
                  cuda_emulated_set_eager(true);
                  add_one(x.on_device, 0);
                  open("/dev/null", 0);
              }),
              0);
    float *little = nullptr;
    std::vector<float> host(64, 0.0f);
    GOOD(cudaMalloc(reinterpret_cast<void **>(&little), 40));
    BAD(launch(set_to, dim3(1), dim3(64), s.a, host.data(), 10, 1.0f), cudaErrorIllegalAddress);
    CHECK_INT(cudaStreamSynchronize(s.a), cudaErrorIllegalAddress); /* for good */
    cuda_emulated_reset();
    x.on_device = nullptr;
    x.pinned = nullptr;
    s.a = s.b = nullptr;
    s.event = nullptr;
}

int tdm_test_failures;
int main(int argc, char **argv) {
    cuda_emulated_set_devices(2);
    RUN(copies_go_every_way);
    RUN(wrong_copies_are_refused);
    RUN(copies_between_devices);
    RUN(pageable_memory_is_read_at_once_and_pinned_late);
    RUN(fresh_memory_is_nan);
    RUN(the_host_cannot_touch_device_memory);
    return tdm_test_failures != 0;
}
