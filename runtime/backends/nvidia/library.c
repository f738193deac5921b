#include "runtime/backends/nvidia/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tandem/host.h>

typedef struct attempt {
    const tdm_nvidia_library *wanted;
    void *table;
    size_t version;
    char version_text[256];
    char *text;
    size_t bytes;
} attempt;

static void note(attempt *a, const char *format, ...) TDM_PRINTF(2, 3);
static void note(attempt *a, const char *format, ...) {
    size_t used = strlen(a->text);
    va_list arguments;
    if (used > 0 && used + 2 < a->bytes) {
        strcpy(a->text + used, "; ");
        used += 2;
    }
    va_start(arguments, format);
    vsnprintf(a->text + used, a->bytes - used, format, arguments);
    va_end(arguments);
}

/* The version comes first, so that a message about an old library says that it is old, not that it is incomplete. */
static bool is_usable_version(attempt *a, const char *path, void *handle) {
    a->version = 0;
    if (a->wanted->check == NULL ||
        a->wanted->check(a->wanted, handle, &a->version, a->version_text, sizeof a->version_text))
        return true;
    note(a, "%s %s", path, a->version_text);
    return false;
}

static bool has_symbols(attempt *a, const char *path, void *handle) {
    for (size_t i = 0; i < a->wanted->symbol_count; i++) {
        const tdm_nvidia_symbol *symbol = &a->wanted->symbols[i];
        void *address = dlsym(handle, symbol->name);
        memcpy((char *)a->table + symbol->offset, &address, sizeof address);
        if (address != NULL || symbol->optional) continue;
        if (a->version != 0)
            note(a, "%s (%s) has no %s", path, a->version_text, symbol->name);
        else
            note(a, "%s has no %s", path, symbol->name);
        return false;
    }
    return true;
}

static void *try_path(attempt *a, const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror(); /* it begins with the path */
        note(a, "%s", why != NULL ? why : path);
        return NULL;
    }
    if (is_usable_version(a, path, handle) && has_symbols(a, path, handle)) {
        snprintf(a->text, a->bytes, "%s", path);
        return handle;
    }
    dlclose(handle);
    return NULL;
}

void *tdm__nvidia_open(const tdm_nvidia_library *library, void *table, size_t *version, const char *folders, char *text,
                       size_t bytes) {
    attempt a = {.wanted = library, .table = table, .text = text, .bytes = bytes};
    void *handle = NULL;
    text[0] = '\0';
    while (handle == NULL && folders != NULL && *folders != '\0') {
        char path[PATH_MAX];
        const size_t length = strcspn(folders, ":");
        const int path_bytes = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, library->file);
        if (length > 0 && path_bytes > 0 && (size_t)path_bytes < sizeof path) handle = try_path(&a, path);
        folders += length + (folders[length] == ':');
    }
    if (handle == NULL) handle = try_path(&a, library->file);
    *version = handle != NULL ? a.version : 0;
    return handle;
}
