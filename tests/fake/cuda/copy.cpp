/* Copies and fills. Pageable memory of the host is read when the call is made and written before it returns, as CUDA
 * does; pinned memory when the work is done. */
#include "emulator.h"

#include <cstdio>
#include <cstring>

namespace emulator {

enum side { pageable, pinned, on_device };

static side side_of(const void *pointer) {
    const range *in = find_range(pointer);
    if (in == nullptr) return pageable;
    return in->device >= 0 ? on_device : pinned;
}

/* Bits of the devices that the memory is on. */
static unsigned reach_of(const void *pointer) {
    const range *in = find_range(pointer);
    return in != nullptr && in->device >= 0 ? 1u << in->device : 0;
}

/* What was there when the copy was asked for may have been freed since. */
static bool still_there(const void *pointer, size_t bytes, side was) {
    return was == pageable || (side_of(pointer) == was && lies_in_one(pointer, bytes));
}

static void lose(int index, const char *what) {
    std::fprintf(stderr, "cuda_emulated: %s was freed before the work that uses it was done\n", what);
    all().devices[index].error = cudaErrorIllegalAddress;
}

static work copy_work(int index, void *to, const void *from, size_t bytes, side to_side, side from_side,
                      std::shared_ptr<std::vector<char>> staged) {
    work w;
    w.device = index;
    w.reach = reach_of(to) | reach_of(from) | 1u << index;
    w.touches = {to, from};
    w.run = [=] {
        if (!still_there(to, bytes, to_side)) {
            lose(index, "the destination of a copy");
        } else if (staged == nullptr && !still_there(from, bytes, from_side)) {
            lose(index, "the source of a copy");
        } else {
            std::memmove(to, staged != nullptr ? staged->data() : from, bytes);
        }
        return true;
    };
    return w;
}

static bool kind_fits(cudaMemcpyKind kind, side to, side from) {
    switch (kind) {
    case cudaMemcpyHostToHost:
        return to != on_device && from != on_device;
    case cudaMemcpyHostToDevice:
        return to == on_device && from != on_device;
    case cudaMemcpyDeviceToHost:
        return to != on_device && from == on_device;
    case cudaMemcpyDeviceToDevice:
        return to == on_device && from == on_device;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

static cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
    CUstream_st *stream;
    const cudaError_t error = find_stream(handle, &stream);
    if (error != cudaSuccess || bytes == 0) return error;
    if (to == nullptr || from == nullptr || !lies_in_one(to, bytes) || !lies_in_one(from, bytes)) {
        return cudaErrorInvalidValue;
    }
    const side to_side = side_of(to), from_side = side_of(from);
    if (!kind_fits(kind, to_side, from_side)) return cudaErrorInvalidValue;
    const bool blocks = to_side == pageable;
    if (stream->capture != nullptr && (blocks || from_side == pageable)) {
        invalidate(stream->capture);
        return cudaErrorStreamCaptureUnsupported;
    }
    std::shared_ptr<std::vector<char>> staged;
    if (from_side == pageable) {
        const char *first = static_cast<const char *>(from);
        staged = std::make_shared<std::vector<char>>(first, first + bytes);
    }
    const int index = stream->device;
    const cudaError_t put_error = put(stream, copy_work(index, to, from, bytes, to_side, from_side, staged));
    if (put_error != cudaSuccess || !blocks) return put_error;
    finish_stream(stream);
    return all().devices[index].error;
}

static cudaError_t fill(void *to, int byte, size_t bytes, cudaStream_t handle) {
    CUstream_st *stream;
    const cudaError_t error = find_stream(handle, &stream);
    if (error != cudaSuccess || bytes == 0) return error;
    if (to == nullptr || side_of(to) != on_device || !lies_in_one(to, bytes)) return cudaErrorInvalidValue;
    work w;
    const int index = w.device = stream->device;
    w.reach = reach_of(to);
    w.touches = {to};
    w.run = [=] {
        if (!still_there(to, bytes, on_device)) {
            lose(index, "memory that is filled");
        } else {
            std::memset(to, byte, bytes);
        }
        return true;
    };
    return put(stream, std::move(w));
}

static cudaError_t finish_legacy() {
    CUstream_st *stream;
    cudaError_t error = find_stream(nullptr, &stream);
    if (error == cudaSuccess) error = refuse_unsafe();
    if (error != cudaSuccess) return error;
    finish_stream(stream);
    return all().devices[stream->device].error;
}

static bool lies_on(const void *pointer, int device) {
    const range *in = find_range(pointer);
    return in != nullptr && in->device == device;
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return call([&] { return copy(to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    return call([&] {
        if (bytes != 0 && (!lies_on(to, to_device) || !lies_on(from, from_device))) return cudaErrorInvalidValue;
        return copy(to, from, bytes, cudaMemcpyDefault, stream);
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return call([&] {
        const cudaError_t error = copy(to, from, bytes, kind, nullptr);
        return error == cudaSuccess ? finish_legacy() : error;
    });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    return call([&] { return fill(to, byte, bytes, stream); });
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
    return call([&] {
        const cudaError_t error = fill(to, byte, bytes, nullptr);
        return error == cudaSuccess ? finish_legacy() : error;
    });
}
