/* tandem/host.h - what the embedding program lends to tandem: memory and a place for log lines.
 *
 * Every object keeps a borrowed pointer to the tdm_host that it was made with. The host must outlive all of these
 * objects. */
#ifndef TANDEM_HOST_H
#define TANDEM_HOST_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

typedef enum tdm_log_level { TDM_LOG_ERROR, TDM_LOG_WARNING, TDM_LOG_INFO, TDM_LOG_DEBUG } tdm_log_level;

typedef struct tdm_host {
    uint32_t size; /* sizeof(tdm_host) */
    /* Returns `bytes` bytes aligned to `align`, a power of two, or NULL when memory is exhausted. Called from any
     * thread. */
    void *(*allocate)(void *user, size_t bytes, size_t align);
    void (*release)(void *user,
                    void *pointer); /* Frees what `allocate` returned. NULL is allowed. Called from any thread. */
    /* Receives one complete line without a newline. Called from any thread, possibly by several at the same time. May
     * be NULL. */
    void (*log)(void *user, tdm_log_level level, const char *subsystem, const char *line);
    tdm_log_level log_level; /* less urgent lines are not even formatted */
    void *user;
} tdm_host;

/* Returns a host with the C library's allocator and no log. Static; never NULL. */
TDM_API const tdm_host *tdm_host_default(void);
/* Frees a text that a function returned through char **, whichever host that function used. NULL is allowed. */
TDM_API void tdm_free(void *text);

TDM_END_DECLS
#endif
