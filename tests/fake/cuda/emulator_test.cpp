/* The emulated CUDA compared with what CUDA documents: memory, failures, kernels. */
#include "tests/fake/cuda/emulator_testing.h"

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
    RUN(threads_know_their_place);
    RUN(barriers_add_up);
    RUN(lanes_exchange);
    RUN(lanes_vote);
    RUN(a_barrier_that_not_all_reach_is_told);
    RUN(wrong_launches_are_refused);
    CHECK_INT(cuda_emulated_live(), 0);
})
