/* Memory of devices: pages of their own that nobody can touch except while work is done, filled with NaN at first,
 * ended by the end of a page, and unreachable after they are freed. Memory of the host: ordinary, but known. */
#include "emulator.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace emulator {

enum { granule = 256, fresh = 0xff, slack = 0xa5, kept_when_freed = 256 };

const range *find_range(const void *pointer) {
    const auto at =
        all().ranges.lower_bound(static_cast<const char *>(pointer)); /* the first that ends there or later */
    if (at == all().ranges.end() || at->second.base > static_cast<const char *>(pointer)) return nullptr;
    return &at->second;
}

bool lies_in_one(const void *pointer, size_t bytes) {
    const range *in = find_range(pointer);
    const char *from = static_cast<const char *>(pointer);
    return in == nullptr || bytes <= in->bytes - static_cast<size_t>(from - in->base);
}

/* ---- which devices' memory can be touched ----
 *
 * Where the processor has protection keys, each device has one, and what can be touched is said to this thread alone,
 * in an instruction. Where it has none, or too few, the pages are closed to every thread, by a call that walks them. */

static int key_of(int device) {
    static int keys[max_devices];
    if (keys[device] == 0) keys[device] = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return keys[device]; /* -1: none is left */
}

static void set_open(range *r, bool open) {
    if (r->open == open || r->key >= 0) return;
    if (mprotect(r->map, r->map_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) die("mprotect failed");
    r->open = open;
}

static void open_by_keys(unsigned devices) {
    for (int i = 0; i < all().device_count; i++) {
        if (key_of(i) >= 0) pkey_set(key_of(i), (devices & 1u << i) != 0 ? 0 : PKEY_DISABLE_ACCESS);
    }
}

static void open_by_pages(unsigned devices) {
    for (auto &entry : all().ranges) {
        range &r = entry.second;
        if (r.device < 0) continue;
        const bool wanted = (devices & 1u << r.device) != 0;
        if (wanted || all().steps_running == 0) set_open(&r, wanted);
    }
}

/* One range, for the emulator itself. */
static void touch(range *r, bool open) {
    if (r->key >= 0) pkey_set(r->key, open ? 0 : PKEY_DISABLE_ACCESS);
    set_open(r, open);
}

void open_memory(unsigned devices) {
    open_by_keys(devices);
    open_by_pages(devices);
}

static void open_pages_at(const void *pointer) {
    const range *in = find_range(pointer);
    if (in != nullptr && in->device >= 0) set_open(&all().ranges[in->base + in->bytes], true);
}

/* Kernels may use all memory of their device. Copies, fills and collectives say what they use, and most waits are for
 * one of them: to open and close every allocation each time takes longer than a test. */
void open_for(const work &w) {
    const unsigned devices = w.reach != 0 ? w.reach : 1u << w.device | all().devices[w.device].peers;
    if (w.touches.empty()) {
        open_memory(devices);
        return;
    }
    open_by_keys(devices);
    for (const void *pointer : w.touches) open_pages_at(pointer);
}

/* Pages stay open while another thread's work needs them. */
void close_memory() {
    open_by_keys(0);
    if (all().waiting == 0) open_by_pages(0);
}

static size_t round_up(size_t value, size_t to) {
    return (value + to - 1) / to * to;
}

static cudaError_t allocate(void **out, size_t bytes) {
    state &s = all();
    device &d = s.devices[current_device()];
    if (bytes > s.memory || d.used > s.memory - bytes) return cudaErrorMemoryAllocation;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t wanted = round_up(bytes, granule), map_bytes = round_up(wanted, page);
    /* a page before and one behind that stay closed */
    void *around = mmap(nullptr, map_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (around == MAP_FAILED) return cudaErrorMemoryAllocation;
    char *map = static_cast<char *>(around) + page, *base = map + map_bytes - wanted;
    range r = {base, map, bytes, map_bytes, current_device(), false, key_of(current_device())};
    if (r.key >= 0 && pkey_mprotect(map, map_bytes, PROT_READ | PROT_WRITE, r.key) != 0) die("pkey_mprotect failed");
    touch(&r, true);
    std::memset(base, fresh, bytes);
    std::memset(base + bytes, slack, wanted - bytes);
    touch(&r, false);
    s.ranges[base + bytes] = r;
    d.used += bytes;
    *out = base;
    return cudaSuccess;
}

/* The few bytes behind an allocation that are not behind a page's end are looked at when it is freed. */
static void check_slack(const range &r) {
    const size_t end = r.bytes + static_cast<size_t>(r.base - r.map);
    for (size_t i = end; i < r.map_bytes; i++) {
        if (static_cast<unsigned char>(r.map[i]) != slack) {
            die("device memory of %zu bytes was written %zu bytes behind its end", r.bytes, i - end + 1);
        }
    }
}

static void release(const char *end) {
    state &s = all();
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    range r = s.ranges[end];
    touch(&r, true);
    check_slack(r);
    touch(&r, false);
    char *around = r.map - page;
    const size_t bytes = r.map_bytes + 2 * page;
    if (mmap(around, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        die("mmap failed");
    }
    s.ranges.erase(end);
    s.devices[r.device].used -= r.bytes;
    s.freed.emplace_back(around, bytes);
    if (s.freed.size() <= kept_when_freed) return;
    munmap(s.freed.front().first, s.freed.front().second);
    s.freed.pop_front();
}

static cudaError_t allocate_host(void **out, size_t bytes) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = nullptr;
    const cudaError_t error = refuse_unsafe();
    if (error != cudaSuccess || bytes == 0) return error;
    char *base = static_cast<char *>(std::aligned_alloc(granule, round_up(bytes, granule)));
    if (base == nullptr) return cudaErrorMemoryAllocation;
    std::memset(base, fresh, bytes);
    all().ranges[base + bytes] = {base, base, bytes, bytes, -1, true, -1};
    *out = base;
    return cudaSuccess;
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaMalloc(void **out, size_t bytes) {
    return call([&] {
        if (out == nullptr) return cudaErrorInvalidValue;
        *out = nullptr;
        if (all().device_count == 0) return cudaErrorNoDevice;
        const cudaError_t error = refuse_unsafe();
        if (error != cudaSuccess || bytes == 0) return error;
        return allocate(out, bytes);
    });
}

cudaError_t cudaFree(void *pointer) {
    return call_release([&] {
        if (pointer == nullptr) return cudaSuccess;
        const range *r = find_range(pointer);
        if (r == nullptr || r->base != pointer || r->device < 0) return cudaErrorInvalidValue;
        const cudaError_t error = refuse_unsafe();
        if (error != cudaSuccess) return error;
        finish_device(r->device); /* as CUDA does */
        r = find_range(pointer);
        if (r == nullptr || r->base != pointer) return cudaErrorInvalidValue;
        release(r->base + r->bytes);
        return cudaSuccess;
    });
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
    return call([&] { return allocate_host(out, bytes); });
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    return call([&] { return flags > 7 ? cudaErrorInvalidValue : allocate_host(out, bytes); });
}

/* A registered range has no map: it is not the emulator's. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    return call([&] {
        char *base = static_cast<char *>(pointer);
        if (base == nullptr || bytes == 0 || flags > 7) return cudaErrorInvalidValue;
        if (find_range(base) != nullptr || find_range(base + bytes - 1) != nullptr)
            return cudaErrorHostMemoryAlreadyRegistered;
        const cudaError_t error = refuse_unsafe();
        if (error != cudaSuccess) return error;
        all().ranges[base + bytes] = {base, nullptr, bytes, 0, -1, true, -1};
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void *pointer) {
    return call_release([&] {
        const range *r = find_range(pointer);
        if (r == nullptr || r->base != pointer || r->device >= 0 || r->map != nullptr)
            return cudaErrorHostMemoryNotRegistered;
        all().ranges.erase(r->base + r->bytes);
        return cudaSuccess;
    });
}

cudaError_t cudaFreeHost(void *pointer) {
    return call_release([&] {
        if (pointer == nullptr) return cudaSuccess;
        const range *r = find_range(pointer);
        if (r == nullptr || r->base != pointer || r->device >= 0 || r->map == nullptr) return cudaErrorInvalidValue;
        const cudaError_t error = refuse_unsafe();
        if (error != cudaSuccess) return error;
        all().ranges.erase(r->base + r->bytes);
        std::free(pointer);
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer) {
    return call([&] {
        if (out == nullptr || pointer == nullptr) return cudaErrorInvalidValue;
        const range *r = find_range(pointer);
        *out = {cudaMemoryTypeUnregistered, -2, nullptr, const_cast<void *>(pointer)};
        if (r == nullptr || r->base + r->bytes == pointer) return cudaSuccess;
        out->type = r->device >= 0 ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        out->device = r->device >= 0 ? r->device : 0;
        out->devicePointer = const_cast<void *>(pointer);
        if (r->device >= 0) out->hostPointer = nullptr;
        return cudaSuccess;
    });
}

bool cuda_emulated_reachable(const void *pointer, size_t bytes) {
    const std::lock_guard<std::mutex> guard(all().lock);
    return find_range(pointer) != nullptr && lies_in_one(pointer, bytes);
}
