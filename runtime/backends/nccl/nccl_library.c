/* Opens NCCL: which versions will do, the table of its functions. */
#include "runtime/backends/nccl/nccl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/nvidia/library.h"

#define FOLDERS "TANDEM_CUDA_LIBRARIES"

/* ---- versions ---- */

static const struct {
    int first, last;
    const char *trouble;
} troubles[] = {
    {22501, 22601, "ncclCommAbort of this version may hang after a failure; from 2.26.2 on it does not"},
    {22803, 22808, "this version may crash or hang when a communicator is aborted; from 2.28.9 on it does not"},
};

const char *tdm__nccl_version_trouble(int version) {
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        if (version >= troubles[i].first && version <= troubles[i].last) return troubles[i].trouble;
    }
    return NULL;
}

void tdm__nccl_version_print(char out[TDM_NCCL_VERSION_TEXT], int version) {
    int major = version >= 10000 ? 10000 : 1000; /* the version code had one digit less before 2.9 */
    snprintf(out, TDM_NCCL_VERSION_TEXT, "%d.%d.%d", version / major, version % major / 100, version % 100);
}

/* ---- opening ---- */

static bool check(const tdm_nvidia_library *library, void *handle, size_t *version, char *why, size_t bytes) {
    char found[TDM_NCCL_VERSION_TEXT];
    ncclResult_t (*get_version)(int *);
    *(void **)&get_version = dlsym(handle, library->get_version);
    int number = 0;
    if (get_version == NULL || get_version(&number) != ncclSuccess) {
        snprintf(why, bytes, "does not report a version, so it is not NCCL");
        return false;
    }
    *version = (size_t)number;
    tdm__nccl_version_print(found, number);
    const bool is_usable = number >= (int)library->least && number < 30000;
    snprintf(why, bytes, "%sNCCL %s%s", is_usable ? "" : "is ", found,
             is_usable ? "" : ", 2.19 or newer is needed (older ones cannot abort a communicator whose peer is lost)");
    return is_usable;
}

#define TDM_NCCL_SYMBOL(name) {"nccl" #name, offsetof(tdm_nccl_library, name), false},
#define TDM_NCCL_OPTIONAL(name, type) {"nccl" #name, offsetof(tdm_nccl_library, name), true},
static const tdm_nvidia_symbol symbols[] = {
#include "runtime/backends/nccl/nccl_symbols.def"
};
#undef TDM_NCCL_SYMBOL
#undef TDM_NCCL_OPTIONAL
static const tdm_nvidia_library nccl = {"libnccl.so.2",         check,   "ncclGetVersion",
                                        TDM_NCCL_VERSION_LEAST, symbols, sizeof symbols / sizeof symbols[0]};

const tdm_nccl_library *tdm__nccl_library(char *why, size_t bytes) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static tdm_nccl_library library; /* guarded while `opened` is false, constant afterwards */
    static bool opened;
    size_t version = 0;
    pthread_mutex_lock(&mutex);
    if (!opened) {
        opened = tdm__nvidia_open(&nccl, &library, &version, tdm__module_variable(FOLDERS), why, bytes) != NULL;
        library.version = (int)version;
    }
    bool usable = opened;
    pthread_mutex_unlock(&mutex);
    if (usable) {
        why[0] = '\0';
        return &library;
    }
    size_t used = strlen(why);
    snprintf(why + used, bytes - used, "; install NCCL 2.19 or newer, or name its folder in " FOLDERS);
    return NULL;
}
