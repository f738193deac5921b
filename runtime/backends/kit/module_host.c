#include "runtime/backends/kit/module_host.h"

static const tdm_host_calls *host_calls; /* init writes the same value every time */

const tdm_host_calls *tdm__module_host(void) {
    return __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE);
}

void tdm__module_init(const tdm_host_calls *calls) {
    __atomic_store_n(&host_calls, calls, __ATOMIC_RELEASE);
}

const char *tdm__module_variable(const char *name) {
    const tdm_host_calls *host = tdm__module_host();
    return host != NULL ? host->environment(name) : NULL;
}

/* In front of each block, in a line of its own. */
typedef struct block_head {
    const tdm_host *host;
    char pad[64 - sizeof(const tdm_host *)];
} block_head;

void *tdm__module_new(const tdm_host *host, size_t bytes) {
    size_t total;
    if (__builtin_add_overflow(bytes, sizeof(block_head), &total)) return NULL;
    block_head *head = tdm__module_host()->allocate(host, total);
    if (head == NULL) return NULL;
    head->host = host;
    return head + 1;
}

void tdm__module_delete(void *pointer) {
    if (pointer == NULL) return;
    block_head *head = (block_head *)pointer - 1;
    tdm__module_host()->release(head->host, head);
}
