/* libnvidia-ml.so.1, played: tells of the emulated GPUs, each by its PCI address, what the environment says.
 *
 *   NVML_EMULATED_ECC         1: on, 0: off, 2: off, and on after a reset
 *   NVML_EMULATED_ECC_ERRORS  uncorrected errors of the first GPU; it has had two more before
 *   NVML_EMULATED_THROTTLING  what holds the first GPU's clocks down, as bits
 *   NVML_EMULATED_LINKS       NVLinks between the GPUs 0 and 1, 2 and 3, ...; -1: 18 of every GPU to switches
 *   NVML_EMULATED_SUPPORTED   0: only memory is told
 *   NVML_EMULATED_INIT        what nvmlInit_v2 returns
 *
 * Closed while somebody has not shut it down, it ends the program. */
#include "fake_library.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#pragma GCC visibility push(default)
#include "runtime/backends/cuda/cuda_nvml.h"
#pragma GCC visibility pop

struct nvmlDevice_st {
    unsigned index;
};

namespace {

enum { most_devices = 16, links_of_all = 18 };

struct knobs {
    long ecc, ecc_errors, throttling, links, supported;
};

nvmlDevice_st devices[most_devices];
std::atomic<int> users;
knobs now;

long number(const char *name, long otherwise) {
    const char *text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::strtol(text, nullptr, 0) : otherwise;
}

const struct at_close {
    ~at_close() {
        if (users == 0) return;
        std::fputs("fake_nvml: closed without nvmlShutdown\n", stderr);
        std::abort();
    }
} guard;

/* The beginning of every question. */
nvmlReturn_t enter(const nvmlDevice_st *device, const void *out) {
    if (users == 0) return NVML_ERROR_UNINITIALIZED;
    if (cuda_emulated_fails_now()) return NVML_ERROR_UNKNOWN;
    if (device < devices || device >= devices + most_devices || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

template <class Value> nvmlReturn_t answer(const nvmlDevice_st *device, Value *out, Value value) {
    const nvmlReturn_t entered = enter(device, out);
    if (entered != NVML_SUCCESS) return entered;
    if (now.supported == 0) return NVML_ERROR_NOT_SUPPORTED;
    *out = value;
    return NVML_SUCCESS;
}

bool has_link(unsigned link) {
    return link < static_cast<unsigned>(now.links < 0 ? long{links_of_all} : now.links);
}

} // namespace

/* ---- the library ---- */

nvmlReturn_t nvmlInit_v2() {
    const long result = number("NVML_EMULATED_INIT", NVML_SUCCESS);
    if (result != NVML_SUCCESS) return static_cast<nvmlReturn_t>(result);
    if (cuda_emulated_fails_now()) return NVML_ERROR_UNKNOWN;
    for (unsigned i = 0; i < most_devices; i++) devices[i].index = i;
    now = {number("NVML_EMULATED_ECC", 1), number("NVML_EMULATED_ECC_ERRORS", 0), number("NVML_EMULATED_THROTTLING", 1),
           number("NVML_EMULATED_LINKS", 4), number("NVML_EMULATED_SUPPORTED", 1)};
    users++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown() {
    if (users == 0) return NVML_ERROR_UNINITIALIZED;
    users--;
    return cuda_emulated_fails_now() ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "Driver/library version mismatch";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned bytes) {
    const nvmlReturn_t entered = enter(devices, version);
    if (entered == NVML_SUCCESS) std::snprintf(version, bytes, "580.82.07");
    return entered;
}

/* ---- a GPU ---- */

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    unsigned domain = 0, bus = 0, slot = 0;
    const nvmlReturn_t entered = enter(devices, device);
    if (entered != NVML_SUCCESS) return entered;
    if (bus_id == nullptr || std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (domain != 0 || bus < 1 || bus > most_devices || slot != 0) return NVML_ERROR_NOT_FOUND;
    *device = &devices[bus - 1];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    const nvmlReturn_t entered = enter(device, memory);
    if (entered != NVML_SUCCESS) return entered;
    memory->total = cuda_emulated_memory();
    memory->used = cuda_emulated_memory_used(static_cast<int>(device->index));
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    const nvmlReturn_t told = answer(device, current, now.ecc == 1 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
    if (told == NVML_SUCCESS) *pending = now.ecc != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return told;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *count) {
    if (type != NVML_MEMORY_ERROR_TYPE_UNCORRECTED) return NVML_ERROR_INVALID_ARGUMENT;
    const bool has = device == devices && now.ecc_errors > 0;
    const long before = counter == NVML_AGGREGATE_ECC ? 2 : 0;
    return answer(device, count, static_cast<unsigned long long>(has ? now.ecc_errors + before : 0));
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    return answer(device, mhz, type == NVML_CLOCK_SM ? 345u : 2619u);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    return answer(device, mhz, type == NVML_CLOCK_SM ? 1980u : 3201u);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned *celsius) {
    return answer(device, celsius, 31u);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    return answer(device, milliwatts, 76543u);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
    return answer(device, milliwatts, 700000u);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
    const long bits = device == devices ? now.throttling : long{nvmlClocksThrottleReasonGpuIdle};
    return answer(device, reasons, static_cast<unsigned long long>(bits));
}

/* ---- NVLinks ---- */

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *active) {
    if (link >= links_of_all) return NVML_ERROR_INVALID_ARGUMENT;
    return answer(device, active, has_link(link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, nvmlIntNvLinkDeviceType_t *type) {
    if (!has_link(link)) return NVML_ERROR_INVALID_ARGUMENT;
    return answer(device, type, now.links < 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci) {
    nvmlPciInfo_t remote = {};
    if (!has_link(link)) return NVML_ERROR_INVALID_ARGUMENT;
    if (device != nullptr) remote.bus = now.links < 0 ? 0xc0 + link % 4 : (device->index ^ 1) + 1;
    std::snprintf(remote.busId, sizeof remote.busId, "00000000:%02X:00.0", remote.bus);
    return answer(device, pci, remote);
}
