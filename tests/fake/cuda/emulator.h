/* What the emulator's files share. Everything here is guarded by one lock; work is done under it.
 *
 * A stream is a queue of items. They are done when something waits for them, and then only those that it needs: the
 * stream's own up to that place, in order, and of other streams those up to the events that are waited for. So what has
 * not been said to depend on something finds it undone. */
#ifndef CUDA_EMULATED_INTERNAL_H
#define CUDA_EMULATED_INTERNAL_H

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <cuda_emulated.h>

namespace emulator {

enum { max_devices = 16, all_devices = (1 << max_devices) - 1 };

/* ---- work ---- */

struct work {
    std::function<bool()> run; /* false, of steps only: not yet, call again */
    int device = 0;
    unsigned reach = 0; /* devices whose memory it uses, as bits; 0: what kernels of `device` may reach */
    std::vector<const void *> touches; /* the only memory that it uses; none: it may use all that it reaches */
    bool steps = false, kernel = false;
};

struct place;
struct capture;

struct item { /* one of these */
    std::shared_ptr<const work> what;
    std::shared_ptr<place> wait, mark;
};

struct place { /* in a stream, left there by an event */
    std::shared_ptr<CUstream_st> stream;
    bool done = false;
    double ms = 0;
};

/* ---- memory ---- */

struct range {
    char *base, *map; /* of a device: the pages around it */
    size_t bytes, map_bytes;
    int device; /* -1: pinned memory of the host */
    bool open;  /* may be touched now, where pages are closed */
    int key;    /* of its device, where keys close them; -1 */
};

struct device {
    size_t used = 0;
    unsigned peers = 0;              /* whose memory its kernels may reach */
    cudaError_t error = cudaSuccess; /* sticky: every later call returns it */
    std::shared_ptr<CUstream_st> legacy;
};

/* ---- capture ---- */

struct node {
    std::shared_ptr<const work> what;
    std::vector<size_t> after;
};

struct capture {
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    CUstream_st *origin;
    bool invalid = false;
    std::vector<node> nodes;
    std::set<CUstream_st *> streams;
};

struct state {
    std::mutex lock;
    bool ready = false, used = false, forked = false, eager = false, peers_possible = true;
    int device_count = 2, first = 0, part = 0, driver = 13000, capability = 90;
    size_t memory = size_t{4} << 30;
    long calls = 0, fail_at = 0, work_done = 0, fail_work_at = 0, kernels = 0;
    int steps_running = 0, waiting = 0; /* threads that want memory to stay open */
    device devices[max_devices];
    std::map<const char *, range> ranges;        /* by their end */
    std::deque<std::pair<char *, size_t>> freed; /* kept unreachable for a while, so that late uses are seen */
    std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
    std::vector<std::shared_ptr<CUstream_st>> orphans; /* destroyed with work left */
    std::set<cudaEvent_t> events;
    std::set<cudaGraph_t> graphs;
    std::set<cudaGraphExec_t> execs;
    std::set<std::shared_ptr<capture>> captures;
};
state &all(); /* never destroyed: threads and exit handlers may come late */

/* ---- calls (calls.cpp) ---- */

/* Every function of CUDA is `return call(...)`: takes the lock, counts, fails where it was told to, keeps the error. */
cudaError_t call_begin(bool needs_device);
cudaError_t call_end(cudaError_t error);

template <class Body> cudaError_t call(Body body, bool needs_device = true) {
    const std::lock_guard<std::mutex> guard(all().lock);
    cudaError_t error = call_begin(needs_device);
    if (error == cudaSuccess) error = body();
    return call_end(error);
}
/* Asks or says something that does not touch the current device: it may be broken. */
template <class Body> cudaError_t call_aside(Body body) {
    return call(body, false);
}
/* Gives something back: that is done even where the call is to fail. */
template <class Body> cudaError_t call_release(Body body) {
    const std::lock_guard<std::mutex> guard(all().lock);
    const cudaError_t error = call_begin(true);
    const cudaError_t own = body();
    return call_end(error != cudaSuccess ? error : own);
}

int current_device();
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory (memory.cpp) ---- */

const range *find_range(const void *pointer);        /* that it lies in, or ends */
bool lies_in_one(const void *pointer, size_t bytes); /* all of it in one allocation, or in none */
void open_memory(unsigned devices);                  /* these can be touched, others not */
void open_for(const work &w);                        /* what it may use */
void close_memory();

/* ---- streams (stream.cpp) ---- */

cudaError_t find_stream(cudaStream_t handle, CUstream_st **out); /* 0: the current device's own */
cudaError_t put(CUstream_st *stream, work what);                 /* queued, or captured */
/* Works until the place is done, or the stream is empty. Lets go of the lock while a step is called, and while
 * none is done. */
void finish_place(const std::shared_ptr<place> &until);
void finish_stream(CUstream_st *stream);
void finish_device(int device);
/* Works as far as it gets without waiting. */
void drain(CUstream_st *stream, const place *until);
void forget_streams();

/* ---- capture (capture.cpp) ---- */

/* What must not happen while a capture is under way that this thread has to mind: invalidates it. */
cudaError_t refuse_unsafe();
void invalidate(const std::shared_ptr<capture> &what);
cudaError_t wait_captured(CUstream_st *stream, CUevent_st *event);
void capture_work(CUstream_st *stream, work what);
void forget_captures();

/* ---- kernels (kernel.cpp) ---- */

void run_grid(dim3 grid, dim3 block, const std::function<void()> &thread);

} // namespace emulator

struct CUstream_st {
    int device;
    bool blocking; /* minds the device's own stream */
    int priority = 0;
    bool legacy = false;
    bool busy = false; /* a thread is doing its first item */
    std::deque<emulator::item> queue;
    std::shared_ptr<emulator::capture> capture;
    std::vector<size_t> tail; /* nodes that the next one comes after */
};

struct CUevent_st {
    int device;
    bool timed;
    std::shared_ptr<emulator::place> at; /* none: never recorded */
    std::shared_ptr<emulator::capture> capture;
    std::vector<size_t> tail;
};

struct CUgraph_st {
    std::vector<emulator::node> nodes;
    std::vector<size_t> tail;
};

struct CUgraphExec_st {
    std::vector<std::shared_ptr<const emulator::work>> order[2]; /* branches as captured, and in reverse order */
    std::shared_ptr<emulator::place> last;
    int launches = 0;
};

#endif
