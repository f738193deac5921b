/* The emulated CUDA compared with what CUDA documents: streams, events, capture. */
#include "tests/fake/cuda/emulator_testing.h"

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
    RUN(a_graph_is_run_again_with_other_values);
    RUN(a_missing_dependency_in_a_graph_is_seen);
    RUN(captures_are_invalidated);
    RUN(captures_mind_other_threads_by_mode);
    CHECK_INT(cuda_emulated_live(), 0);
})
