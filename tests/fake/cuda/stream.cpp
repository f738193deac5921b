/* Streams and events: work is queued here, and done when something waits for it. */
#include "emulator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace emulator {

static double now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

/* ---- doing ---- */

/* Without the lock, because others may be waiting for locks of the library's; memory stays open meanwhile. */
static bool do_step(const work &w) {
    state &s = all();
    open_for(w);
    s.steps_running++;
    s.lock.unlock();
    const bool done = w.run();
    s.lock.lock();
    s.steps_running--;
    return done;
}

/* true: done, or failed for good. */
static bool do_work(const work &w) {
    state &s = all();
    device &d = s.devices[w.device];
    if (d.error != cudaSuccess) return true; /* nothing is done any more */
    if (w.steps) return do_step(w);
    open_for(w);
    w.run();
    s.work_done++;
    s.kernels += w.kernel;
    if (s.fail_work_at > 0 && --s.fail_work_at == 0) d.error = cudaErrorIllegalAddress;
    return true;
}

/* One step towards the end of the stream's first item: that item, or one that it waits for. false: nothing can be done
 * now, because a step asks to be called again. */
static bool advance(CUstream_st *stream) {
    for (;;) {
        if (stream->busy) return false;           /* in another thread */
        const item first = stream->queue.front(); /* a copy: work may outlive its place in the queue */
        if (first.wait == nullptr) {
            stream->busy = true;
            const bool done = first.what == nullptr || do_work(*first.what);
            stream->busy = false;
            if (!done) return false;
            if (first.mark != nullptr) {
                first.mark->done = true;
                first.mark->ms = now_ms();
                first.mark->stream.reset();
            }
            stream->queue.pop_front();
            return true;
        }
        if (first.wait->done) {
            stream->queue.pop_front();
            return true;
        }
        stream = first.wait->stream.get();
    }
}

static bool reached(const CUstream_st *stream, const place *until) {
    return stream->queue.empty() || (until != nullptr && until->done);
}

void drain(CUstream_st *stream, const place *until) {
    while (!reached(stream, until) && advance(stream)) {
    }
    close_memory();
}

/* Work done in steps may wait for other streams of this process: those that are at such work are asked, too. */
static void ask_others() {
    std::vector<std::shared_ptr<CUstream_st>> streams = all().orphans;
    for (auto &entry : all().streams) streams.push_back(entry.second);
    for (auto &stream : streams) {
        const bool steps = std::any_of(stream->queue.begin(), stream->queue.end(),
                                       [](const item &i) { return i.what != nullptr && i.what->steps; });
        while (steps && !stream->queue.empty() && advance(stream.get())) {
        }
    }
    close_memory();
}

/* Memory stays open from nap to nap: closing it takes longer than a step. */
static void finish(const std::shared_ptr<CUstream_st> &stream, const place *until) {
    state &s = all();
    s.waiting++;
    for (;;) {
        drain(stream.get(), until);
        if (!reached(stream.get(), until)) ask_others();
        if (reached(stream.get(), until)) break;
        s.lock.unlock(); /* another thread's turn */
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        s.lock.lock();
    }
    s.waiting--;
    close_memory();
}

void finish_place(const std::shared_ptr<place> &until) {
    if (!until->done) finish(std::shared_ptr<CUstream_st>(until->stream), until.get());
}

static std::shared_ptr<CUstream_st> share(CUstream_st *stream) {
    if (stream->legacy) return all().devices[stream->device].legacy;
    return all().streams[stream];
}

void finish_stream(CUstream_st *stream) {
    finish(share(stream), nullptr);
}

static void sweep_orphans() {
    auto &orphans = all().orphans;
    orphans.erase(std::remove_if(orphans.begin(), orphans.end(),
                                 [](const std::shared_ptr<CUstream_st> &o) { return o->queue.empty(); }),
                  orphans.end());
}

void finish_device(int index) {
    state &s = all();
    std::vector<std::shared_ptr<CUstream_st>> streams = s.orphans;
    for (auto &entry : s.streams) streams.push_back(entry.second);
    if (s.devices[index].legacy != nullptr) streams.push_back(s.devices[index].legacy);
    for (auto &stream : streams) {
        if (stream->device == index) finish(stream, nullptr);
    }
    sweep_orphans();
}

/* ---- queueing ---- */

static std::shared_ptr<place> mark_end(CUstream_st *stream) {
    auto at = std::make_shared<place>();
    at->stream = share(stream);
    stream->queue.push_back({nullptr, nullptr, at});
    return at;
}

/* The device's own stream comes after all that was put on blocking streams before, and the other way round. */
static void mind_legacy(CUstream_st *stream) {
    if (stream->legacy) {
        for (auto &entry : all().streams) {
            CUstream_st *other = entry.first;
            if (other->device != stream->device || !other->blocking || other->queue.empty()) continue;
            stream->queue.push_back({nullptr, mark_end(other), nullptr});
        }
    } else if (stream->blocking) {
        CUstream_st *legacy = all().devices[stream->device].legacy.get();
        if (legacy == nullptr || legacy->queue.empty()) return;
        stream->queue.push_back({nullptr, mark_end(legacy), nullptr});
    }
}

static CUstream_st *legacy_stream(int index) {
    std::shared_ptr<CUstream_st> &legacy = all().devices[index].legacy;
    if (legacy == nullptr) {
        legacy = std::make_shared<CUstream_st>();
        legacy->device = index;
        legacy->blocking = legacy->legacy = true;
    }
    return legacy.get();
}

cudaError_t find_stream(cudaStream_t handle, CUstream_st **out) {
    if (handle == nullptr || handle == cudaStreamLegacy) {
        *out = legacy_stream(current_device());
        return cudaSuccess;
    }
    const auto at = all().streams.find(handle);
    if (at == all().streams.end()) return cudaErrorInvalidResourceHandle;
    *out = at->second.get();
    return cudaSuccess;
}

/* Work on the device's own stream would have to wait for captured work of a stream that minds it. */
static cudaError_t refuse_implicit(const CUstream_st *stream) {
    if (!stream->legacy) return cudaSuccess;
    for (auto &capture : all().captures) {
        for (const CUstream_st *one : capture->streams) {
            if (one->blocking && one->device == stream->device) {
                invalidate(capture);
                return cudaErrorStreamCaptureImplicit;
            }
        }
    }
    return cudaSuccess;
}

cudaError_t put(CUstream_st *stream, work what) {
    const cudaError_t error = refuse_implicit(stream);
    if (error != cudaSuccess) return error;
    if (all().devices[stream->device].error != cudaSuccess) return all().devices[stream->device].error;
    if (stream->capture != nullptr) {
        if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
        capture_work(stream, std::move(what));
        return cudaSuccess;
    }
    mind_legacy(stream);
    stream->queue.push_back({std::make_shared<const work>(std::move(what)), nullptr, nullptr});
    if (all().eager) drain(stream, nullptr);
    return cudaSuccess;
}

void forget_streams() {
    state &s = all();
    for (auto &entry : s.streams) entry.second->queue.clear();
    for (auto &orphan : s.orphans) orphan->queue.clear();
    for (device &d : s.devices) d.legacy.reset();
    s.orphans.clear();
    s.streams.clear();
    for (cudaEvent_t event : s.events) delete event;
    s.events.clear();
    for (cudaGraph_t graph : s.graphs) delete graph;
    s.graphs.clear();
    for (cudaGraphExec_t exec : s.execs) delete exec;
    s.execs.clear();
}

static cudaError_t find_event(cudaEvent_t event) {
    return all().events.count(event) != 0 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t refuse_captured(const CUstream_st *stream) {
    if (stream->capture == nullptr) return refuse_unsafe();
    invalidate(stream->capture);
    return cudaErrorStreamCaptureUnsupported;
}

static cudaError_t refuse_captured_event(const CUevent_st *event) {
    if (event->capture == nullptr) return refuse_unsafe();
    invalidate(event->capture);
    return cudaErrorCapturedEvent;
}

static cudaError_t open_stream(cudaStream_t *out, unsigned flags) {
    if (out == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    if (all().device_count == 0) return cudaErrorNoDevice;
    auto stream = std::make_shared<CUstream_st>();
    stream->device = current_device();
    stream->blocking = (flags & cudaStreamNonBlocking) == 0;
    all().streams[stream.get()] = stream;
    *out = stream.get();
    return cudaSuccess;
}

} // namespace emulator

using namespace emulator;

/* ---- streams ---- */

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    return call([&] { return open_stream(out, cudaStreamDefault); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    return call([&] { return open_stream(out, flags); });
}

enum { lowest_priority = 0, highest_priority = -5 }; /* as on GPUs since Volta */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
    return call([&] {
        const cudaError_t error = open_stream(out, flags);
        if (error == cudaSuccess) {
            (*out)->priority = std::min<int>(std::max<int>(priority, highest_priority), lowest_priority);
        }
        return error;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    return call([&] {
        CUstream_st *stream;
        const cudaError_t error = find_stream(handle, &stream);
        if (error == cudaSuccess) *priority = stream->priority;
        return error;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    return call_release([&] {
        const auto at = all().streams.find(handle);
        if (at == all().streams.end()) return cudaErrorInvalidResourceHandle;
        if (handle->capture != nullptr) {
            invalidate(handle->capture);
            handle->capture->streams.erase(handle);
        }
        if (!handle->queue.empty()) all().orphans.push_back(at->second); /* its work is still done */
        all().streams.erase(at);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return call([&] {
        CUstream_st *stream;
        cudaError_t error = find_stream(handle, &stream);
        if (error == cudaSuccess) error = refuse_captured(stream);
        if (error != cudaSuccess) return error;
        mind_legacy(stream);
        const int index = stream->device;
        finish_stream(stream);
        return all().devices[index].error;
    });
}

/* The first look at unfinished work says so, and then it is done: a loop of looks ends, and has looked twice. */
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return call([&] {
        CUstream_st *stream;
        cudaError_t error = find_stream(handle, &stream);
        if (error == cudaSuccess) error = refuse_captured(stream);
        if (error != cudaSuccess) return error;
        if (stream->queue.empty()) return all().devices[stream->device].error;
        drain(stream, nullptr);
        if (!stream->queue.empty()) ask_others();
        return cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
    return call([&] {
        CUstream_st *stream;
        cudaError_t error = flags != cudaEventWaitDefault ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error == cudaSuccess) error = find_event(event);
        if (error != cudaSuccess) return error;
        if (event->capture != nullptr || stream->capture != nullptr) return wait_captured(stream, event);
        if (event->at == nullptr || event->at->done) return cudaSuccess;
        mind_legacy(stream);
        stream->queue.push_back({nullptr, event->at, nullptr});
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data) {
    return call([&] {
        CUstream_st *stream;
        const cudaError_t error = function == nullptr ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error != cudaSuccess) return error;
        work w;
        w.device = stream->device;
        w.run = [function, data] {
            function(data);
            return true;
        };
        return put(stream, std::move(w));
    });
}

static cudaError_t put_library_work(cudaStream_t handle, std::function<bool()> run, bool steps,
                                    std::vector<const void *> touches) {
    const std::lock_guard<std::mutex> guard(all().lock);
    CUstream_st *stream;
    const cudaError_t error = find_stream(handle, &stream);
    if (error != cudaSuccess) return error;
    work w;
    w.device = stream->device;
    w.reach = all_devices;
    w.steps = steps;
    w.touches = std::move(touches);
    w.run = std::move(run);
    return put(stream, std::move(w));
}

cudaError_t cuda_emulated::enqueue(cudaStream_t stream, std::function<void()> work) {
    return put_library_work(
        stream,
        [work] {
            work();
            return true;
        },
        false, {});
}

cudaError_t cuda_emulated::enqueue_steps(cudaStream_t stream, std::function<bool()> step,
                                         std::vector<const void *> touches) {
    return put_library_work(stream, std::move(step), true, std::move(touches));
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    return call([&] {
        if (out == nullptr || flags > 7) return cudaErrorInvalidValue;
        if (all().device_count == 0) return cudaErrorNoDevice;
        *out = new CUevent_st{current_device(), (flags & cudaEventDisableTiming) == 0, nullptr, nullptr, {}};
        all().events.insert(*out);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return call_release([&] {
        if (all().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
        delete event;
        return cudaSuccess;
    });
}

/* In a graph: every run of it leaves the event here. */
static void capture_record(CUstream_st *stream, cudaEvent_t event) {
    work w;
    w.device = stream->device;
    w.run = [event] {
        if (all().events.count(event) == 0) return true; /* destroyed meanwhile */
        event->at = std::make_shared<place>();
        event->at->done = true;
        event->at->ms = now_ms();
        return true;
    };
    event->capture.reset();
    capture_work(stream, std::move(w));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    return cudaEventRecordWithFlags(event, handle, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
    return call([&] {
        CUstream_st *stream;
        cudaError_t error = flags > cudaEventRecordExternal ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error == cudaSuccess) error = find_event(event);
        if (error != cudaSuccess) return error;
        if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
        error = refuse_implicit(stream);
        if (error != cudaSuccess) return error;
        if (flags == cudaEventRecordExternal && stream->capture == nullptr) return cudaErrorInvalidValue;
        if (stream->capture != nullptr) {
            if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
            if (flags == cudaEventRecordExternal) {
                capture_record(stream, event);
                return cudaSuccess;
            }
            event->capture = stream->capture;
            event->tail = stream->tail;
            event->at.reset();
            return cudaSuccess;
        }
        mind_legacy(stream);
        event->capture.reset();
        event->at = mark_end(stream);
        if (all().eager) drain(stream, nullptr);
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return call([&] {
        cudaError_t error = find_event(event);
        if (error == cudaSuccess) error = refuse_captured_event(event);
        if (error != cudaSuccess) return error;
        if (event->at == nullptr || event->at->done) return all().devices[event->device].error;
        const std::shared_ptr<place> at = event->at;
        drain(at->stream.get(), at.get());
        if (!at->done) ask_others();
        return cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return call([&] {
        cudaError_t error = find_event(event);
        if (error == cudaSuccess) error = refuse_captured_event(event);
        if (error != cudaSuccess) return error;
        const int index = event->device;
        const std::shared_ptr<place> at = event->at;
        if (at != nullptr) finish_place(at);
        return all().devices[index].error;
    });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    return call([&] {
        cudaError_t error = ms == nullptr ? cudaErrorInvalidValue : find_event(start);
        if (error == cudaSuccess) error = find_event(end);
        if (error != cudaSuccess) return error;
        if (!start->timed || !end->timed || start->at == nullptr || end->at == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (!start->at->done || !end->at->done) return cudaErrorNotReady;
        *ms = static_cast<float>(end->at->ms - start->at->ms);
        return cudaSuccess;
    });
}
