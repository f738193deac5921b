/* tandem/host.h - what the embedding program lends to tandem: memory and a place for log lines.
 *
 * Every object keeps a borrowed pointer to the tdm_host it was made with; the host outlives them all. */
#ifndef TANDEM_HOST_H
#define TANDEM_HOST_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_log_level { TDM_LOG_ERROR, TDM_LOG_WARNING, TDM_LOG_INFO, TDM_LOG_DEBUG } tdm_log_level;

typedef struct tdm_host {
    uint32_t size; /* sizeof(tdm_host) */
    /* `align` is a power of two. NULL on exhaustion. Called from any thread. */
    void *(*allocate)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *pointer); /* NULL is fine */
    /* One complete line without newline. Called from any thread, one call at a time is NOT promised. May be NULL. */
    void (*log)(void *user, tdm_log_level level, const char *subsystem, const char *line);
    tdm_log_level log_level; /* lines above this level are not built at all */
    void *user;
} tdm_host;

/* The C library's allocator, no log. */
TDM_API const tdm_host *tdm_host_default(void);
/* Releases texts that functions returned through char **, whatever host they were given. NULL is fine. */
TDM_API void tdm_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
