/* The default host, which uses the C library, and two functions of tandem.h that need nothing else. */
#include <tandem/host.h>
#include <tandem/tandem.h>

#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/call/host.h"
#include "runtime/base/round.h"
#include "runtime/base/system/pages.h"

static void *allocate_large(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, TDM_HUGE_PAGE, bytes) != 0) return NULL;
    tdm__advise_huge_pages(memory, bytes);
    return memory;
}

static void *allocate(void *user, size_t bytes, size_t align) {
    (void)user;
    if (bytes > SIZE_MAX - align) return NULL;
    if (bytes >= 2 * TDM_HUGE_PAGE && align <= TDM_HUGE_PAGE) return allocate_large(bytes);
    return aligned_alloc(align, tdm__round_up(bytes, align)); /* C17 requires a multiple of the alignment */
}

static void release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static const tdm_host default_host = {
    .size = TDM_HOST_OLDEST, /* a program of 0.1.0 copies so much of it */
    .allocate = allocate,
    .release = release,
    .log = NULL,
    .log_level = TDM_LOG_ERROR,
    .user = NULL,
};

const tdm_host *tdm_host_default(void) {
    return &default_host;
}

const char *tdm_version(void) {
    return TDM_VERSION;
}

int tdm_version_number(void) {
    return TDM_VERSION_NUMBER;
}

void tdm_free(void *text) {
    free(text);
}
