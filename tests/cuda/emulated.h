/* The emulated CUDA module, opened as the library would open it, and the knobs of the emulator. CMakeLists.txt says
 * where they are: EMULATED_MODULE, and FAKE_LIBRARIES, the folder of the libraries that play cublasLt and cuDNN. */
#ifndef TDM_TESTS_CUDA_EMULATED_H
#define TDM_TESTS_CUDA_EMULATED_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include <tandem/sys/device.h>
#include <tandem/sys/module.h>

#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

typedef struct emulated {
    const tdm_module *module;
    const tdm_device_ops *ops;
    void (*reset)(void);
    void (*set_devices)(int count);
    void (*set_memory)(size_t bytes);
    void (*set_driver)(int version);
    void (*set_capability)(int version);
    void (*set_peers)(bool possible);
    void (*fail_at)(long k);
    void (*fail_work_at)(long k);
    long (*calls)(void);
    long (*work_done)(void);
    int (*live)(void);
    int (*stream_priority)(void *stream, int *priority); /* cudaStreamGetPriority */
} emulated;

static inline void emulated_find(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    if (address == NULL) {
        fprintf(stderr, "%s has no %s\n", EMULATED_MODULE, name);
        exit(1);
    }
    memcpy(function, &address, sizeof address);
}

/* A fresh CUDA: no allocations, default knobs, cublasLt and cuDNN where they are. */
static inline const emulated *emulated_open(void) {
    static emulated e;
    if (e.module == NULL) {
        void *library = dlopen(EMULATED_MODULE, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        e.module = dlsym(library, TDM_MODULE_SYMBOL);
        if (e.module == NULL) exit(1);
        e.ops = e.module->device;
        emulated_find(library, "cuda_emulated_reset", &e.reset);
        emulated_find(library, "cuda_emulated_set_devices", &e.set_devices);
        emulated_find(library, "cuda_emulated_set_memory", &e.set_memory);
        emulated_find(library, "cuda_emulated_set_driver", &e.set_driver);
        emulated_find(library, "cuda_emulated_set_capability", &e.set_capability);
        emulated_find(library, "cuda_emulated_set_peers", &e.set_peers);
        emulated_find(library, "cuda_emulated_fail_at", &e.fail_at);
        emulated_find(library, "cuda_emulated_fail_work_at", &e.fail_work_at);
        emulated_find(library, "cuda_emulated_calls", &e.calls);
        emulated_find(library, "cuda_emulated_work_done", &e.work_done);
        emulated_find(library, "cuda_emulated_live", &e.live);
        emulated_find(library, "cudaStreamGetPriority", &e.stream_priority);
        e.module->init(&tdm__host_calls);
    }
    setenv("TANDEM_CUDA_LIBRARIES", FAKE_LIBRARIES, 1);
    e.fail_at(0);
    e.fail_work_at(0);
    e.reset();
    e.set_driver(13000);
    e.set_devices(2);
    e.set_capability(90);
    e.set_peers(true);
    e.set_memory((size_t)1 << 30);
    return &e;
}

#endif
