/* Devices, errors, and the knobs of tests. */
#include "emulator.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <pthread.h>

namespace emulator {

static thread_local cudaError_t last_error;
static thread_local int this_device;

state &all() {
    static state *const only = new state; // NOLINT: lives as long as the process
    return *only;
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("cuda_emulated: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::abort();
}

static void read_number(const char *name, long least, long most, const std::function<void(long)> &set) {
    const char *text = std::getenv(name);
    char *end = nullptr;
    if (text == nullptr || *text == '\0') return;
    const long value = std::strtol(text, &end, 10);
    if (*end != '\0' || value < least || value > most) die("%s='%s': a number %ld..%ld", name, text, least, most);
    set(value);
}

static void read_environment(state &s) {
    const long big = 0x7fffffffffffffff;
    read_number("CUDA_EMULATED_DEVICES", 0, max_devices, [&](long v) { s.device_count = static_cast<int>(v); });
    read_number("CUDA_EMULATED_FIRST", 0, max_devices, [&](long v) { s.first = static_cast<int>(v); });
    read_number("CUDA_EMULATED_PART", 0, 9, [&](long v) { s.part = static_cast<int>(v); });
    read_number("CUDA_EMULATED_MEMORY", 0, big, [&](long v) { s.memory = static_cast<size_t>(v); });
    read_number("CUDA_EMULATED_DRIVER", 0, 99999, [&](long v) { s.driver = static_cast<int>(v); });
    read_number("CUDA_EMULATED_CAPABILITY", 10, 999, [&](long v) { s.capability = static_cast<int>(v); });
    read_number("CUDA_EMULATED_PEERS", 0, 1, [&](long v) { s.peers_possible = v != 0; });
    read_number("CUDA_EMULATED_EAGER", 0, 1, [&](long v) { s.eager = v != 0; });
    read_number("CUDA_EMULATED_FAIL_AT", 0, big, [&](long v) { s.fail_at = v; });
    read_number("CUDA_EMULATED_FAIL_WORK_AT", 0, big, [&](long v) { s.fail_work_at = v; });
}

/* The state with the lock held: for knobs and calls alike. */
static void prepare(state &s) {
    if (s.ready) return;
    s.ready = true;
    read_environment(s);
    pthread_atfork(nullptr, nullptr, [] { all().forked = all().used; });
}

static bool counted_out(state &s) {
    s.calls++;
    return s.fail_at > 0 && --s.fail_at == 0;
}

cudaError_t call_begin(bool needs_device) {
    state &s = all();
    prepare(s);
    s.used = true;
    if (s.forked) return cudaErrorInitializationError; /* as CUDA: a context does not pass through fork */
    if (counted_out(s)) return cudaErrorUnknown;
    return needs_device ? s.devices[this_device].error : cudaSuccess;
}

cudaError_t call_end(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

int current_device() {
    return this_device;
}

} // namespace emulator

using namespace emulator;

/* ---- errors ---- */

cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() {
    return last_error;
}

namespace {
const struct {
    cudaError_t error;
    const char *name, *text;
} names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
} // namespace

const char *cudaGetErrorString(cudaError_t error) {
    for (const auto &entry : names) {
        if (entry.error == error) return entry.text;
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error) {
    for (const auto &entry : names) {
        if (entry.error == error) return entry.name;
    }
    return "unrecognized error code";
}

/* ---- devices ---- */

static cudaError_t usable(const state &s) {
    if (s.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
    return s.device_count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static cudaError_t check_device(int device) {
    const cudaError_t error = usable(all());
    if (error != cudaSuccess) return error;
    return device >= 0 && device < all().device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDriverGetVersion(int *version) {
    return call_aside([&] {
        if (version == nullptr) return cudaErrorInvalidValue;
        *version = all().driver;
        return cudaSuccess;
    });
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    return call_aside([&] {
        if (version == nullptr) return cudaErrorInvalidValue;
        *version = CUDART_VERSION;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceCount(int *count) {
    return call_aside([&] {
        if (count == nullptr) return cudaErrorInvalidValue;
        const cudaError_t error = usable(all());
        *count = error == cudaSuccess ? all().device_count : 0;
        return error;
    });
}

cudaError_t cudaSetDevice(int device) {
    return call_aside([&] {
        const cudaError_t error = check_device(device);
        if (error == cudaSuccess) this_device = device;
        return error == cudaSuccess ? all().devices[device].error : error;
    });
}

cudaError_t cudaGetDevice(int *device) {
    return call_aside([&] {
        if (device == nullptr) return cudaErrorInvalidValue;
        *device = this_device;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    return call_aside([&] {
        const cudaError_t error = properties == nullptr ? cudaErrorInvalidValue : check_device(device);
        if (error != cudaSuccess) return error;
        cudaDeviceProp p = {};
        std::snprintf(p.name, sizeof p.name, "Emulated GPU");
        std::snprintf(p.uuid.bytes, sizeof p.uuid.bytes, "emulated-%d.%d", all().first + device, all().part);
        p.totalGlobalMem = all().memory;
        p.sharedMemPerBlock = p.sharedMemPerBlockOptin = p.sharedMemPerMultiprocessor = 48 << 10;
        p.regsPerBlock = 65536;
        p.warpSize = 32;
        p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
        p.maxThreadsDim[2] = 64;
        p.maxGridSize[0] = 0x7fffffff;
        p.maxGridSize[1] = p.maxGridSize[2] = 65535;
        p.major = all().capability / 10;
        p.minor = all().capability % 10;
        p.multiProcessorCount = 4;
        p.concurrentKernels = p.unifiedAddressing = p.asyncEngineCount = 1;
        p.pciBusID = all().first + device + 1;
        p.memoryBusWidth = 64;
        p.l2CacheSize = 1 << 20;
        p.maxThreadsPerMultiProcessor = 2048;
        *properties = p;
        return cudaSuccess;
    });
}

static int attribute_value(cudaDeviceAttr attribute, int device) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return 48 << 10;
    case cudaDevAttrWarpSize:
        return 32;
    case cudaDevAttrMultiProcessorCount:
        return 4;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
        return 1000000;
    case cudaDevAttrGlobalMemoryBusWidth:
        return 64;
    case cudaDevAttrL2CacheSize:
        return 1 << 20;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return 2048;
    case cudaDevAttrAsyncEngineCount:
    case cudaDevAttrUnifiedAddressing:
        return 1;
    case cudaDevAttrPciBusId:
        return all().first + device + 1;
    case cudaDevAttrComputeCapabilityMajor:
        return all().capability / 10;
    case cudaDevAttrComputeCapabilityMinor:
        return all().capability % 10;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
        return 0;
    }
    return -1;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return call_aside([&] {
        const cudaError_t error = value == nullptr ? cudaErrorInvalidValue : check_device(device);
        if (error != cudaSuccess) return error;
        *value = attribute_value(attribute, device);
        return *value < 0 ? cudaErrorInvalidValue : cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device) {
    return call_aside([&] {
        const cudaError_t error = text == nullptr || bytes < 13 ? cudaErrorInvalidValue : check_device(device);
        if (error != cudaSuccess) return error;
        std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0",
                      static_cast<unsigned>(all().first + device + 1));
        return cudaSuccess;
    });
}

static cudaError_t check_pair(int device, int peer) {
    const cudaError_t error = check_device(device);
    return error == cudaSuccess ? check_device(peer) : error;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int from, int to) {
    return call_aside([&] {
        const cudaError_t error = value == nullptr || from == to ? cudaErrorInvalidValue : check_pair(from, to);
        if (error != cudaSuccess) return error;
        *value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : all().peers_possible;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return call_aside([&] {
        if (least != nullptr) *least = 0;
        if (greatest != nullptr) *greatest = -5;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return call_aside([&] {
        const cudaError_t error = can == nullptr ? cudaErrorInvalidValue : check_pair(device, peer);
        if (error != cudaSuccess) return error;
        *can = device != peer && all().peers_possible;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return call([&] {
        if (flags != 0) return cudaErrorInvalidValue;
        const cudaError_t error = check_pair(this_device, peer);
        if (error != cudaSuccess) return error;
        if (peer == this_device) return cudaErrorInvalidDevice;
        if (!all().peers_possible) return cudaErrorPeerAccessUnsupported;
        unsigned &peers = all().devices[this_device].peers;
        if ((peers & 1u << peer) != 0) return cudaErrorPeerAccessAlreadyEnabled;
        peers |= 1u << peer;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return call([&] {
        const cudaError_t error = check_pair(this_device, peer);
        if (error != cudaSuccess) return error;
        unsigned &peers = all().devices[this_device].peers;
        if ((peers & 1u << peer) == 0) return cudaErrorPeerAccessNotEnabled;
        peers &= ~(1u << peer);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize() {
    return call([&] {
        cudaError_t error = usable(all());
        if (error == cudaSuccess) error = refuse_unsafe();
        if (error != cudaSuccess) return error;
        finish_device(this_device);
        return all().devices[this_device].error;
    });
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    return call([&] {
        const state &s = all();
        const cudaError_t error = usable(s);
        if (error != cudaSuccess) return error;
        const size_t used = s.devices[this_device].used;
        if (free_bytes != nullptr) *free_bytes = used < s.memory ? s.memory - used : 0;
        if (total != nullptr) *total = s.memory;
        return cudaSuccess;
    });
}

/* ---- knobs ---- */

/* `change` with the lock held, after the environment was read, so that a knob wins over its variable. */
template <class Change> static auto knob(Change change) {
    const std::lock_guard<std::mutex> guard(all().lock);
    prepare(all());
    return change(all());
}

void cuda_emulated_set_devices(int count) {
    if (count < 0 || count > max_devices) die("%d devices: 0..%d", count, int{max_devices});
    knob([&](state &s) { s.device_count = count; });
}

void cuda_emulated_set_memory(size_t bytes) {
    knob([&](state &s) { s.memory = bytes; });
}

void cuda_emulated_set_driver(int version) {
    knob([&](state &s) { s.driver = version; });
}

void cuda_emulated_set_capability(int version) {
    knob([&](state &s) { s.capability = version; });
}

void cuda_emulated_set_peers(bool possible) {
    knob([&](state &s) { s.peers_possible = possible; });
}

void cuda_emulated_set_eager(bool eager) {
    knob([&](state &s) { s.eager = eager; });
}

void cuda_emulated_fail_at(long k) {
    knob([&](state &s) { s.fail_at = k; });
}

void cuda_emulated_fail_work_at(long k) {
    knob([&](state &s) { s.fail_work_at = k; });
}

long cuda_emulated_calls() {
    return knob([](state &s) { return s.calls; });
}

long cuda_emulated_work_done() {
    return knob([](state &s) { return s.work_done; });
}

long cuda_emulated_kernels_done() {
    return knob([](state &s) { return s.kernels; });
}

size_t cuda_emulated_memory_used(int device) {
    return knob([&](state &s) { return s.devices[device].used; });
}

size_t cuda_emulated_memory() {
    return knob([](state &s) { return s.memory; });
}

int cuda_emulated_live() {
    return knob([](state &s) {
        return static_cast<int>(s.ranges.size() + s.streams.size() + s.events.size() + s.graphs.size() +
                                s.execs.size());
    });
}

bool cuda_emulated_fails_now() {
    return knob([](state &s) { return counted_out(s) || s.devices[this_device].error != cudaSuccess; });
}

void cuda_emulated_reset() {
    knob([](state &s) {
        forget_captures();
        forget_streams();
        for (device &d : s.devices) {
            d.error = cudaSuccess;
            d.peers = 0;
        }
        s.fail_at = s.fail_work_at = 0;
        s.forked = false;
    });
    while (!all().ranges.empty()) {
        const range first = all().ranges.begin()->second;
        if (first.map == nullptr) {
            cudaHostUnregister(first.base);
        } else if (first.device < 0) {
            cudaFreeHost(first.base);
        } else {
            cudaFree(first.base);
        }
    }
    last_error = cudaSuccess;
    this_device = 0;
}
