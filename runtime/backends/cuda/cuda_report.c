/* The GPU part of a problem report: driver and libraries from CUDA, health and links from NVML.
 *
 * Every run writes a report, too, and a CUDA context costs time and memory on every GPU. So nothing here makes a
 * context; this is why free memory comes from NVML. What cannot be read gets a line that says so. What a kind of GPU
 * does not have is left out. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/cuda/cuda_nvml.h"
#include "runtime/backends/cuda/cuda_private.h"

enum { MOST_PEERS = 16, MOST_LINKS = 36 }; /* links: more than any GPU has */

typedef struct report {
    void (*line)(void *user, const char *key, const char *value);
    void *user;
    tdm_nvml nvml; /* its handle is NULL if NVML cannot be used */
    char nvml_text[640];
} report;

typedef struct gpu {
    nvmlDevice_t handle; /* NULL: NVML is absent or does not know the GPU */
    unsigned domain, bus, device;
} gpu;

/* ---- lines ---- */

/* A line about a GPU, with the key "cuda:0 ECC"; with index -1 about all of them, with the key `what`. */
static void put(const report *r, int index, const char *what, const char *format, ...) TDM_PRINTF(4, 5);
static void put(const report *r, int index, const char *what, const char *format, ...) {
    char key[32], value[1024];
    va_list arguments;
    if (index < 0)
        snprintf(key, sizeof key, "%s", what);
    else
        snprintf(key, sizeof key, "cuda:%d%s%s", index, what[0] != '\0' ? " " : "", what);
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    r->line(r->user, key, value);
}

/* Returns whether NVML answered. Reports an error, unless the GPU does not support the question. */
static bool answered(const report *r, int index, const char *what, nvmlReturn_t result) {
    if (result == NVML_SUCCESS) return true;
    if (result != NVML_ERROR_NOT_SUPPORTED)
        put(r, index, what, "NVML cannot read it: %s", r->nvml.nvmlErrorString(result));
    return false;
}

/* GiB in tenths, so that the locale does not change the decimal point. */
typedef struct gib {
    unsigned long long whole, tenth;
} gib;

static gib to_gib(unsigned long long bytes) {
    const unsigned long long tenths = (bytes * 10 + (1ull << 29)) >> 30;
    return (gib){tenths / 10, tenths % 10};
}

/* ---- versions and libraries ---- */

/* The file that a function came from. Several copies of a library on one machine are a common cause of trouble. */
static const char *file_of(const void *function, const char *otherwise) {
    Dl_info where;
    return dladdr(function, &where) != 0 && where.dli_fname != NULL ? where.dli_fname : otherwise;
}
#define FILE_OF(function, otherwise) file_of((const void *)(uintptr_t)(function), (otherwise))

/* Opens NVML and notes where it was found, or why it cannot be used. */
static void nvml_begin(report *r) {
    char text[512];
    if (!tdm__cuda_nvml_open(&r->nvml, text, sizeof text)) {
        snprintf(r->nvml_text, sizeof r->nvml_text,
                 "absent, so free memory, ECC, clocks, power and NVLinks are unknown: %s", text);
        return;
    }
    const nvmlReturn_t result = r->nvml.nvmlInit_v2();
    if (result == NVML_SUCCESS) {
        snprintf(r->nvml_text, sizeof r->nvml_text, "%s", FILE_OF(r->nvml.nvmlInit_v2, text));
        return;
    }
    snprintf(r->nvml_text, sizeof r->nvml_text, "WARNING: it does not start: %s (%s)", r->nvml.nvmlErrorString(result),
             text);
    tdm__cuda_nvml_close(&r->nvml);
}

static void nvml_end(report *r) {
    if (r->nvml.handle == NULL) return;
    (void)r->nvml.nvmlShutdown();
    tdm__cuda_nvml_close(&r->nvml);
}

static void put_versions(const report *r) {
    int driver = 0, runtime = 0;
    char name[80] = "";
    if (r->nvml.handle != NULL && r->nvml.nvmlSystemGetDriverVersion(name, sizeof name) != NVML_SUCCESS) name[0] = '\0';
    if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        (void)cudaGetLastError();
    put(r, -1, "driver", "%.79s%sfor CUDA %d.%d", name, name[0] != '\0' ? ", " : "", driver / 1000, driver % 1000 / 10);
    put(r, -1, "CUDA runtime", "%d.%d", runtime / 1000, runtime % 1000 / 10);
}

static void put_library(const report *r, const char *key, size_t version, const char *file) {
    put(r, -1, key, "%s, %s", tdm__cuda_version_text(version).of, file);
}

static void put_libraries(const report *r) {
    char why[1024] = "";
    const tdm_cuda_libraries *l = tdm__cuda_libraries(why, sizeof why);
    if (l == NULL) {
        put(r, -1, "cublasLt", "absent: %s", why);
        return;
    }
    put_library(r, "cublasLt", l->blas.version, FILE_OF(l->blas.cublasLtCreate, l->blas_text));
#ifndef TDM_CUDA_NO_CUDNN
    if (l->dnn.handle != NULL) {
        put_library(r, "cuDNN", l->dnn.version, FILE_OF(l->dnn.cudnnCreate, l->dnn_text));
        return;
    }
#endif
    put(r, -1, "cuDNN", "absent, so convolutions run by im2col and cublasLt: %s", l->dnn_text);
}

/* ---- one GPU ---- */

static void put_memory(const report *r, int index, nvmlDevice_t device, size_t bytes) {
    nvmlMemory_t memory = {0};
    const gib total = to_gib(bytes);
    bool known = device != NULL && answered(r, index, "free memory", r->nvml.nvmlDeviceGetMemoryInfo(device, &memory));
    /* NVML reports the whole GPU; CUDA may see only an instance of it (MIG). */
    if (memory.total / 4 * 3 > bytes) known = false;
    const gib available = to_gib(memory.free);
    if (known) {
        put(r, index, "memory", "%llu.%llu GiB, %llu.%llu GiB free", total.whole, total.tenth, available.whole,
            available.tenth);
    } else {
        put(r, index, "memory", "%llu.%llu GiB", total.whole, total.tenth);
    }
}

static void put_ecc(const report *r, int index, nvmlDevice_t device) {
    static const char *const key = "ECC", *const names[] = {"off", "on"};
    const tdm_nvml *n = &r->nvml;
    nvmlEnableState_t now = NVML_FEATURE_DISABLED, next = NVML_FEATURE_DISABLED;
    unsigned long long recent = 0, all = 0;
    char later[48] = "", life[48] = "";
    if (!answered(r, index, key, n->nvmlDeviceGetEccMode(device, &now, &next))) return;
    if (next != now) snprintf(later, sizeof later, ", %s after a reset", names[next == NVML_FEATURE_ENABLED]);
    if (now != NVML_FEATURE_ENABLED) {
        put(r, index, key, "off%s", later);
        return;
    }
    nvmlReturn_t result =
        n->nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &recent);
    if (result == NVML_SUCCESS)
        result = n->nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC, &all);
    if (!answered(r, index, key, result)) return;
    if (all > 0) snprintf(life, sizeof life, " (%llu in the GPU's life)", all);
    if (recent > 0) {
        put(r, index, key,
            "WARNING: on%s, %llu uncorrected error%s since the driver was loaded%s; reset the GPU, and have it checked "
            "if they come back",
            later, recent, recent == 1 ? "" : "s", life);
    } else {
        put(r, index, key, "on%s, no uncorrected errors since the driver was loaded%s", later, life);
    }
}

static void put_clocks(const report *r, int index, nvmlDevice_t device) {
    const tdm_nvml *n = &r->nvml;
    unsigned sm = 0, sm_most = 0, memory = 0, memory_most = 0;
    nvmlReturn_t result = n->nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &sm);
    if (result == NVML_SUCCESS) result = n->nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM, &sm_most);
    if (result == NVML_SUCCESS) result = n->nvmlDeviceGetClockInfo(device, NVML_CLOCK_MEM, &memory);
    if (result == NVML_SUCCESS) result = n->nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_MEM, &memory_most);
    if (answered(r, index, "clocks", result))
        put(r, index, "clocks", "SM %u of %u MHz, memory %u of %u MHz", sm, sm_most, memory, memory_most);
}

static void put_power(const report *r, int index, nvmlDevice_t device) {
    const tdm_nvml *n = &r->nvml;
    unsigned now = 0, limit = 0, celsius = 0;
    char power[48] = "", heat[16] = "";
    nvmlReturn_t result = n->nvmlDeviceGetPowerUsage(device, &now);
    if (result == NVML_SUCCESS) result = n->nvmlDeviceGetEnforcedPowerLimit(device, &limit);
    if (answered(r, index, "power", result))
        snprintf(power, sizeof power, "%u of %u W", (now + 500) / 1000, (limit + 500) / 1000);
    result = n->nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius);
    if (answered(r, index, "heat", result)) snprintf(heat, sizeof heat, "%u C", celsius);
    if (power[0] != '\0') put(r, index, "power", "%s%s%s", power, heat[0] != '\0' ? ", " : "", heat);
    if (power[0] == '\0' && heat[0] != '\0') put(r, index, "heat", "%s", heat);
}

/* An idle GPU lowers its clocks, and an administrator may have set lower ones. Neither is a problem. */
static void put_throttling(const report *r, int index, nvmlDevice_t device) {
    static const struct {
        unsigned long long bit;
        const char *text;
    } reasons[] = {
        {nvmlClocksThrottleReasonHwThermalSlowdown, "temperature (hardware)"},
        {nvmlClocksThrottleReasonSwThermalSlowdown, "temperature (driver)"},
        {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "the power supply's brake"},
        {nvmlClocksThrottleReasonSwPowerCap, "the power limit"},
        {nvmlClocksThrottleReasonHwSlowdown, "the hardware"},
        {nvmlClocksThrottleReasonSyncBoost, "a slower GPU of its sync boost group"},
    };
    static const char *const key = "throttling";
    unsigned long long bits = 0;
    char text[256] = "";
    if (!answered(r, index, key, r->nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits))) return;
    /* The general bit comes with the two bits that name the cause. */
    if (bits & (nvmlClocksThrottleReasonHwThermalSlowdown | nvmlClocksThrottleReasonHwPowerBrakeSlowdown))
        bits &= ~nvmlClocksThrottleReasonHwSlowdown;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        const size_t used = strlen(text);
        if (bits & reasons[i].bit)
            snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "", reasons[i].text);
    }
    if (text[0] != '\0') {
        put(r, index, key, "WARNING: its clocks are limited by %s", text);
    } else {
        put(r, index, key, "none%s",
            bits & nvmlClocksThrottleReasonApplicationsClocksSetting ? "; its clocks were set by hand" : "");
    }
}

static void put_health(const report *r, int index, nvmlDevice_t device) {
    put_ecc(r, index, device);
    put_clocks(r, index, device);
    put_power(r, index, device);
    put_throttling(r, index, device);
}

static gpu put_device(const report *r, int index) {
    struct cudaDeviceProp p;
    gpu g = {0};
    char bus[32] = "";
    cudaError_t error = cudaGetDeviceProperties(&p, index);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(bus, (int)sizeof bus, index);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        put(r, index, "", "WARNING: CUDA cannot read its properties: %s, %s", cudaGetErrorName(error),
            cudaGetErrorString(error));
        return g;
    }
    const bool serves = p.major * 10 + p.minor >= TDM_CUDA_LEAST_CAPABILITY;
    put(r, index, "", "%s%.95s, compute capability %d.%d%s, %d multiprocessors, PCI %s",
        serves ? "" : "WARNING: ", p.name, p.major, p.minor, serves ? "" : " (7.5 or newer is needed)",
        p.multiProcessorCount, bus);
    g.domain = (unsigned)p.pciDomainID;
    g.bus = (unsigned)p.pciBusID;
    g.device = (unsigned)p.pciDeviceID;
    if (r->nvml.handle != NULL &&
        !answered(r, index, "health", r->nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &g.handle)))
        g.handle = NULL;
    put_memory(r, index, g.handle, p.totalGlobalMem);
    if (g.handle != NULL) put_health(r, index, g.handle);
    return g;
}

/* ---- peers ---- */

typedef struct peers {
    int count;
    gpu gpus[MOST_PEERS];
    unsigned links[MOST_PEERS][MOST_PEERS]; /* NVLinks: to a switch on the diagonal, to another GPU elsewhere */
} peers;

static void count_link(const report *r, peers *p, int from, unsigned link) {
    const tdm_nvml *n = &r->nvml;
    const nvmlDevice_t device = p->gpus[from].handle;
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    nvmlIntNvLinkDeviceType_t kind = NVML_NVLINK_DEVICE_TYPE_GPU;
    nvmlPciInfo_t remote = {0};
    if (n->nvmlDeviceGetNvLinkState(device, link, &active) != NVML_SUCCESS || active != NVML_FEATURE_ENABLED) return;
    if (n->nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &kind) == NVML_SUCCESS &&
        kind == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
        p->links[from][from]++;
        return;
    }
    if (n->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &remote) != NVML_SUCCESS) return;
    for (int to = 0; to < p->count; to++) {
        const gpu *other = &p->gpus[to];
        if (to != from && remote.domain == other->domain && remote.bus == other->bus && remote.device == other->device)
            p->links[from][to]++;
    }
}

/* Describes how `from` reaches `to`. Through switches a pair has as many links as the GPU with fewer. */
static void describe_pair(const peers *p, int from, int to, char *out, size_t bytes) {
    const unsigned own = p->links[from][from], its = p->links[to][to];
    const unsigned links = p->links[from][to] + (own < its ? own : its);
    int direct = 0;
    if (from == to) {
        snprintf(out, bytes, "-");
    } else if (cudaDeviceCanAccessPeer(&direct, from, to) != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(out, bytes, "?");
    } else if (links == 0) {
        snprintf(out, bytes, "%s", direct ? "yes" : "no");
    } else {
        snprintf(out, bytes, "%sNV%u", direct ? "" : "no/", links);
    }
}

static void put_peers(const report *r, peers *p) {
    char cell[MOST_PEERS][MOST_PEERS][16];
    int width = 0;
    for (int from = 0; from < p->count; from++) {
        for (unsigned link = 0; p->gpus[from].handle != NULL && link < MOST_LINKS; link++) count_link(r, p, from, link);
    }
    for (int from = 0; from < p->count; from++) {
        for (int to = 0; to < p->count; to++) {
            describe_pair(p, from, to, cell[from][to], sizeof cell[from][to]);
            const int length = (int)strlen(cell[from][to]);
            if (length > width) width = length;
        }
    }
    put(r, -1, "peers", "NV4: direct access to memory over 4 NVLinks; yes: direct access; no: through the host");
    for (int from = 0; from < p->count; from++) {
        char row[MOST_PEERS * (sizeof cell[0][0] + 2)] = "";
        size_t used = 0;
        for (int to = 0; to < p->count; to++) {
            const bool last = to + 1 == p->count;
            used += (size_t)snprintf(row + used, sizeof row - used, "%-*s%s", last ? 0 : width, cell[from][to],
                                     last ? "" : "  ");
        }
        put(r, from, "peers", "%s", row);
    }
}

tdm_status tdm__cuda_report(void (*line)(void *user, const char *key, const char *value), void *user) {
    report r = {.line = line, .user = user};
    peers p = {0};
    int count = 0;
    TDM_MODULE_TRY(tdm__cuda_count(&count));
    nvml_begin(&r);
    put_versions(&r);
    put_libraries(&r);
    put(&r, -1, "NVML", "%s", r.nvml_text);
    for (int index = 0; index < count; index++) {
        const gpu g = put_device(&r, index);
        if (index < MOST_PEERS) p.gpus[p.count++] = g;
    }
    if (p.count > 1) put_peers(&r, &p);
    nvml_end(&r);
    return TDM_OK;
}
