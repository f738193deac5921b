/* Opens NCCL: where it is searched, which versions will do, the table of its functions. */
#include "runtime/backends/nccl/nccl_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SONAME "libnccl.so.2"
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

typedef struct search {
    char *why; /* gets one clause for each path tried */
    size_t bytes;
    tdm_nccl_library found;
    bool ok;
} search;

static void tried(search *s, const char *format, ...) TDM_PRINTF(2, 3);
static void tried(search *s, const char *format, ...) {
    size_t used = strlen(s->why);
    va_list arguments;
    if (used > 0 && used + 3 < s->bytes) {
        memcpy(s->why + used, "; ", 3);
        used += 2;
    }
    va_start(arguments, format);
    vsnprintf(s->why + used, s->bytes - used, format, arguments);
    va_end(arguments);
}

/* Returns the function with this name, or NULL; the first one missing is noted. */
static void *find(void *handle, const char *name, const char **missing) {
    void *symbol = dlsym(handle, name);
    if (symbol == NULL && missing != NULL && *missing == NULL) *missing = name;
    return symbol;
}

/* Checks the version first, so that the message about an old library says that it is old and not that it is incomplete.
 */
static bool version_will_do(search *s, const char *path, void *handle) {
    char found[TDM_NCCL_VERSION_TEXT];
    ncclResult_t (*get_version)(int *);
    *(void **)&get_version = dlsym(handle, "ncclGetVersion");
    int version = 0;
    if (get_version == NULL || get_version(&version) != ncclSuccess) {
        tried(s, "%s: does not report a version, so it is not NCCL", path);
        return false;
    }
    tdm__nccl_version_print(found, version);
    if (version < TDM_NCCL_VERSION_LEAST || version >= 30000) {
        tried(s, "%s: is NCCL %s, 2.19 or newer is needed (older ones cannot abort a communicator whose peer is lost)",
              path, found);
        return false;
    }
    s->found.version = version;
    return true;
}

static bool take(search *s, const char *path, void *handle) {
    const char *missing = NULL;
    if (!version_will_do(s, path, handle)) return false;
#define TDM_NCCL_SYMBOL(name) *(void **)&s->found.name = find(handle, "nccl" #name, &missing);
#define TDM_NCCL_OPTIONAL(name, type) *(void **)&s->found.name = find(handle, "nccl" #name, NULL);
#include "runtime/backends/nccl/nccl_symbols.def"
#undef TDM_NCCL_SYMBOL
#undef TDM_NCCL_OPTIONAL
    if (missing != NULL) tried(s, "%s: has no function %s", path, missing);
    return missing == NULL;
}

static void try_path(search *s, const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        /* The loader's message begins with the path. */
        tried(s, "%s", why != NULL ? why : path);
        return;
    }
    s->ok = take(s, path, handle);
    if (!s->ok) dlclose(handle);
}

static void look(search *s) {
    const char *folders = tdm__nccl_variable(FOLDERS);
    while (!s->ok && folders != NULL && *folders != '\0') {
        size_t length = strcspn(folders, ":");
        char path[PATH_MAX];
        int path_bytes = snprintf(path, sizeof(path), "%.*s/" SONAME, (int)length, folders);
        if (length > 0 && path_bytes > 0 && (size_t)path_bytes < sizeof(path)) try_path(s, path);
        folders += length + (folders[length] == ':');
    }
    if (!s->ok) try_path(s, SONAME);
}

const tdm_nccl_library *tdm__nccl_library(char *why, size_t bytes) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static tdm_nccl_library library; /* guarded while `opened` is false, constant afterwards */
    static bool opened;
    search s = {.why = why, .bytes = bytes};
    why[0] = '\0';
    pthread_mutex_lock(&mutex);
    if (!opened) {
        look(&s);
        opened = s.ok;
        if (s.ok) library = s.found;
    }
    bool usable = opened;
    pthread_mutex_unlock(&mutex);
    if (!usable) {
        tried(&s, "install NCCL 2.19 or newer, or name its folder in " FOLDERS);
        return NULL;
    }
    why[0] = '\0';
    return &library;
}
