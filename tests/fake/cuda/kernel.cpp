/* How the threads of a kernel run: blocks one after the other, the threads of a block on fibers.
 *
 * A fiber takes threads one after the other, as a loop does. Only when a thread comes to a barrier does it keep its
 * fiber until the others have come, and another fiber goes on with the threads that have not begun; so a kernel without
 * barriers is a plain loop. Every second launch runs from the last block and thread to the first. */
#include "emulator.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(FIBERS_BY_UCONTEXT)
#define FIBERS_BY_HAND 1 /* swapcontext asks the kernel for the signal mask, twice a switch */
#else
#include <ucontext.h>
#endif

#if defined(FIBERS_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {

enum { max_threads = 1024, warp_lanes = 32, max_warps = max_threads / warp_lanes };
#if defined(FIBERS_ASAN) || defined(__SANITIZE_THREAD__)
enum { stack_bytes = 512 << 10 };
#else
enum { stack_bytes = 128 << 10 };
#endif

/* ---- switching ---- */

/* The thread sanitizer is not told: to it all fibers are the thread that runs them, which is right, as they never run
 * at the same time; its own fibers know each other's clocks, which takes a minute for what takes a second. What it
 * keeps of the calls under way is mixed up, but as many are left as are entered. */

struct fiber {
#if defined(FIBERS_BY_HAND)
    void *sp = nullptr;
#else
    ucontext_t context;
#endif
    char *stack = nullptr;
    size_t bytes = 0;
    unsigned thread = 0; /* of the block, that it runs */
    uint3 index = {0, 0, 0}; /* the same, as threadIdx */
    void *asan_stack = nullptr;
};

#if defined(FIBERS_BY_HAND)
extern "C" void cuda_emulated_switch(void **save, void *load);
__asm__(".text\n"
        ".globl cuda_emulated_switch\n"
        ".hidden cuda_emulated_switch\n"
        ".type cuda_emulated_switch, @function\n"
        "cuda_emulated_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cuda_emulated_switch, .-cuda_emulated_switch\n");
#endif

static fiber *main_fiber() {
    static fiber only; /* stands for the stack of whoever does the work */
    return &only;
}

static fiber *running = main_fiber(), *came_from;

/* The first thing after a switch, on the stack switched to. */
static void arrived() {
#if defined(FIBERS_ASAN)
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(running->asan_stack, &bottom, &bytes);
    if (came_from == main_fiber()) {
        came_from->stack = static_cast<char *>(const_cast<void *>(bottom));
        came_from->bytes = bytes;
    }
#endif
}

static void switch_to(fiber *to) {
    fiber *from = came_from = running;
    running = to;
#if defined(FIBERS_ASAN)
    __sanitizer_start_switch_fiber(&from->asan_stack, to->stack, to->bytes);
#endif
#if defined(FIBERS_BY_HAND)
    cuda_emulated_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived();
}

[[noreturn]] static void fiber_main();

static void entry() {
    arrived();
    fiber_main();
}

static fiber *make_fiber() {
    auto *made = new fiber;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *map =
        mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) != 0) die("no memory for the stack of a thread");
    made->stack = static_cast<char *>(map) + page;
    made->bytes = stack_bytes;
#if defined(FIBERS_BY_HAND)
    /* six registers, where to go on, and where that would return to; the stack as after a call */
    auto **top = reinterpret_cast<void **>(made->stack + stack_bytes);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void *>(entry);
    std::memset(top - 8, 0, 6 * sizeof *top);
    made->sp = top - 8;
#else
    getcontext(&made->context);
    made->context.uc_stack.ss_sp = made->stack;
    made->context.uc_stack.ss_size = stack_bytes;
    makecontext(&made->context, entry, 0);
#endif
    return made;
}

/* ---- a block ---- */

struct warp {
    unsigned lanes, waiting; /* how many there are; how many wait */
    fiber *waiters[warp_lanes];
    uint64_t values[2][warp_lanes]; /* two rounds: a lane may be one ahead of one that still reads */
};

struct block {
    const std::function<void()> *thread;
    unsigned threads, begun, ended;
    bool backwards;
    unsigned waiting; /* at the block's barrier */
    fiber *waiters[max_threads];
    int votes, result; /* of __syncthreads_count */
    fiber *ready[max_threads];
    unsigned ready_from, ready_count;
    warp warps[max_warps];
    unsigned char round[max_threads];
};

static block now; /* the one that runs: the lock is held */

static void make_ready(fiber *one) {
    now.ready[(now.ready_from + now.ready_count++) % max_threads] = one;
}

/* Fibers without a thread. Never destroyed, as the fibers are not. */
static std::vector<fiber *> &idle() {
    static auto *const only = new std::vector<fiber *>; // NOLINT: lives as long as the process
    return *only;
}

static fiber *take_idle() {
    if (idle().empty()) return make_fiber();
    fiber *one = idle().back();
    idle().pop_back();
    return one;
}

static uint3 index_of(unsigned thread) {
    if (blockDim.y == 1 && blockDim.z == 1) return {thread, 0, 0}; /* nearly always, and divisions are slow */
    return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
}

/* Leaves the running fiber, which waits or is idle, for one that can go on; the main one when there is none. */
static void go_on() {
    fiber *next = main_fiber();
    if (now.ready_count > 0) {
        next = now.ready[now.ready_from];
        now.ready_from = (now.ready_from + 1) % max_threads;
        now.ready_count--;
        threadIdx = next->index;
    } else if (now.begun < now.threads) {
        next = take_idle();
    }
    switch_to(next);
}

static void fiber_main() {
    fiber *self = running;
    for (;;) {
        while (now.begun < now.threads) {
            const unsigned place = now.begun++;
            self->thread = now.backwards ? now.threads - 1 - place : place;
            threadIdx = self->index = index_of(self->thread);
            (*now.thread)();
            now.ended++;
        }
        idle().push_back(self);
        go_on();
    }
}

static void run_block() {
    now.begun = now.ended = now.waiting = now.ready_count = now.ready_from = 0;
    now.votes = 0;
    for (unsigned i = 0; i * warp_lanes < now.threads; i++) {
        now.warps[i].lanes = std::min<unsigned>(warp_lanes, now.threads - i * warp_lanes);
        now.warps[i].waiting = 0;
    }
    std::memset(now.round, 0, now.threads);
    switch_to(take_idle());
    if (now.ended == now.threads) return;
    die("block %u,%u,%u: %u of %u threads wait at a barrier or for their warp, the others will never come", blockIdx.x,
        blockIdx.y, blockIdx.z, now.threads - now.ended, now.threads);
}

void run_grid(dim3 grid, dim3 block_shape, const std::function<void()> &thread) {
    static bool backwards = true;
    backwards = !backwards;
    gridDim = grid;
    blockDim = block_shape;
    now.thread = &thread;
    now.threads = block_shape.x * block_shape.y * block_shape.z;
    now.backwards = backwards;
    const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t at = backwards ? blocks - 1 - i : i;
        blockIdx.x = static_cast<unsigned>(at % grid.x);
        blockIdx.y = static_cast<unsigned>(at / grid.x % grid.y);
        blockIdx.z = static_cast<unsigned>(at / (static_cast<uint64_t>(grid.x) * grid.y));
        run_block();
    }
}

/* ---- barriers ---- */

static void wait_for_warp() {
    warp &w = now.warps[running->thread / warp_lanes];
    if (w.waiting + 1 < w.lanes) {
        w.waiters[w.waiting++] = running;
        go_on();
        return;
    }
    for (unsigned i = 0; i < w.waiting; i++) make_ready(w.waiters[i]);
    w.waiting = 0;
}

static void check_mask(const warp &w, unsigned mask) {
    const unsigned whole = w.lanes == warp_lanes ? 0xffffffffu : (1u << w.lanes) - 1;
    if ((mask & whole) != whole) die("a mask of %#x: only whole warps are played here", mask);
}

} // namespace emulator

using namespace emulator;

int __syncthreads_count(int predicate) {
    now.votes += predicate != 0;
    if (now.waiting + 1 < now.threads) {
        now.waiters[now.waiting++] = running;
        go_on();
        return now.result; /* the next barrier is not over before this thread has come to it */
    }
    for (unsigned i = 0; i < now.waiting; i++) make_ready(now.waiters[i]);
    now.waiting = 0;
    now.result = now.votes;
    now.votes = 0;
    return now.result;
}

void __syncthreads() {
    __syncthreads_count(0);
}

void __syncwarp(unsigned mask) {
    check_mask(now.warps[running->thread / warp_lanes], mask);
    wait_for_warp();
}

int cuda_emulated::lane() {
    return static_cast<int>(running->thread % warp_lanes);
}

uint64_t cuda_emulated::exchange(unsigned mask, uint64_t value, int from) {
    const unsigned thread = running->thread, own = thread % warp_lanes;
    warp &w = now.warps[thread / warp_lanes];
    uint64_t *values = w.values[now.round[thread]++ % 2];
    check_mask(w, mask);
    values[own] = value;
    wait_for_warp();
    if (from < 0) return value;
    return static_cast<unsigned>(from) < w.lanes ? values[from] : ~uint64_t{0}; /* undefined: NaN */
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    const unsigned thread = running->thread, own = thread % warp_lanes;
    warp &w = now.warps[thread / warp_lanes];
    uint64_t *values = w.values[now.round[thread]++ % 2];
    unsigned bits = 0;
    check_mask(w, mask);
    values[own] = predicate != 0;
    wait_for_warp();
    for (unsigned i = 0; i < w.lanes; i++) bits |= static_cast<unsigned>(values[i]) << i;
    return bits;
}

/* ---- starting ---- */

static bool shape_fits(dim3 grid, dim3 block_shape) {
    const uint64_t threads = static_cast<uint64_t>(block_shape.x) * block_shape.y * block_shape.z;
    return threads > 0 && threads <= max_threads && block_shape.z <= 64 && grid.x > 0 && grid.x <= 0x7fffffff &&
           grid.y > 0 && grid.y <= 65535 && grid.z > 0 && grid.z <= 65535;
}

/* A GPU cannot read the host's memory unless it is pinned. */
static cudaError_t check_pointers(const void *const *pointers, int count) {
    for (int i = 0; i < count; i++) {
        if (pointers[i] == nullptr || find_range(pointers[i]) != nullptr) continue;
        std::fprintf(stderr, "cuda_emulated: a kernel was given %p (pointer %d of its arguments), memory of the host\n",
                     pointers[i], i);
        return cudaErrorIllegalAddress;
    }
    return cudaSuccess;
}

cudaError_t cuda_emulated::start(dim3 grid, dim3 block_shape, cudaStream_t handle, std::function<void()> thread,
                                 const void *const *pointers, int pointer_count) {
    return call([&] {
        CUstream_st *stream;
        cudaError_t error = find_stream(handle, &stream);
        if (error != cudaSuccess) return error;
        if (stream->device != current_device()) return cudaErrorInvalidResourceHandle;
        if (!shape_fits(grid, block_shape)) return cudaErrorInvalidConfiguration;
        error = check_pointers(pointers, pointer_count);
        if (error != cudaSuccess) {
            all().devices[stream->device].error = error;
            return error;
        }
        work w;
        w.device = stream->device;
        w.kernel = true;
        w.run = [grid, block_shape, thread] {
            run_grid(grid, block_shape, thread);
            return true;
        };
        return put(stream, std::move(w));
    });
}
