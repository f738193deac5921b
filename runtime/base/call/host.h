/* What a program's tdm_host may lack: members that came after its version, and those that are NULL. Inline, because
 * modules have no symbols of the library. */
#ifndef TDM_BASE_CALL_HOST_H
#define TDM_BASE_CALL_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include <tandem/host.h>

/* The size of tdm_host in 0.1.0. */
enum { TDM_HOST_OLDEST = offsetof(tdm_host, thread_start) };

static inline bool tdm__host_starts_threads(const tdm_host *host) {
    return host->size >= offsetof(tdm_host, thread_join) + sizeof(host->thread_join) && host->thread_start != NULL;
}

static inline bool tdm__host_has_clock(const tdm_host *host) {
    return host->size >= offsetof(tdm_host, now_ns) + sizeof(host->now_ns) && host->now_ns != NULL;
}

/* 0: the host does not say. */
static inline int tdm__host_cpus(const tdm_host *host) {
    return host->size >= offsetof(tdm_host, cpus) + sizeof(host->cpus) ? host->cpus : 0;
}

/* 0: no limit. */
static inline size_t tdm__host_memory_limit(const tdm_host *host) {
    return host->size >= offsetof(tdm_host, memory_limit) + sizeof(host->memory_limit) ? host->memory_limit : 0;
}

#endif
