/* The emulated CUDA against what CUDA says of itself: closed forms, orders, refusals. */
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

/* ---- memory and copies ---- */

TEST(copies_go_every_way) {
    streams s;
    numbers x(1000), y(1000);
    std::vector<float> pageable(1000, 7.0f), back(1000, 0.0f);
    GOOD(cudaMemcpyAsync(x.on_device, pageable.data(), x.bytes(), cudaMemcpyHostToDevice, s.a));
    GOOD(cudaMemcpyAsync(y.on_device, x.on_device, x.bytes(), cudaMemcpyDeviceToDevice, s.a));
    GOOD(cudaMemcpyAsync(back.data(), y.on_device, x.bytes(), cudaMemcpyDeviceToHost, s.a));
    CHECK(back == pageable); /* to pageable memory: there when the call returns */
    GOOD(cudaHostRegister(back.data(), x.bytes(), cudaHostRegisterPortable));
    CHECK(cudaHostRegister(back.data() + 1, 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
    CHECK(cudaFreeHost(back.data()) == cudaErrorInvalidValue);
    std::fill(back.begin(), back.end(), 0.0f);
    GOOD(cudaMemcpyAsync(back.data(), y.on_device, x.bytes(), cudaMemcpyDeviceToHost, s.a));
    CHECK(back[0] == 0.0f); /* to registered memory: when the work is done */
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(back == pageable);
    GOOD(cudaHostUnregister(back.data()));
    CHECK(cudaHostUnregister(back.data()) == cudaErrorHostMemoryNotRegistered);
    (void)cudaGetLastError();
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

TEST(out_of_memory) {
    void *first = nullptr, *second = nullptr;
    size_t available = 0, total = 0;
    cuda_emulated_set_memory(1 << 20);
    GOOD(cudaMalloc(&first, 1000000));
    GOOD(cudaMemGetInfo(&available, &total));
    CHECK_INT(total, 1 << 20);
    CHECK_INT(available, (1 << 20) - 1000000);
    BAD(cudaMalloc(&second, available + 1), cudaErrorMemoryAllocation);
    CHECK(second == nullptr);
    GOOD(cudaMalloc(&second, available));
    GOOD(cudaFree(first));
    GOOD(cudaFree(second));
    CHECK_INT(cuda_emulated_memory_used(0), 0);
    BAD(cudaFree(first), cudaErrorInvalidValue);
    cuda_emulated_set_memory(size_t{4} << 30);
}

/* ---- what is broken stays broken, and is seen ---- */

TEST(kernels_do_not_get_host_memory) {
    cudaStream_t stream;
    std::vector<float> host(64, 0.0f);
    GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_INT(launch(set_to, dim3(1), dim3(64), stream, host.data(), 64, 1.0f), cudaErrorIllegalAddress);
    CHECK_INT(cudaStreamSynchronize(stream), cudaErrorIllegalAddress); /* for good */
    void *more = nullptr;
    CHECK_INT(cudaMalloc(&more, 4), cudaErrorIllegalAddress);
    CHECK(host[0] == 0);
    cuda_emulated_reset();
    CHECK_INT(cuda_emulated_live(), 0);
}

/* In a child: a fresh CUDA, whose work is done at once. */
struct child_cuda {
    cudaStream_t stream = nullptr;
    float *memory = nullptr;
    explicit child_cuda(size_t count) {
        cuda_emulated_reset();
        cuda_emulated_set_eager(true);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaMalloc(reinterpret_cast<void **>(&memory), count * sizeof *memory);
    }
};

TEST(kernels_end_where_memory_ends) {
    CHECK_INT(signal_of([] {
                  child_cuda c(1024); /* fills its pages */
                  launch(set_to, dim3(16), dim3(64), c.stream, c.memory, 1024, 1.0f);
                  cudaFree(c.memory);
              }),
              0);
    CHECK_INT(signal_of([] {
                  child_cuda c(1024);
                  launch(set_to, dim3(17), dim3(64), c.stream, c.memory, 1025, 1.0f);
              }),
              SIGSEGV);
    CHECK_INT(signal_of([] {
                  child_cuda c(10); /* a few bytes behind the end are seen when the memory is given back */
                  launch(set_to, dim3(1), dim3(64), c.stream, c.memory, 11, 1.0f);
                  cudaFree(c.memory);
              }),
              SIGABRT);
}

TEST(peers_are_reached_when_enabled) {
    streams s;
    numbers x(64);
    int can = 0;
    GOOD(cudaSetDevice(1));
    float *there = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&there), x.bytes()));
    GOOD(cudaSetDevice(0));
    CHECK_INT(signal_of([] {
                  child_cuda c(64);
                  cudaStream_t other;
                  cudaSetDevice(1);
                  cudaStreamCreate(&other);
                  launch(set_to, dim3(1), dim3(64), other, c.memory, 64, 1.0f);
              }),
              SIGSEGV);
    GOOD(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK_INT(can, 1);
    GOOD(cudaDeviceEnablePeerAccess(1, 0));
    BAD(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    GOOD(launch(set_to, dim3(1), dim3(64), s.a, there, 64, 2.0f));
    GOOD(cudaMemcpyPeerAsync(x.on_device, 0, there, 1, x.bytes(), s.a));
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(2));
    GOOD(cudaDeviceDisablePeerAccess(1));
    cuda_emulated_set_peers(false);
    BAD(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
    cuda_emulated_set_peers(true);
    GOOD(cudaFree(there));
}

TEST(work_that_fails_is_told_by_who_waits) {
    streams s;
    numbers x(64);
    cuda_emulated_fail_work_at(2);
    GOOD(x.up(s.a));
    GOOD(launch(add_one, dim3(1), dim3(64), s.a, x.on_device, 64));
    GOOD(x.down(s.a));
    CHECK_INT(cudaStreamSynchronize(s.a), cudaErrorIllegalAddress);
    CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_INT(x.up(s.a), cudaErrorIllegalAddress);
    GOOD(cudaSetDevice(1)); /* the other device lives */
    cudaStream_t other;
    GOOD(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    GOOD(cudaStreamDestroy(other));
    cuda_emulated_reset();
    x.on_device = x.pinned = nullptr;
    s.a = s.b = nullptr;
    s.event = nullptr;
    GOOD(cudaStreamCreate(&s.a));
    GOOD(cudaStreamCreate(&s.b));
    GOOD(cudaEventCreate(&s.event));
}

TEST(calls_fail_when_told) {
    const long before = cuda_emulated_calls();
    void *pointer = nullptr;
    int count = 0;
    GOOD(cudaMalloc(&pointer, 100));
    CHECK_INT(cuda_emulated_calls() - before, 1);
    cuda_emulated_fail_at(2);
    GOOD(cudaGetDevice(&count));
    BAD(cudaFree(pointer), cudaErrorUnknown); /* but it is freed */
    CHECK_INT(cuda_emulated_memory_used(0), 0);
    GOOD(cudaGetDevice(&count));
}

TEST(devices_and_driver) {
    int count = 0, version = 0;
    cudaDeviceProp properties;
    cuda_emulated_set_devices(3);
    GOOD(cudaGetDeviceCount(&count));
    CHECK_INT(count, 3);
    BAD(cudaSetDevice(3), cudaErrorInvalidDevice);
    GOOD(cudaGetDeviceProperties(&properties, 2));
    CHECK_HAS(properties.name, "Emulated");
    CHECK_INT(properties.major, 9);
    cuda_emulated_set_devices(0);
    BAD(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    CHECK_INT(count, 0);
    cuda_emulated_set_devices(2);
    cuda_emulated_set_driver(12040);
    BAD(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    GOOD(cudaDriverGetVersion(&version));
    CHECK_INT(version, 12040);
    cuda_emulated_set_driver(13000);
    CHECK_TEXT(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    CHECK_TEXT(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST(cuda_does_not_pass_through_fork) {
    int count = 0;
    GOOD(cudaGetDeviceCount(&count));
    CHECK_INT(signal_of([] {
                  int again = 0;
                  _exit(cudaGetDeviceCount(&again) == cudaErrorInitializationError ? 5 : 6);
              }),
              -5);
}

/* ---- order ---- */

TEST(work_is_done_when_it_is_waited_for) {
    streams s;
    numbers x(1000);
    const long before = cuda_emulated_work_done();
    x.fill(1);
    GOOD(x.up(s.a));
    GOOD(launch(add_one, blocks_for(1000), dim3(64), s.a, x.on_device, 1000));
    GOOD(x.down(s.a));
    CHECK(x.all_are(1));
    CHECK_INT(cuda_emulated_work_done() - before, 0);
    GOOD(cudaStreamSynchronize(s.b)); /* needs nothing of a */
    CHECK_INT(cuda_emulated_work_done() - before, 0);
    GOOD(cudaStreamSynchronize(s.a));
    CHECK_INT(cuda_emulated_work_done() - before, 3);
    CHECK(x.all_are(2));
}

/* b reads what a writes; with the event it finds it, without it does not: every time. */
TEST(a_missing_dependency_is_seen) {
    for (int waits = 0; waits < 2; waits++) {
        streams s;
        numbers x(100), y(100);
        GOOD(launch(set_to, blocks_for(100), dim3(64), s.a, x.on_device, 100, 9.0f));
        GOOD(cudaEventRecord(s.event, s.a));
        GOOD(launch(set_to, blocks_for(100), dim3(64), s.a, x.on_device, 100, 8.0f)); /* behind the event: not needed */
        if (waits) GOOD(cudaStreamWaitEvent(s.b, s.event));
        GOOD(launch(copy_from, blocks_for(100), dim3(64), s.b, y.on_device, x.on_device, 100));
        GOOD(y.down(s.b));
        GOOD(cudaStreamSynchronize(s.b));
        CHECK(y.all_are(9) == (waits == 1));
    }
}

TEST(eager_work_is_done_at_once) {
    streams s;
    numbers x(100);
    cuda_emulated_set_eager(true);
    x.fill(1);
    GOOD(x.up(s.a));
    GOOD(launch(add_one, blocks_for(100), dim3(64), s.b, x.on_device, 100));
    GOOD(x.down(s.a));
    CHECK(x.all_are(2));
    cuda_emulated_set_eager(false);
}

TEST(queries_get_there) {
    streams s;
    numbers x(100);
    x.fill(1);
    GOOD(cudaEventQuery(s.event)); /* never recorded */
    GOOD(x.up(s.a));
    GOOD(cudaEventRecord(s.event, s.a));
    BAD(cudaEventQuery(s.event), cudaErrorNotReady);
    GOOD(cudaEventQuery(s.event));
    GOOD(x.down(s.a));
    BAD(cudaStreamQuery(s.a), cudaErrorNotReady);
    GOOD(cudaStreamQuery(s.a));
    CHECK(x.all_are(1));
}

TEST(events_tell_time) {
    streams s;
    cudaEvent_t from, to;
    float ms = -1;
    GOOD(cudaEventCreate(&from));
    GOOD(cudaEventCreate(&to));
    GOOD(cudaEventRecord(from, s.a));
    GOOD(cudaLaunchHostFunc(
        s.a, [](void *) { usleep(2000); }, nullptr));
    GOOD(cudaEventRecord(to, s.a));
    BAD(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
    GOOD(cudaEventSynchronize(to));
    GOOD(cudaEventElapsedTime(&ms, from, to));
    CHECK(ms >= 2 && ms < 10000);
    GOOD(cudaEventRecord(s.event, s.a));
    GOOD(cudaEventSynchronize(s.event));
    BAD(cudaEventElapsedTime(&ms, from, s.event), cudaErrorInvalidResourceHandle); /* without timing */
    GOOD(cudaEventDestroy(from));
    GOOD(cudaEventDestroy(to));
}

TEST(events_in_a_graph_tell_the_time_of_each_run) {
    streams s;
    cudaEvent_t from, to;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float ms = -1;
    GOOD(cudaEventCreate(&from));
    GOOD(cudaEventCreate(&to));
    BAD(cudaEventRecordWithFlags(from, s.a, cudaEventRecordExternal), cudaErrorInvalidValue); /* not captured */
    GOOD(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    GOOD(cudaEventRecordWithFlags(from, s.a, cudaEventRecordExternal));
    GOOD(cudaLaunchHostFunc(
        s.a, [](void *) { usleep(2000); }, nullptr));
    GOOD(cudaEventRecordWithFlags(to, s.a, cudaEventRecordExternal));
    GOOD(cudaStreamEndCapture(s.a, &graph));
    GOOD(cudaGraphInstantiate(&exec, graph, 0));
    BAD(cudaEventElapsedTime(&ms, from, to), cudaErrorInvalidResourceHandle); /* not run yet */
    for (int i = 0; i < 2; i++) {
        GOOD(cudaGraphLaunch(exec, s.a));
        GOOD(cudaStreamSynchronize(s.a));
        GOOD(cudaEventElapsedTime(&ms, from, to));
        CHECK(ms >= 2 && ms < 10000);
    }
    GOOD(cudaGraphExecDestroy(exec));
    GOOD(cudaGraphDestroy(graph));
    GOOD(cudaEventDestroy(from));
    GOOD(cudaEventDestroy(to));
}

TEST(the_device_s_own_stream_minds_blocking_ones) {
    cudaStream_t blocking;
    numbers x(100), y(100);
    GOOD(cudaStreamCreate(&blocking));
    GOOD(launch(set_to, blocks_for(100), dim3(64), blocking, x.on_device, 100, 3.0f));
    GOOD(launch(copy_from, blocks_for(100), dim3(64), cudaStream_t{}, y.on_device, x.on_device, 100));
    GOOD(y.down(blocking));
    GOOD(cudaStreamSynchronize(blocking));
    CHECK(y.all_are(3));
    GOOD(cudaStreamDestroy(blocking));
}

TEST(a_destroyed_stream_s_work_is_done) {
    streams s;
    numbers x(100);
    cudaStream_t gone;
    GOOD(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
    GOOD(launch(set_to, blocks_for(100), dim3(64), gone, x.on_device, 100, 6.0f));
    GOOD(cudaEventRecord(s.event, gone));
    GOOD(cudaStreamDestroy(gone));
    BAD(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
    GOOD(cudaStreamWaitEvent(s.a, s.event));
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(x.all_are(6));
}

TEST(streams_belong_to_devices) {
    streams s;
    numbers x(64);
    GOOD(cudaSetDevice(1));
    cudaEvent_t event;
    GOOD(cudaEventCreate(&event));
    CHECK_INT(launch(add_one, dim3(1), dim3(64), s.a, x.on_device, 64), cudaErrorInvalidResourceHandle);
    BAD(cudaEventRecord(event, s.a), cudaErrorInvalidResourceHandle);
    GOOD(cudaEventDestroy(event));
    GOOD(cudaSetDevice(0));
}

TEST(steps_are_called_until_done) {
    streams s;
    numbers x(10);
    int left = 3;
    x.fill(2);
    GOOD(cuda_emulated::enqueue_steps(s.a, [&] { return --left == 0; }));
    GOOD(x.up(s.a));
    GOOD(cuda_emulated::enqueue(s.a, [&] { x.on_device[0] = 5; }));
    GOOD(x.down(s.a));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK_INT(left, 0);
    CHECK(x.pinned[0] == 5 && x.pinned[1] == 2);
}

/* Two streams, each of a thread of its own, that come to a meeting. */
TEST(steps_of_two_threads_meet) {
    std::atomic<int> come{0};
    auto one = [&](int device) {
        cudaStream_t stream;
        GOOD(cudaSetDevice(device));
        GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 1; i <= 20; i++) {
            bool here = false;
            GOOD(cuda_emulated::enqueue_steps(stream, [&come, here, i]() mutable {
                if (!here) come++;
                here = true;
                return come >= 2 * i;
            }));
            GOOD(cudaStreamSynchronize(stream));
        }
        GOOD(cudaStreamDestroy(stream));
    };
    std::thread other(one, 1);
    one(0);
    other.join();
    CHECK_INT(come, 40);
    GOOD(cudaSetDevice(0));
}

/* The same by one thread: whoever waits for one of them works on both. */
TEST(steps_of_two_streams_meet) {
    streams s;
    std::atomic<int> come{0};
    for (cudaStream_t stream : {s.a, s.b}) {
        bool here = false;
        GOOD(cuda_emulated::enqueue_steps(stream, [&come, here]() mutable {
            if (!here) come++;
            here = true;
            return come == 2;
        }));
    }
    GOOD(cudaStreamSynchronize(s.a));
    CHECK_INT(come, 2);
}

TEST(threads_work_side_by_side) {
    auto one = [](int device, float *result) {
        GOOD(cudaSetDevice(device));
        streams s;
        numbers x(500);
        x.fill(0);
        GOOD(x.up(s.a));
        for (int i = 0; i < 50; i++) {
            GOOD(launch(add_one, blocks_for(500), dim3(64), s.a, x.on_device, 500));
            if (i % 10 == 0) GOOD(cudaStreamSynchronize(s.a));
        }
        GOOD(x.down(s.a));
        GOOD(cudaStreamSynchronize(s.a));
        *result = x.all_are(50) ? 1.0f : 0.0f;
    };
    float results[4];
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(one, i % 2, &results[i]);
    for (std::thread &thread : threads) thread.join();
    for (float result : results) CHECK(result == 1);
}

/* ---- kernels ---- */

template <class Value> static std::vector<Value> bring(const Value *from, size_t count) {
    std::vector<Value> to(count);
    GOOD(cudaMemcpy(to.data(), from, count * sizeof(Value), cudaMemcpyDeviceToHost));
    return to;
}

TEST(threads_know_their_place) {
    streams s;
    unsigned *out = nullptr;
    const unsigned blocks = 3 * 2 * 2, threads = 4 * 3 * 2;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&out), blocks * threads * sizeof *out));
    for (int twice = 0; twice < 2; twice++) { /* forwards and backwards */
        GOOD(launch(number, dim3(3, 2, 2), dim3(4, 3, 2), s.a, out));
        GOOD(cudaStreamSynchronize(s.a));
        const auto got = bring(out, blocks * threads);
        bool right = true;
        for (unsigned i = 0; i < blocks * threads; i++) right = right && got[i] == i / threads * 10000 + i % threads;
        CHECK(right);
        GOOD(cudaMemset(out, 0xff, blocks * threads * sizeof *out));
    }
    GOOD(cudaFree(out));
}

TEST(barriers_add_up) {
    streams s;
    long long *out = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&out), 10 * sizeof *out));
    for (int twice = 0; twice < 2; twice++) {
        GOOD(launch(sum_shared<256>, dim3(10), dim3(256), s.a, out));
        GOOD(cudaStreamSynchronize(s.a));
        const auto got = bring(out, 10);
        for (int block = 0; block < 10; block++) {
            const long long first = block * 256LL + 1, last = first + 255;
            CHECK_INT(got[block], (first + last) * 128);
        }
    }
    GOOD(launch(sum_without_barrier, dim3(1), dim3(64), s.a, out));
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(bring(out, 1)[0] != 64 * 65 / 2);
    GOOD(cudaFree(out));
}

TEST(lanes_exchange) {
    streams s;
    const unsigned threads = 96;
    double *out = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&out), 5 * threads * sizeof *out));
    GOOD(launch(shuffles, dim3(1), dim3(threads), s.a, out));
    GOOD(cudaStreamSynchronize(s.a));
    const auto got = bring(out, 5 * threads);
    for (unsigned i = 0; i < threads; i++) {
        const unsigned warp = i / 32, lane = i % 32;
        const double *own = got.data() + 5 * i;
        CHECK(own[0] == warp * 32 * 32 + 496);
        CHECK(own[1] == (lane == 0 ? 496 : 0));
        CHECK(own[2] == warp * 32 + 3);
        CHECK(own[3] == (lane == 0 ? i : i - 1));
        CHECK(own[4] == i / 8 * 8 + 5);
    }
    GOOD(cudaFree(out));
}

TEST(lanes_vote) {
    streams s;
    unsigned *out = nullptr;
    GOOD(cudaMalloc(reinterpret_cast<void **>(&out), 8 * sizeof *out));
    GOOD(launch(votes, dim3(1), dim3(64), s.a, out));
    GOOD(cudaStreamSynchronize(s.a));
    const auto got = bring(out, 8);
    for (unsigned warp = 0; warp < 2; warp++) {
        unsigned bits = 0;
        for (unsigned lane = 0; lane < 32; lane++) bits |= ((warp * 32 + lane) % 3 == 0 ? 1u : 0u) << lane;
        CHECK_INT(got[4 * warp], bits);
        CHECK_INT(got[4 * warp + 1], 13);
        CHECK_INT(got[4 * warp + 2], warp == 1);
        CHECK_INT(got[4 * warp + 3], warp == 0);
    }
    GOOD(cudaFree(out));
}

TEST(a_barrier_that_not_all_reach_is_told) {
    CHECK_INT(signal_of([] {
                  child_cuda c(1);
                  launch(half_waits, dim3(1), dim3(32), c.stream);
              }),
              SIGABRT);
}

TEST(wrong_launches_are_refused) {
    streams s;
    numbers x(10);
    CHECK_INT(launch(add_one, dim3(1), dim3(1025), s.a, x.on_device, 10), cudaErrorInvalidConfiguration);
    CHECK_INT(launch(add_one, dim3(0), dim3(32), s.a, x.on_device, 10), cudaErrorInvalidConfiguration);
    CHECK_INT(launch(add_one, dim3(1, 65536), dim3(32), s.a, x.on_device, 10), cudaErrorInvalidConfiguration);
}

/* ---- capture ---- */

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    GOOD(cudaGraphInstantiate(&exec, graph, 0));
    GOOD(cudaGraphDestroy(graph));
    return exec;
}

TEST(a_graph_is_run_again_with_other_values) {
    streams s;
    numbers x(100), y(100);
    cudaGraph_t graph = nullptr;
    cudaStreamCaptureStatus status;
    size_t nodes = 0;
    GOOD(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    GOOD(x.up(s.a));
    GOOD(cudaEventRecord(s.event, s.a));
    GOOD(cudaStreamWaitEvent(s.b, s.event)); /* b joins */
    GOOD(launch(add_one, blocks_for(100), dim3(64), s.b, x.on_device, 100));
    GOOD(cudaStreamIsCapturing(s.b, &status));
    CHECK_INT(status, cudaStreamCaptureStatusActive);
    GOOD(cudaEventRecord(s.event, s.b));
    GOOD(cudaStreamWaitEvent(s.a, s.event));
    GOOD(launch(copy_from, blocks_for(100), dim3(64), s.a, y.on_device, x.on_device, 100));
    GOOD(y.down(s.a));
    GOOD(cudaStreamEndCapture(s.a, &graph));
    GOOD(cudaStreamIsCapturing(s.b, &status));
    CHECK_INT(status, cudaStreamCaptureStatusNone);
    GOOD(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK_INT(nodes, 4);
    const cudaGraphExec_t exec = instantiate(graph);
    GOOD(cudaGraphUpload(exec, s.a));
    y.fill(0);
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(y.all_are(0)); /* nothing was done yet */
    for (int i = 1; i < 4; i++) {
        x.fill(static_cast<float>(i));
        GOOD(cudaGraphLaunch(exec, s.a));
        GOOD(cudaStreamSynchronize(s.a));
        CHECK(y.all_are(static_cast<float>(i + 1)));
    }
    GOOD(cudaGraphLaunch(exec, s.a));
    GOOD(cudaGraphExecDestroy(exec)); /* while it is queued */
    y.fill(0);
    GOOD(cudaStreamSynchronize(s.a));
    CHECK(y.all_are(4));
}

/* Two branches that do not depend on each other write the same place: which is last changes from launch to launch. */
TEST(a_missing_dependency_in_a_graph_is_seen) {
    streams s;
    numbers x(10);
    cudaGraph_t graph = nullptr;
    GOOD(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal));
    GOOD(cudaEventRecord(s.event, s.a));
    GOOD(cudaStreamWaitEvent(s.b, s.event));
    GOOD(launch(set_to, dim3(1), dim3(32), s.a, x.on_device, 10, 1.0f));
    GOOD(launch(set_to, dim3(1), dim3(32), s.b, x.on_device, 10, 2.0f));
    GOOD(cudaEventRecord(s.event, s.b));
    GOOD(cudaStreamWaitEvent(s.a, s.event));
    GOOD(x.down(s.a));
    GOOD(cudaStreamEndCapture(s.a, &graph));
    const cudaGraphExec_t exec = instantiate(graph);
    float seen[2];
    for (float &one : seen) {
        GOOD(cudaGraphLaunch(exec, s.a));
        GOOD(cudaStreamSynchronize(s.a));
        one = x.pinned[0];
    }
    CHECK(seen[0] + seen[1] == 3 && seen[0] != seen[1]);
    GOOD(cudaGraphExecDestroy(exec));
}

/* Each of these ends a capture, which then has no graph. */
template <class Body>
static void ends_capture(cudaStreamCaptureMode mode, cudaError_t error, cudaError_t at_end, Body body) {
    streams s;
    cudaGraph_t graph = nullptr;
    numbers x(10);
    GOOD(cudaStreamBeginCapture(s.a, mode));
    GOOD(launch(add_one, dim3(1), dim3(32), s.a, x.on_device, 10));
    CHECK_INT(body(s, x), error);
    cudaGetLastError();
    CHECK_INT(cudaStreamEndCapture(s.a, &graph), at_end);
    CHECK((graph == nullptr) == (at_end != cudaSuccess));
    if (graph != nullptr) GOOD(cudaGraphDestroy(graph));
    cudaGetLastError();
    GOOD(x.up(s.a)); /* the stream is as before */
    GOOD(cudaStreamSynchronize(s.a));
}

TEST(captures_are_invalidated) {
    const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported, invalidated = cudaErrorStreamCaptureInvalidated;
    const auto global = cudaStreamCaptureModeGlobal, local = cudaStreamCaptureModeThreadLocal;
    std::vector<float> pageable(10);
    void *memory = nullptr;
    ends_capture(global, unsupported, invalidated, [](streams &s, numbers &) { return cudaStreamSynchronize(s.a); });
    ends_capture(global, unsupported, invalidated, [](streams &s, numbers &) { return cudaStreamQuery(s.a); });
    ends_capture(local, unsupported, invalidated, [](streams &, numbers &) { return cudaDeviceSynchronize(); });
    ends_capture(local, unsupported, invalidated, [&](streams &, numbers &) { return cudaMalloc(&memory, 8); });
    ends_capture(local, unsupported, invalidated, [&](streams &, numbers &) { return cudaMallocHost(&memory, 8); });
    ends_capture(local, unsupported, invalidated, [](streams &s, numbers &) { return cudaEventQuery(s.event); });
    ends_capture(local, unsupported, invalidated, [&](streams &s, numbers &x) {
        return cudaMemcpyAsync(x.on_device, pageable.data(), 40, cudaMemcpyDefault, s.a);
    });
    ends_capture(local, cudaErrorCapturedEvent, invalidated, [](streams &s, numbers &) {
        GOOD(cudaEventRecord(s.event, s.a));
        return cudaEventSynchronize(s.event);
    });
    ends_capture(local, cudaErrorStreamCaptureIsolation, invalidated, [](streams &s, numbers &) {
        GOOD(cudaEventRecord(s.event, s.b)); /* not captured */
        return cudaStreamWaitEvent(s.a, s.event);
    });
    ends_capture(local, cudaSuccess, cudaErrorStreamCaptureUnjoined, [](streams &s, numbers &x) {
        GOOD(cudaEventRecord(s.event, s.a));
        GOOD(cudaStreamWaitEvent(s.b, s.event));
        return launch(add_one, dim3(1), dim3(32), s.b, x.on_device, 10);
    });
    ends_capture(cudaStreamCaptureModeRelaxed, cudaSuccess, cudaSuccess, [&](streams &, numbers &) {
        const cudaError_t error = cudaMalloc(&memory, 8);
        return error == cudaSuccess ? cudaFree(memory) : error;
    });
    ends_capture(local, cudaSuccess, cudaSuccess, [&](streams &, numbers &) {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        GOOD(cudaThreadExchangeStreamCaptureMode(&mode));
        GOOD(cudaMalloc(&memory, 8));
        GOOD(cudaFree(memory));
        return cudaThreadExchangeStreamCaptureMode(&mode);
    });
}

TEST(captures_mind_other_threads_by_mode) {
    for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
        streams s;
        cudaGraph_t graph = nullptr;
        const bool minds = mode == cudaStreamCaptureModeGlobal;
        GOOD(cudaStreamBeginCapture(s.a, mode));
        std::thread([&] {
            void *memory = nullptr;
            CHECK_INT(cudaMalloc(&memory, 8), minds ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
            if (memory != nullptr) GOOD(cudaFree(memory));
            cudaGraph_t mine = nullptr;
            CHECK_INT(cudaStreamEndCapture(s.a, &mine), cudaErrorStreamCaptureWrongThread);
        }).join();
        CHECK_INT(cudaStreamEndCapture(s.a, &graph), minds ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
        cudaGetLastError();
        if (graph != nullptr) GOOD(cudaGraphDestroy(graph));
    }
}

TEST_MAIN({
    cuda_emulated_set_devices(2);
    RUN(copies_go_every_way);
    RUN(wrong_copies_are_refused);
    RUN(copies_between_devices);
    RUN(pageable_memory_is_read_at_once_and_pinned_late);
    RUN(fresh_memory_is_nan);
    RUN(the_host_cannot_touch_device_memory);
    RUN(out_of_memory);
    RUN(kernels_do_not_get_host_memory);
    RUN(kernels_end_where_memory_ends);
    RUN(peers_are_reached_when_enabled);
    RUN(work_that_fails_is_told_by_who_waits);
    RUN(calls_fail_when_told);
    RUN(devices_and_driver);
    RUN(cuda_does_not_pass_through_fork);
    RUN(work_is_done_when_it_is_waited_for);
    RUN(a_missing_dependency_is_seen);
    RUN(eager_work_is_done_at_once);
    RUN(queries_get_there);
    RUN(events_tell_time);
    RUN(events_in_a_graph_tell_the_time_of_each_run);
    RUN(the_device_s_own_stream_minds_blocking_ones);
    RUN(a_destroyed_stream_s_work_is_done);
    RUN(streams_belong_to_devices);
    RUN(steps_are_called_until_done);
    RUN(steps_of_two_threads_meet);
    RUN(steps_of_two_streams_meet);
    RUN(threads_work_side_by_side);
    RUN(threads_know_their_place);
    RUN(barriers_add_up);
    RUN(lanes_exchange);
    RUN(lanes_vote);
    RUN(a_barrier_that_not_all_reach_is_told);
    RUN(wrong_launches_are_refused);
    RUN(a_graph_is_run_again_with_other_values);
    RUN(a_missing_dependency_in_a_graph_is_seen);
    RUN(captures_are_invalidated);
    RUN(captures_mind_other_threads_by_mode);
    CHECK_INT(cuda_emulated_live(), 0);
})
