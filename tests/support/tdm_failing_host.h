/* A host whose k-th allocation fails, and which counts what is still held.
 *
 *   for (long k = 1;; k++) {
 *       tdm_failing_host failing;
 *       tdm_failing_host_init(&failing, k);
 *       tdm_status status = work(&failing.host);
 *       CHECK_INT(failing.live, 0);
 *       if (!failing.failed) { CHECK_OK(status); break; }
 *       CHECK_INT(status, TDM_E_MEMORY);
 *   }
 */
#ifndef TDM_FAILING_HOST_H
#define TDM_FAILING_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <tandem/host.h>

typedef struct tdm_failing_host {
    tdm_host host;
    long fail_at; /* counted from 1; 0: none fails */
    atomic_long calls, live;
    atomic_bool failed;
} tdm_failing_host;

static inline void *tdm_failing_allocate(void *user, size_t bytes, size_t align) {
    tdm_failing_host *failing = user;
    if (atomic_fetch_add(&failing->calls, 1) + 1 == failing->fail_at) {
        failing->failed = true;
        return NULL;
    }
    void *pointer = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (pointer != NULL) {
        atomic_fetch_add(&failing->live, 1);
        for (size_t i = 0; i < bytes && i < 4096; i++) ((unsigned char *)pointer)[i] = 0xA5; /* not zeroed by luck */
    }
    return pointer;
}

static inline void tdm_failing_release(void *user, void *pointer) {
    tdm_failing_host *failing = user;
    if (pointer != NULL) atomic_fetch_sub(&failing->live, 1);
    free(pointer);
}

static inline void tdm_failing_host_init(tdm_failing_host *failing, long fail_at) {
    failing->host = (tdm_host){.size = sizeof(tdm_host),
                               .allocate = tdm_failing_allocate,
                               .release = tdm_failing_release,
                               .log_level = TDM_LOG_ERROR,
                               .user = failing};
    failing->fail_at = fail_at;
    atomic_init(&failing->calls, 0);
    atomic_init(&failing->live, 0);
    atomic_init(&failing->failed, false);
}

#endif
