/* See cuda_libraries.h and cuda_nvml.h. A library will do if it is new enough, which is checked first, and has every
 * function of its table. One that will not do is closed, and the next path is tried. */
#include "runtime/backends/cuda/kit/cuda_libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/cuda/kit/cuda.h"
#include "runtime/backends/cuda/cuda_nvml.h"

typedef struct symbol {
    const char *name;
    size_t offset; /* of the function's pointer in the table */
} symbol;

typedef struct library_spec {
    const char *file;
    const char *version_function; /* size_t (*)(void); NULL: any version will do */
    size_t least;                 /* the oldest version that will do */
    const symbol *symbols;
    size_t count;
} library_spec;

#define TDM_SYMBOL(name) {#name, offsetof(tdm_cublaslt, name)},
static const symbol blas_symbols[] = {
#include "runtime/backends/cuda/kit/cublaslt.def"
};
#undef TDM_SYMBOL
static const library_spec blas_spec = {"libcublasLt.so.13", "cublasLtGetVersion", 130000, blas_symbols,
                                       sizeof blas_symbols / sizeof blas_symbols[0]};

#ifndef TDM_CUDA_NO_CUDNN
#define TDM_SYMBOL(name) {#name, offsetof(tdm_cudnn, name)},
static const symbol dnn_symbols[] = {
#include "runtime/backends/cuda/kit/cudnn.def"
};
#undef TDM_SYMBOL
static const library_spec dnn_spec = {"libcudnn.so.9", "cudnnGetVersion", 90000, dnn_symbols,
                                      sizeof dnn_symbols / sizeof dnn_symbols[0]};
#endif

#define TDM_SYMBOL(name) {#name, offsetof(tdm_nvml, name)},
static const symbol nvml_symbols[] = {
#include "runtime/backends/cuda/nvml.def"
};
#undef TDM_SYMBOL
static const library_spec nvml_spec = {"libnvidia-ml.so.1", NULL, 0, nvml_symbols,
                                       sizeof nvml_symbols / sizeof nvml_symbols[0]};

typedef struct attempt {
    const library_spec *what;
    void *table; /* tdm_cublaslt, tdm_cudnn or tdm_nvml */
    void *handle;
    size_t version;
    char *text;
    size_t room;
} attempt;

static void note(attempt *a, const char *format, ...) TDM_PRINTF(2, 3);
static void note(attempt *a, const char *format, ...) {
    size_t used = strlen(a->text);
    va_list arguments;
    if (used > 0 && used + 2 < a->room) {
        strcpy(a->text + used, "; ");
        used += 2;
    }
    va_start(arguments, format);
    vsnprintf(a->text + used, a->room - used, format, arguments);
    va_end(arguments);
}

/* Versions from 9 on are major * 10000 + minor * 100 + patch in both libraries. */
static bool is_new_enough(attempt *a, const char *path, void *library) {
    size_t (*version)(void) = NULL;
    if (a->what->version_function == NULL) return true;
    void *address = dlsym(library, a->what->version_function);
    if (address == NULL) {
        note(a, "%s has no %s", path, a->what->version_function);
        return false;
    }
    memcpy(&version, &address, sizeof version);
    a->version = version();
    if (a->version >= a->what->least) return true;
    note(a, "%s is version %zu, %zu or newer is needed", path, a->version, a->what->least);
    return false;
}

static bool has_symbols(attempt *a, const char *path, void *library) {
    for (size_t i = 0; i < a->what->count; i++) {
        void *address = dlsym(library, a->what->symbols[i].name);
        if (address == NULL) {
            if (a->what->version_function != NULL) {
                note(a, "%s, version %zu, has no %s", path, a->version, a->what->symbols[i].name);
            } else {
                note(a, "%s has no %s", path, a->what->symbols[i].name);
            }
            return false;
        }
        memcpy((char *)a->table + a->what->symbols[i].offset, &address, sizeof address);
    }
    return true;
}

static void try_path(attempt *a, const char *path) {
    if (a->handle != NULL) return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        note(a, "%s", why != NULL ? why : path);
        return;
    }
    if (!is_new_enough(a, path, library) || !has_symbols(a, path, library)) {
        dlclose(library);
        return;
    }
    a->handle = library;
    snprintf(a->text, a->room, "%s", path);
}

static void *find(const library_spec *what, void *table, size_t *version, const char *folders, char *text,
                  size_t room) {
    attempt a = {.what = what, .table = table, .text = text, .room = room};
    while (folders != NULL && *folders != '\0') {
        char path[PATH_MAX];
        const size_t length = strcspn(folders, ":");
        const int path_bytes = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, what->file);
        if (length > 0 && path_bytes > 0 && (size_t)path_bytes < sizeof path) try_path(&a, path);
        folders += length + (folders[length] == ':');
    }
    try_path(&a, what->file);
    *version = a.handle != NULL ? a.version : 0;
    return a.handle;
}

bool tdm__cuda_libraries_open(tdm_cuda_libraries *libraries, const char *folders) {
    tdm_cuda_libraries *l = libraries;
    memset(l, 0, sizeof *l);
    /* cublasLt comes first: cuDNN uses it, too, and takes the copy that is already loaded. */
    l->blas.handle = find(&blas_spec, &l->blas, &l->blas.version, folders, l->blas_text, sizeof l->blas_text);
    if (l->blas.handle == NULL) return false;
#ifdef TDM_CUDA_NO_CUDNN
    snprintf(l->dnn_text, sizeof l->dnn_text, "tandem was built without cudnn.h");
#else
    l->dnn.handle = find(&dnn_spec, &l->dnn, &l->dnn.version, folders, l->dnn_text, sizeof l->dnn_text);
#endif
    return true;
}

void tdm__cuda_libraries_close(tdm_cuda_libraries *libraries) {
    if (libraries->dnn.handle != NULL) dlclose(libraries->dnn.handle);
    if (libraries->blas.handle != NULL) dlclose(libraries->blas.handle);
    memset(libraries, 0, sizeof *libraries);
}

static const char *folders_of_user(void) {
    const tdm_host_calls *host = tdm__cuda_host();
    if (host == NULL || host->size < offsetof(tdm_host_calls, environment) + sizeof host->environment) return NULL;
    return host->environment != NULL ? host->environment("TANDEM_CUDA_LIBRARIES") : NULL;
}

const tdm_cuda_libraries *tdm__cuda_libraries(char *why, size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static tdm_cuda_libraries found;
    pthread_mutex_lock(&lock);
    const bool usable = found.blas.handle != NULL || tdm__cuda_libraries_open(&found, folders_of_user());
    if (!usable && why != NULL)
        snprintf(why, bytes,
                 "cublasLt 13 was not found: %s; install CUDA's libcublas 13, or name its folder in "
                 "TANDEM_CUDA_LIBRARIES",
                 found.blas_text);
    pthread_mutex_unlock(&lock);
    return usable ? &found : NULL;
}

bool tdm__cuda_nvml_open(tdm_nvml *nvml, char *text, size_t bytes) {
    size_t version = 0;
    memset(nvml, 0, sizeof *nvml);
    text[0] = '\0';
    nvml->handle = find(&nvml_spec, nvml, &version, folders_of_user(), text, bytes);
    return nvml->handle != NULL;
}

void tdm__cuda_nvml_close(tdm_nvml *nvml) {
    if (nvml->handle != NULL) dlclose(nvml->handle);
    memset(nvml, 0, sizeof *nvml);
}
