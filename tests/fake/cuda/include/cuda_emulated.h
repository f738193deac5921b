/* What the emulated CUDA has beyond CUDA: starting kernels from plain C++, queueing work of fake libraries, and the
 * knobs of tests (these from C, too). */
#ifndef CUDA_EMULATED_H
#define CUDA_EMULATED_H

#include <stdbool.h>

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- knobs; each has an environment variable of its name, read at the first call of CUDA ----
 * Variables alone: CUDA_EMULATED_FIRST, the GPU of the host that this process calls its first: 0; CUDA_EMULATED_PART, the
 * part of each GPU that it sees, where GPUs are cut into parts: 0. */
CUDA_EMULATED_API void cuda_emulated_set_devices(int count);      /* CUDA_EMULATED_DEVICES; 2, at most 16 */
CUDA_EMULATED_API void cuda_emulated_set_memory(size_t bytes);    /* CUDA_EMULATED_MEMORY; of each device: 4 GiB */
CUDA_EMULATED_API void cuda_emulated_set_driver(int version);     /* CUDA_EMULATED_DRIVER; 13000; 0: no driver */
CUDA_EMULATED_API void cuda_emulated_set_capability(int version); /* CUDA_EMULATED_CAPABILITY; 90 */
CUDA_EMULATED_API void cuda_emulated_set_peers(bool possible);    /* CUDA_EMULATED_PEERS; 1 */
/* Work is done as it is queued, instead of when something waits for it. */
CUDA_EMULATED_API void cuda_emulated_set_eager(bool eager); /* CUDA_EMULATED_EAGER; 0 */
/* The k-th call from now on of CUDA, or of a fake library, fails: cudaErrorUnknown; 0: none. What a failed call should
 * have released is released. */
CUDA_EMULATED_API void cuda_emulated_fail_at(long k); /* CUDA_EMULATED_FAIL_AT */
/* The k-th kernel or copy done from now on fails with an illegal address, which its device never gets over; 0: none. */
CUDA_EMULATED_API void cuda_emulated_fail_work_at(long k); /* CUDA_EMULATED_FAIL_WORK_AT */

/* ---- what there is ---- */
CUDA_EMULATED_API long cuda_emulated_calls(void);        /* calls so far, those that fail_at counts */
CUDA_EMULATED_API long cuda_emulated_work_done(void);    /* kernels, copies and fills done so far */
CUDA_EMULATED_API long cuda_emulated_kernels_done(void); /* kernels among them */
CUDA_EMULATED_API size_t cuda_emulated_memory_used(int device);
CUDA_EMULATED_API size_t cuda_emulated_memory(void); /* of each device */
CUDA_EMULATED_API int cuda_emulated_live(void);      /* allocations, streams, events, graphs not yet given back */

/* Every device without its allocations, streams, events, graphs and errors. For the beginning of a test, when no other
 * thread uses CUDA; and for a child of fork, in which CUDA does not work otherwise. */
CUDA_EMULATED_API void cuda_emulated_reset(void);

#ifdef __cplusplus
}

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/* Counts one call of a fake library; true: it has to fail (cuda_emulated_fail_at, or a device lost). */
CUDA_EMULATED_API bool cuda_emulated_fails_now(void);
/* `bytes` at `pointer` are a device's, or pinned: a library may be given them. */
CUDA_EMULATED_API bool cuda_emulated_reachable(const void *pointer, size_t bytes);

namespace cuda_emulated {
/* For fake libraries: `work` is done in the stream's order, with the memory of all devices open; it may not call CUDA.
 * Where the stream is captured it is done with each launch of the graph. */
CUDA_EMULATED_API cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
/* The same for work whose end depends on others: called until it returns true, in one thread at a time, without the
 * emulator's lock. Whoever waits for it calls it again and again with short naps; a query calls it, too, and never
 * waits. Streams that are at such work are worked on whenever somebody waits. It may use the allocations that `touches`
 * lie in, no others; where there are none, all memory. */
CUDA_EMULATED_API cudaError_t enqueue_steps(cudaStream_t stream, std::function<bool()> step,
                                            std::vector<const void *> touches = {});

CUDA_EMULATED_API cudaError_t start(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread,
                                    const void *const *pointers, int pointer_count);

/* kernel<<<grid, block, 0, stream>>>(arguments...); cudaGetLastError() tells whether it was started. */
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream, Arguments... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the kernel takes another number of arguments");
    std::tuple<std::remove_cv_t<Parameters>...> values(static_cast<Parameters>(arguments)...);
    const void *pointers[sizeof...(Parameters) + 1] = {};
    int pointer_count = 0;
    auto note = [&](const auto &value) {
        using type = std::decay_t<decltype(value)>;
        if constexpr (std::is_pointer_v<type>) pointers[pointer_count++] = value;
    };
    std::apply([&](const auto &...value) { (note(value), ...); }, values);
    start(
        grid, block, stream, [kernel, values]() { std::apply(kernel, values); }, pointers, pointer_count);
}
} // namespace cuda_emulated
#endif
#endif
