/* Modules are searched in a few folders, opened for the life of the process, and asked before use whether they work
 * here.
 *
 * A missing module is no failure: the report keeps what was tried and why it was not used, for `doctor` and for
 * messages about a configuration that needs the module. */
#include "runtime/module/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "runtime/base/system/env.h"
#include "runtime/base/system/library.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"

enum {
    MOST_TRIED = 8, /* files remembered: one that two paths lead to is reported once */
    ROOM = 256
           << 20, /* bytes of address space: oneDNN and its libraries take up to 90 MiB, and 128 more while they work */
};

typedef struct search {
    const tdm_host *host;
    const char *name;
    const tdm_module *found;
    tdm_module_report *report;
    char folders[384]; /* the folders in which the file was not found, for the message */
    struct stat tried[MOST_TRIED];
    int tried_count;
} search;

static void append(char *text, size_t capacity, const char *format, ...) TDM_PRINTF(3, 4);
static void append(char *text, size_t capacity, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}

static void set(char *text, size_t capacity, const char *from) {
    text[0] = '\0';
    append(text, capacity, "%s", from);
}

static void note_refusal(search *s, const char *path, const char *format, ...) TDM_PRINTF(3, 4);
static void note_refusal(search *s, const char *path, const char *format, ...) {
    tdm_module_report *report = s->report;
    char why[sizeof report->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    set(report->path, sizeof report->path, path);
    append(report->text, sizeof report->text, "%s%s: %s", report->text[0] != '\0' ? "; " : "", path, why);
    TDM_DEBUG(s->host, "module", "%s: %s", path, why);
}

/* Returns the module in an open library, or NULL after noting the reason. */
static const tdm_module *accept(search *s, const char *path, void *library) {
    const tdm_module *module = dlsym(library, TDM_MODULE_SYMBOL);
    if (module == NULL) {
        note_refusal(s, path, "has no symbol " TDM_MODULE_SYMBOL ", so it is not a module of tandem");
        return NULL;
    }
    if (module->abi != TDM_MODULE_ABI) {
        note_refusal(s, path, "has module interface %u, this tandem has %u; build both from the same source",
                     module->abi, TDM_MODULE_ABI);
        return NULL;
    }
    if (module->name == NULL || module->probe == NULL) {
        note_refusal(s, path, "has no name or no probe");
        return NULL;
    }
    if (strcmp(module->name, s->name) != 0) {
        note_refusal(s, path, "is the module '%s', not '%s'", module->name, s->name);
        return NULL;
    }
    return module;
}

static tdm_status try_file(search *s, const char *path) {
    char text[sizeof s->report->text] = "";
    void *library;
    TDM_TRY(tdm__library_open(&library, path, ROOM, text, sizeof text));
    if (library == NULL) {
        note_refusal(s, path, "%s", text);
        return TDM_OK;
    }
    const tdm_module *module = accept(s, path, library);
    if (module == NULL) return TDM_OK;
    /* init comes before probe: the environment may name the libraries that the module looks for. */
    if (module->init != NULL) module->init(&tdm__host_calls);
    if (!module->probe(text, sizeof text)) { /* the sentence is about the machine, not about the file */
        set(s->report->path, sizeof s->report->path, path);
        append(s->report->text, sizeof s->report->text, "%s%s", s->report->text[0] != '\0' ? "; " : "",
               text[0] != '\0' ? text : "it does not work on this machine");
        return TDM_OK;
    }
    s->found = module;
    s->report->usable = true;
    set(s->report->path, sizeof s->report->path, path);
    set(s->report->text, sizeof s->report->text, text);
    TDM_DEBUG(s->host, "module", "%s: %s", path, text);
    return TDM_OK;
}

static bool is_new(search *s, const struct stat *about) {
    for (int i = 0; i < s->tried_count; i++) {
        if (s->tried[i].st_dev == about->st_dev && s->tried[i].st_ino == about->st_ino) return false;
    }
    if (s->tried_count < MOST_TRIED) s->tried[s->tried_count++] = *about;
    return true;
}

static bool is_listed(const search *s, const char *folder, size_t length) {
    for (const char *each = s->folders; *each != '\0';) {
        const size_t bytes = strcspn(each, ",");
        if (bytes == length && memcmp(each, folder, length) == 0) return true;
        each += bytes + strspn(each + bytes, ", ");
    }
    return false;
}

static tdm_status try_folder(search *s, const char *folder, size_t length) {
    char path[PATH_MAX];
    if (s->found != NULL || length == 0) return TDM_OK;
    const int path_bytes = snprintf(path, sizeof path, "%.*s/libtandem-%s.so", (int)length, folder, s->name);
    if (path_bytes < 0 || (size_t)path_bytes >= sizeof path) return TDM_OK;
    struct stat about;
    if (stat(path, &about) == 0) return is_new(s, &about) ? try_file(s, path) : TDM_OK;
    if (!is_listed(s, folder, length))
        append(s->folders, sizeof s->folders, "%s%.*s", s->folders[0] != '\0' ? ", " : "", (int)length, folder);
    return TDM_OK;
}

static tdm_status try_list(search *s, const char *folders) {
    while (folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        TDM_TRY(try_folder(s, folders, length));
        folders += length + (folders[length] == ':');
    }
    return TDM_OK;
}

/* Tries the folder of the file that `address` is mapped from, or the one `up` levels above it, with `rest` appended. */
static tdm_status try_beside(search *s, const void *address, int up, const char *rest) {
    char file[PATH_MAX], folder[PATH_MAX + 32];
    if (s->found != NULL) return TDM_OK;
    TDM_TRY(tdm__library_file(address, file, sizeof file));
    if (file[0] == '\0') return TDM_OK;
    for (char *end = strrchr(file, '/'); end != NULL && up >= 0; end = strrchr(file, '/'), up--) *end = '\0';
    const int length = snprintf(folder, sizeof folder, "%s%s", file, rest);
    return try_folder(s, folder, (size_t)length);
}

static int is_file(struct dl_phdr_info *library, size_t bytes, void *name) {
    (void)bytes;
    const char *base = strrchr(library->dlpi_name, '/');
    return base != NULL && strcmp(base + 1, name) == 0;
}

bool tdm__module_is_loaded(const char *name) {
    char file[64];
    snprintf(file, sizeof file, "libtandem-%s.so", name);
    return dl_iterate_phdr(is_file, file) != 0;
}

const char *tdm__module_absent(const char *name) {
    static const struct {
        const char *name, *why;
    } absent[] = {
#define TDM_MODULE(name, absent) {#name, absent},
#include "modules.def"
#undef TDM_MODULE
    };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        if (strcmp(absent[i].name, name) == 0) return absent[i].why;
    }
    return "";
}

tdm_status tdm__module_find(const tdm_module **out, const tdm_host *host, const char *name, const char *module_path,
                            tdm_module_report *report) {
    search s = {.host = host, .name = name, .report = report};
    *out = NULL;
    *report = (tdm_module_report){0};
    TDM_TRY(try_list(&s, module_path != NULL ? module_path : tdm__env(TDM_ENV_MODULE_PATH)));
    TDM_TRY(try_beside(&s, &tdm__host_calls, 0, "/tandem"));
    TDM_TRY(try_beside(&s, (const void *)getauxval(AT_PHDR), 1, "/lib/tandem"));
    TDM_TRY(try_folder(&s, TDM_MODULE_FOLDER, strlen(TDM_MODULE_FOLDER)));
    *out = s.found;
    if (s.found == NULL && report->text[0] == '\0') {
        const char *why = tdm__module_absent(name);
        if (why[0] != '\0')
            append(report->text, sizeof report->text,
                   "it was not built: %s, and build tandem again (libtandem-%s.so is in none of %s)", why, name,
                   s.folders);
        else
            append(report->text, sizeof report->text,
                   "libtandem-%s.so is in none of %s; install it, or name its folder in %s", name, s.folders,
                   tdm__env_name(TDM_ENV_MODULE_PATH));
    }
    return TDM_OK;
}
