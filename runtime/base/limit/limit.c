#include "runtime/base/limit/limit.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "runtime/base/call/host.h"
#include "runtime/base/status.h"
#include "runtime/base/system/pages.h"

typedef struct limited {
    tdm_host host; /* its `user` is this struct */
    const tdm_host *given;
    size_t most;
    _Atomic size_t held;
} limited;

/* Stands right before each block. */
typedef struct head {
    void *start; /* what the program's host gave */
    size_t bytes;
    bool is_mapped;
} head;

enum { ROOM = 64 }; /* for the head, and keeps the alignment of TDM_ALIGN */
/* From this size on the C library maps blocks, but not for ever: after a larger one was released it has them in its
 * heap, which does not give back what lies between others. */
enum { MAPPED = 128 << 10 };

static const tdm_host *memory_of(const tdm_host *given) {
    return given->allocate != NULL ? given : tdm_host_default();
}

static bool book(limited *l, size_t bytes) {
    size_t held = atomic_load(&l->held);
    do {
        if (bytes > l->most - held) return false;
    } while (!atomic_compare_exchange_weak(&l->held, &held, held + bytes));
    return true;
}

static void *allocate(void *user, size_t bytes, size_t align) {
    limited *l = user;
    const tdm_host *from = memory_of(l->given);
    const size_t room = align > ROOM ? align : ROOM;
    size_t total;
    if (__builtin_add_overflow(bytes, room, &total) || !book(l, total)) return NULL;
    const bool is_mapped = total >= MAPPED && room == ROOM && from->allocate == tdm_host_default()->allocate;
    char *start = is_mapped ? tdm__map_pages(total) : from->allocate(from->user, total, room);
    if (start == NULL) {
        atomic_fetch_sub(&l->held, total);
        return NULL;
    }
    ((head *)(void *)(start + room))[-1] = (head){start, total, is_mapped};
    return start + room;
}

static void release(void *user, void *pointer) {
    limited *l = user;
    if (pointer == NULL) return;
    const head block = ((head *)pointer)[-1];
    const tdm_host *from = memory_of(l->given);
    if (block.is_mapped)
        (void)munmap(block.start, block.bytes);
    else
        from->release(from->user, block.start);
    atomic_fetch_sub(&l->held, block.bytes);
}

static void write_log(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    const tdm_host *given = ((const limited *)user)->given;
    given->log(given->user, level, subsystem, line);
}

static int start_thread(void *user, const tdm_thread_info *thread, void (*run)(void *argument), void *argument,
                        void **handle) {
    const tdm_host *given = ((const limited *)user)->given;
    return given->thread_start(given->user, thread, run, argument, handle);
}

static void join_thread(void *user, void *handle) {
    const tdm_host *given = ((const limited *)user)->given;
    given->thread_join(given->user, handle);
}

static int64_t now(void *user, tdm_clock clock) {
    const tdm_host *given = ((const limited *)user)->given;
    return given->now_ns(given->user, clock);
}

tdm_status tdm__limit_open(const tdm_host **host, size_t most) {
    const tdm_host *given = *host;
    const tdm_host *from = memory_of(given);
    const size_t of_host = tdm__host_memory_limit(given);
    if (most == 0 || (of_host > 0 && of_host < most)) most = of_host;
    if (most == 0) return TDM_OK;
    limited *l = from->allocate(from->user, sizeof(*l), ROOM);
    if (l == NULL) TDM_FAIL(TDM_E_MEMORY, "memory limit: out of memory, needed %zu bytes", sizeof(*l));
    l->given = given;
    l->most = most;
    atomic_init(&l->held, 0);
    l->host = (tdm_host)TDM_HOST_INIT;
    l->host.user = l;
    l->host.allocate = allocate;
    l->host.release = release;
    l->host.log = given->log != NULL ? write_log : NULL;
    l->host.log_level = given->log_level;
    l->host.thread_start = tdm__host_starts_threads(given) ? start_thread : NULL;
    l->host.thread_join = tdm__host_starts_threads(given) ? join_thread : NULL;
    l->host.now_ns = tdm__host_has_clock(given) ? now : NULL;
    l->host.cpus = tdm__host_cpus(given);
    *host = &l->host;
    return TDM_OK;
}

static limited *limited_of(const tdm_host *host) {
    return host->allocate == allocate ? host->user : NULL;
}

void tdm__limit_close(const tdm_host *host) {
    limited *l = limited_of(host);
    if (l == NULL) return;
    const tdm_host *from = memory_of(l->given);
    from->release(from->user, l);
}

tdm_limit tdm__limit_of(const tdm_host *host) {
    const limited *l = limited_of(host);
    return l != NULL ? (tdm_limit){l->most, atomic_load(&l->held)} : (tdm_limit){0, 0};
}

const tdm_host *tdm__limit_given(const tdm_host *host) {
    const limited *l = limited_of(host);
    return l != NULL ? l->given : host;
}

bool tdm__limit_book(const tdm_host *host, size_t bytes) {
    limited *l = limited_of(host);
    return l == NULL || book(l, bytes);
}
