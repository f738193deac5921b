/* The CUDA module and one of its devices, for tests; TANDEM_MODULE_PATH says which module: the emulated one, or the
 * real one where there is a GPU. */
#ifndef TDM_TESTS_CUDA_DEVICE_H
#define TDM_TESTS_CUDA_DEVICE_H

#include <tandem/job.h>

#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

static inline const tdm_module *cuda_module(void) {
    static const tdm_module *found;
    static tdm_module_report report;
    if (found != NULL) return found;
    if (tdm__module_find(&found, tdm_host_default(), "cuda", NULL, &report) != TDM_OK || found == NULL)
        SKIP_PROGRAM(report.text);
    return found;
}

static inline tdm_device *cuda_open(void) {
    tdm_device *device = NULL;
    const tdm_device_options options = {.index = 0, .precision = TDM_F32, .deterministic = true};
    CHECK_OK(cuda_module()->device->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

static inline const tdm_kernel *cuda_kernel(const char *op) {
    const tdm_kernel *const *kernel = cuda_module()->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

#endif
