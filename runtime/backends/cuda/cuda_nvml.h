/* NVML, NVIDIA's management library: ECC, clocks, power and NVLinks, for reports. No package that the build needs has
 * its header, so the parts in use are declared here; names, values and signatures are NVML's. */
#ifndef TDM_CUDA_NVML_H
#define TDM_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef enum nvmlEnableState_enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;
typedef enum nvmlMemoryErrorType_enum { NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 } nvmlMemoryErrorType_t;
typedef enum nvmlEccCounterType_enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 } nvmlEccCounterType_t;
typedef enum nvmlClockType_enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 } nvmlClockType_t;
typedef enum nvmlTemperatureSensors_enum { NVML_TEMPERATURE_GPU = 0 } nvmlTemperatureSensors_t;
typedef enum nvmlIntNvLinkDeviceType_enum {
    NVML_NVLINK_DEVICE_TYPE_GPU = 0,
    NVML_NVLINK_DEVICE_TYPE_SWITCH = 2
} nvmlIntNvLinkDeviceType_t;

/* Bits of nvmlDeviceGetCurrentClocksThrottleReasons. */
#define nvmlClocksThrottleReasonGpuIdle 0x001ull
#define nvmlClocksThrottleReasonApplicationsClocksSetting 0x002ull
#define nvmlClocksThrottleReasonSwPowerCap 0x004ull
#define nvmlClocksThrottleReasonHwSlowdown 0x008ull
#define nvmlClocksThrottleReasonSyncBoost 0x010ull
#define nvmlClocksThrottleReasonSwThermalSlowdown 0x020ull
#define nvmlClocksThrottleReasonHwThermalSlowdown 0x040ull
#define nvmlClocksThrottleReasonHwPowerBrakeSlowdown 0x080ull

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct nvmlMemory_st {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct nvmlPciInfo_st {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

#define TDM_SYMBOL(name, result, parameters) result name parameters;
#include "runtime/backends/cuda/nvml.def"
#undef TDM_SYMBOL

#define TDM_SYMBOL(name, result, parameters) __typeof__(&name) name;
typedef struct tdm_nvml {
    void *handle; /* NULL: absent */
#include "runtime/backends/cuda/nvml.def"
} tdm_nvml;
#undef TDM_SYMBOL

/* Opens NVML, searching as for cublasLt. `text` gets the path it was opened from, or every path tried and why it would
 * not do. */
bool tdm__cuda_nvml_open(tdm_nvml *nvml, char *text, size_t bytes);
void tdm__cuda_nvml_close(tdm_nvml *nvml);

#ifdef __cplusplus
}
#endif
#endif
