/* What a problem report should contain: system, processor, memory and limits, modules, GPUs. Read from /proc, /sys, the
 * module loader and the cuda module. What cannot be read is left out. */
#include <tandem/doctor.h>
#include <tandem/tandem.h>

#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "runtime/base/system/cpus.h"
#include "runtime/base/system/env.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/module/module.h"

#ifdef __clang__
#define COMPILER __VERSION__ /* "Clang 14.0.6" */
#else
#define COMPILER "gcc " __VERSION__
#endif

typedef struct report {
    tdm_text text;
    tdm_json_out out;  /* writes to `text` */
    bool json, failed; /* failed: a fault was found */
} report;

static void section(report *r, const char *title) {
    if (r->json)
        tdm__json_put(&r->out, r->text.length > 0 ? "} %s:{" : "{ %s:{", title);
    else
        tdm__text_printf(&r->text, "%s%s\n", r->text.length > 0 ? "\n" : "", title);
}

static void put_text(report *r, const char *name, const char *value) {
    if (!value || !value[0]) return;
    if (r->json) {
        tdm__json_put(&r->out, "%s:%s", name, value);
        return;
    }
    tdm__text_printf(&r->text, "  %-18s ", name);
    tdm__text_shown(&r->text, value);
    tdm__text_puts(&r->text, "\n");
}

static void put_count(report *r, const char *name, long long value) {
    if (r->json)
        tdm__json_put(&r->out, "%s:%lld", name, value);
    else
        tdm__text_printf(&r->text, "  %-18s %lld\n", name, value);
}

static void put_bytes(report *r, const char *name, double bytes) {
    char size[32];
    if (r->json)
        tdm__json_put(&r->out, "%s:%.0f", name, bytes);
    else
        put_text(r, name, tdm__print_bytes(size, (uint64_t)bytes));
}

/* Adds something that will stop runs. */
static void put_fault(report *r, const char *name, const char *what) {
    char line[400];
    snprintf(line, sizeof line, "FAULT: %s", what);
    put_text(r, name, line);
    r->failed = true;
}

/* Finds the first line of a file that starts with `prefix`; `out` gets the rest of it, without surrounding blanks and
 * quotes. */
static bool line_after(const char *path, const char *prefix, char *out, size_t bytes) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    char line[4096];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, prefix, strlen(prefix)) != 0) continue;
        const char *from = line + strlen(prefix);
        from += strspn(from, " \t:=\"");
        size_t length = strcspn(from, "\"\n");
        if (length >= bytes) length = bytes - 1;
        memcpy(out, from, length);
        out[length] = 0;
        found = true;
    }
    fclose(file);
    return found;
}

static void system_part(report *r) {
    struct utsname name;
    char text[256];
    section(r, "system");
    put_text(r, "tandem", TDM_VERSION);
    if (line_after("/etc/os-release", "PRETTY_NAME", text, sizeof text)) put_text(r, "os", text);
    if (uname(&name) == 0) {
        snprintf(text, sizeof text, "%.60s %.120s %.60s", name.sysname, name.release, name.machine);
        put_text(r, "kernel", text);
    }
    snprintf(text, sizeof text, "glibc %.60s", gnu_get_libc_version());
    put_text(r, "libc", text);
    put_text(r, "compiler", COMPILER);
}

static void isa_list(char *out, size_t bytes) {
    static const char *const names[] = {"sse4_2",      "avx",         "avx2",     "fma",      "avx512f", "avx512_bf16",
                                        "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "asimd",   "sve"};
    char flags[4096];
    size_t used = 0;
    out[0] = 0;
    if (!line_after("/proc/cpuinfo", "flags", flags, sizeof flags - 2) &&
        !line_after("/proc/cpuinfo", "Features", flags, sizeof flags - 2)) {
        return;
    }
    strcat(flags, " ");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char word[24];
        snprintf(word, sizeof word, " %s ", names[i]);
        if (!strstr(flags, word)) continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? " " : "", names[i]);
    }
}

static void cpu_part(report *r) {
    char text[256];
    cpu_set_t set;
    section(r, "cpu");
    if (line_after("/proc/cpuinfo", "model name", text, sizeof text)) put_text(r, "model", text);
    put_count(r, "online", sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof set, &set) == 0) put_count(r, "allowed", CPU_COUNT(&set));
    double quota = tdm__cgroup_cpus();
    if (quota > 0) {
        snprintf(text, sizeof text, "%.2f CPUs", quota);
        put_text(r, "cgroup quota", text);
    }
    isa_list(text, sizeof text);
    put_text(r, "instructions", text);
}

static void put_kib(report *r, const char *name, const char *path, const char *prefix) {
    char text[64];
    if (line_after(path, prefix, text, sizeof text)) put_bytes(r, name, atof(text) * 1024);
}

static void memory_part(report *r) {
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    char text[64];
    struct statvfs shm;
    section(r, "memory");
    put_kib(r, "total", "/proc/meminfo", "MemTotal");
    put_kib(r, "available", "/proc/meminfo", "MemAvailable");
    for (int i = 0; i < 2; i++) {
        /* control groups v1 express "no limit" as a number near 2^63 */
        if (line_after(limits[i], "", text, sizeof text) && atof(text) > 0 && atof(text) < 1e18) {
            put_bytes(r, "cgroup limit", atof(text));
        }
    }
    if (statvfs("/dev/shm", &shm) == 0) {
        put_bytes(r, "/dev/shm free", (double)shm.f_bavail * (double)shm.f_frsize);
    }
}

static void put_limit(report *r, const char *name, int resource, bool is_bytes) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY) {
        put_text(r, name, "unlimited");
    } else if (is_bytes) {
        put_bytes(r, name, (double)limit.rlim_cur);
    } else {
        put_count(r, name, (long long)limit.rlim_cur);
    }
}

static void limits_part(report *r) {
    section(r, "limits");
    put_limit(r, "open files", RLIMIT_NOFILE, false);
    put_limit(r, "processes", RLIMIT_NPROC, false);
    put_limit(r, "locked memory", RLIMIT_MEMLOCK, true);
    put_limit(r, "address space", RLIMIT_AS, true);
    int fd = memfd_create("tandem-doctor", MFD_CLOEXEC);
    if (fd < 0) {
        put_fault(r, "shared memory",
                  "memfd_create fails, so the ranks of ddp cannot share memory; a sandbox may forbid it");
    } else if (ftruncate(fd, 1 << 20) != 0) {
        put_fault(r, "shared memory", "1 MiB of shared memory is refused; raise the memory limit");
    } else {
        put_text(r, "shared memory", "ok (memfd)");
    }
    if (fd >= 0) close(fd);
}

static tdm_status put_module(report *r, const tdm_host *host, const char *name, const tdm_module **module) {
    tdm_module_report found = {.usable = false};
    TDM_TRY(tdm__module_find(module, host, name, NULL, &found));
    char line[1200];
    const char *state = found.usable ? "usable" : found.path[0] ? "not usable" : "absent";
    snprintf(line, sizeof line, "%s: %s%s%s", state, found.text, found.path[0] ? ", " : "", found.path);
    put_text(r, name, line);
    return TDM_OK;
}

/* A module that is not loaded says nothing of the run, and libraries such as MPI's take milliseconds. */
static tdm_status put_other(report *r, const tdm_host *host, const char *name, bool is_loaded_only) {
    const tdm_module *module = NULL;
    return is_loaded_only && !tdm__module_is_loaded(name) ? TDM_OK : put_module(r, host, name, &module);
}

/* Modules with kernels, the one for pictures, then the backends. An absent module is information here. It is an error
 * only for a job that asks for it, and `train` reports it then. */
static tdm_status modules_part(report *r, const tdm_host *host, bool are_loaded_only, const tdm_module **cuda) {
    const tdm_module *module = NULL;
    section(r, "modules");
    TDM_TRY(put_module(r, host, "dnnl", &module));
    TDM_TRY(put_module(r, host, "cuda", cuda));
    TDM_TRY(put_other(r, host, "image", are_loaded_only));
    for (const tdm_backend_def *backend = tdm__backends; backend->name != NULL; backend++) {
        const bool is_module =
            backend->source == TDM_SOURCE_DEVICE_MODULE || backend->source == TDM_SOURCE_HOSTS_MODULE;
        if (is_module) TDM_TRY(put_other(r, host, backend->name, are_loaded_only));
    }
    return TDM_OK;
}

static void put_device_line(void *user, const char *name, const char *value) {
    put_text(user, name, value);
}

static tdm_status put_devices(report *r, const tdm_device_ops *ops) {
    int count = 0;
    TDM_TRY(ops->count(&count));
    char line[80] = "auto uses cuda; device_ids: 0";
    if (count > 1)
        snprintf(line, sizeof line, "auto uses cuda; device_ids: 0 %s %d", count > 2 ? "to" : "and", count - 1);
    put_text(r, "parallel.device", line);
    return ops->report != NULL ? ops->report(put_device_line, r) : TDM_OK;
}

/* The GPUs, if the cuda module works here. What fails here would fail in a run, too. */
static void devices_part(report *r, const tdm_module *cuda) {
    if (cuda == NULL || cuda->device == NULL) return;
    tdm_error before;
    tdm__error_save(&before);
    section(r, "devices");
    if (put_devices(r, cuda->device) == TDM_OK) return;
    put_fault(r, "cuda", tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
}

tdm_status tdm_environment(const tdm_host *host, int json, char **out) {
    if (!out) TDM_FAIL(TDM_E_USAGE, "tdm_environment: out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    report r = {.json = json != 0};
    tdm__text_init(&r.text, host);
    r.out = tdm__json_out(&r.text, "");
    system_part(&r);
    cpu_part(&r);
    memory_part(&r);
    limits_part(&r);
    const tdm_module *cuda = NULL;
    tdm_status status = TDM_OK;
    if (json != TDM_ENVIRONMENT_JSON_ALONE) status = modules_part(&r, host, json == TDM_ENVIRONMENT_JSON_LOADED, &cuda);
    if (status == TDM_OK) devices_part(&r, cuda);
    if (r.json) tdm__json_put(&r.out, "}}\n");
    if (status == TDM_OK) status = tdm__text_take_public(&r.text, out);
    tdm__text_deinit(&r.text);
    if (status == TDM_OK && r.failed)
        TDM_FAIL(TDM_E_CHECK, "this machine has problems that will stop runs; see the lines with FAULT");
    return status;
}

tdm_status tdm_environment_variables(const tdm_host *host, char **out) {
    if (!out) TDM_FAIL(TDM_E_USAGE, "tdm_environment_variables: out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    tdm_text text;
    tdm__text_init(&text, host);
    for (int i = 0; i < TDM_ENV_COUNT; i++) {
        tdm__text_printf(&text, "  %-26s %s\n", tdm__env_name((tdm_env_key)i), tdm__env_help((tdm_env_key)i));
    }
    tdm_status status = tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}
