/* Capture: work put on a stream becomes nodes of a graph, each after those that the stream and the events it waited for
 * had come to. A launched graph is its nodes one after the other; of branches that do not depend on each other one
 * order is taken by the first launch and the opposite one by the next, so that a missing dependency is seen. */
#include "emulator.h"

#include <algorithm>

namespace emulator {

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

void invalidate(const std::shared_ptr<capture> &what) {
    what->invalid = true;
}

cudaError_t refuse_unsafe() {
    cudaError_t error = cudaSuccess;
    if (thread_mode == cudaStreamCaptureModeRelaxed) return error;
    for (auto &capture : all().captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool minded =
            own ? capture->mode != cudaStreamCaptureModeRelaxed
                : capture->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
        if (!minded) continue;
        invalidate(capture);
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error;
}

void capture_work(CUstream_st *stream, work what) {
    std::vector<node> &nodes = stream->capture->nodes;
    nodes.push_back({std::make_shared<const work>(std::move(what)), stream->tail});
    stream->tail = {nodes.size() - 1};
}

static void add_after(std::vector<size_t> *tail, const std::vector<size_t> &more) {
    for (size_t one : more) {
        if (std::find(tail->begin(), tail->end(), one) == tail->end()) tail->push_back(one);
    }
}

/* A stream waits for an event, and at least one of them belongs to a capture. */
cudaError_t wait_captured(CUstream_st *stream, CUevent_st *event) {
    if (event->capture == nullptr) {
        if (event->at == nullptr) return cudaSuccess; /* never recorded */
        invalidate(stream->capture);
        return cudaErrorStreamCaptureIsolation;
    }
    if (event->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (all().captures.count(event->capture) == 0) return cudaErrorStreamCaptureIsolation; /* ended meanwhile */
    if (stream->legacy) {
        invalidate(event->capture);
        return cudaErrorStreamCaptureImplicit;
    }
    if (stream->capture == nullptr) {
        stream->capture = event->capture;
        stream->tail = event->tail;
        stream->capture->streams.insert(stream);
    } else if (stream->capture == event->capture) {
        add_after(&stream->tail, event->tail);
    } else {
        invalidate(stream->capture);
        invalidate(event->capture);
        return cudaErrorStreamCaptureMerge;
    }
    return cudaSuccess;
}

/* Every node that comes before `tail`, and those of it, before those that come after them. Of several that a node comes
 * after, the first (or the last) named is gone into first. */
static std::vector<size_t> in_order(const std::vector<node> &nodes, const std::vector<size_t> &tail, bool backwards) {
    std::vector<size_t> order, pending;
    std::vector<char> mark(nodes.size(), 0);           /* 1: looked into, 2: in the order */
    auto push = [&](const std::vector<size_t> &some) { /* the last pushed is looked at first */
                                                       if (backwards) {
                                                           pending.insert(pending.end(), some.begin(), some.end());
                                                       } else {
                                                           pending.insert(pending.end(), some.rbegin(), some.rend());
                                                       }
    };
    push(tail);
    while (!pending.empty()) {
        const size_t top = pending.back();
        if (mark[top] == 0) {
            mark[top] = 1;
            push(nodes[top].after);
            continue;
        }
        if (mark[top] == 1) {
            mark[top] = 2;
            order.push_back(top);
        }
        pending.pop_back();
    }
    return order;
}

static void leave(const std::shared_ptr<capture> &what) {
    for (CUstream_st *stream : what->streams) {
        stream->capture.reset();
        stream->tail.clear();
    }
    what->nodes.clear(); /* events recorded in it outlive it, and must not keep what the nodes hold */
    all().captures.erase(what);
}

static cudaError_t end_capture(CUstream_st *stream, cudaGraph_t *out) {
    const std::shared_ptr<capture> ended = stream->capture;
    if (ended == nullptr) return cudaErrorIllegalState;
    if (ended->mode != cudaStreamCaptureModeRelaxed && ended->thread != std::this_thread::get_id()) {
        return cudaErrorStreamCaptureWrongThread;
    }
    cudaError_t error = cudaSuccess;
    const std::vector<size_t> tail = stream->tail;
    if (ended->origin != stream) {
        invalidate(ended);
        return cudaErrorStreamCaptureUnmatched;
    }
    if (ended->invalid) {
        error = cudaErrorStreamCaptureInvalidated;
    } else if (in_order(ended->nodes, tail, false).size() != ended->nodes.size()) {
        error = cudaErrorStreamCaptureUnjoined;
    }
    std::vector<node> nodes = ended->nodes;
    leave(ended);
    if (error != cudaSuccess) return error;
    *out = new CUgraph_st{std::move(nodes), tail};
    all().graphs.insert(*out);
    return cudaSuccess;
}

void forget_captures() {
    while (!all().captures.empty()) leave(*all().captures.begin());
}

static cudaError_t launch_graph(CUgraphExec_st *exec, CUstream_st *stream) {
    if (stream->capture != nullptr) {
        invalidate(stream->capture);
        return cudaErrorStreamCaptureUnsupported;
    }
    if (exec->last != nullptr && !exec->last->done) stream->queue.push_back({nullptr, exec->last, nullptr});
    for (auto &what : exec->order[exec->launches++ % 2]) stream->queue.push_back({what, nullptr, nullptr});
    exec->last = std::make_shared<place>();
    exec->last->stream = all().streams[stream];
    stream->queue.push_back({nullptr, nullptr, exec->last});
    if (all().eager) drain(stream, nullptr);
    return cudaSuccess;
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    return call([&] {
        CUstream_st *stream;
        const cudaError_t error = find_stream(handle, &stream);
        if (error != cudaSuccess) return error;
        if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->capture != nullptr) return cudaErrorIllegalState;
        auto begun = std::make_shared<capture>();
        begun->mode = mode;
        begun->thread = std::this_thread::get_id();
        begun->origin = stream;
        begun->streams.insert(stream);
        stream->capture = begun;
        stream->tail.clear();
        all().captures.insert(begun);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
    return call_release([&] {
        CUstream_st *stream;
        cudaGraph_t graph = nullptr;
        cudaError_t error = out == nullptr ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error == cudaSuccess) error = end_capture(stream, &graph);
        if (out != nullptr) *out = graph;
        return error;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *out) {
    return call([&] {
        CUstream_st *stream;
        const cudaError_t error = out == nullptr ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error != cudaSuccess) return error;
        *out = cudaStreamCaptureStatusNone;
        if (stream->capture == nullptr) return cudaSuccess;
        *out = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    return call([&] {
        if (mode == nullptr) return cudaErrorInvalidValue;
        std::swap(*mode, thread_mode);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    return call([&] {
        if (all().graphs.count(graph) == 0 || nodes != nullptr || count == nullptr) return cudaErrorInvalidValue;
        *count = graph->nodes.size();
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
    return call([&] {
        if (out == nullptr || all().graphs.count(graph) == 0) return cudaErrorInvalidValue;
        auto *exec = new CUgraphExec_st;
        for (int backwards = 0; backwards < 2; backwards++) {
            for (size_t at : in_order(graph->nodes, graph->tail, backwards != 0)) {
                exec->order[backwards].push_back(graph->nodes[at].what);
            }
        }
        all().execs.insert(exec);
        *out = exec;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle) {
    return call([&] {
        CUstream_st *stream;
        return all().execs.count(exec) == 0 ? cudaErrorInvalidValue : find_stream(handle, &stream);
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
    return call([&] {
        CUstream_st *stream;
        const cudaError_t error = all().execs.count(exec) == 0 ? cudaErrorInvalidValue : find_stream(handle, &stream);
        if (error != cudaSuccess) return error;
        if (stream->legacy) return cudaErrorNotSupported; /* of the emulator only */
        return launch_graph(exec, stream);
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return call_release([&] {
        if (all().execs.erase(exec) == 0) return cudaErrorInvalidValue;
        delete exec; /* launches that are queued keep what they need */
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return call_release([&] {
        if (all().graphs.erase(graph) == 0) return cudaErrorInvalidValue;
        delete graph;
        return cudaSuccess;
    });
}
