/* Memory from the host, zeroed and aligned, with overflow checks; and the bump zone. */
#include "runtime/base/memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/limit/limit.h"
#include "runtime/base/round.h"
#include "runtime/base/call/host.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/system/pages.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"

enum { ZONE_ALIGN = 16, ZONE_BLOCK = 16 * 1024 };

/* What zones hold, in a word that a user knows. */
#define ZONE_HOLDS "small things of the run"

struct tdm_zone_block {
    _Alignas(ZONE_ALIGN) tdm_zone_block *next;
    size_t used, capacity; /* of the bytes behind this header */
};

bool tdm__add_fits(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

bool tdm__mul_fits(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* `out` may be any T **: all pointers have the same representation on the platforms that tandem runs on. */
static void put_pointer(void *out, void *pointer) {
    memcpy(out, &pointer, sizeof(pointer));
}

tdm_status tdm__host_take(const tdm_host **host) {
    if (*host == NULL) *host = tdm_host_default();
    const tdm_host *given = *host;
    TDM_TRY(tdm__sized_check("host", given, TDM_HOST_OLDEST, sizeof(*given)));
    if ((given->allocate == NULL) != (given->release == NULL))
        TDM_FAIL(TDM_E_USAGE,
                 "host.allocate and host.release: one is a function, the other is NULL; give both or none");
    if (given->size >= offsetof(tdm_host, now_ns) && (given->thread_start == NULL) != (given->thread_join == NULL))
        TDM_FAIL(TDM_E_USAGE,
                 "host.thread_start and host.thread_join: one is a function, the other is NULL; give both or none");
    if (tdm__host_cpus(given) < 0) TDM_FAIL(TDM_E_USAGE, "host.cpus must be 0 or more, got %d", tdm__host_cpus(given));
    return TDM_OK;
}

void *tdm__host_allocate(const tdm_host *host, size_t bytes, size_t align) {
    const tdm_host *from = host->allocate != NULL ? host : tdm_host_default();
    return from->allocate(from->user, bytes, align);
}

tdm_status tdm__out_of_memory(const tdm_host *host, const char *what, size_t bytes) {
    char size[32], most[32], held[32];
    const tdm_limit limit = tdm__limit_of(host);
    tdm__print_bytes(size, bytes);
    if (limit.most == 0) TDM_FAIL(TDM_E_MEMORY, "%s: out of memory, needed %s", what, size);
    TDM_FAIL(TDM_E_MEMORY, "%s: host.memory_limit is %s, of which %s are in use, and %s more are needed; raise it",
             what, tdm__print_bytes(most, limit.most), tdm__print_bytes(held, limit.held), size);
}

/* Allocates without zeroing. */
static tdm_status allocate(const tdm_host *host, void **out, size_t count, size_t bytes, const char *what) {
    size_t total;
    *out = NULL;
    if (!tdm__mul_fits(count, bytes, &total) || total > SIZE_MAX - TDM_ALIGN)
        TDM_FAIL(TDM_E_MEMORY, "%s: %zu times %zu bytes is more than this machine can address", what, count, bytes);
    *out = tdm__host_allocate(host, total == 0 ? 1 : total, TDM_ALIGN);
    return *out != NULL ? TDM_OK : tdm__out_of_memory(host, what, total);
}

tdm_status tdm__new_at(const tdm_host *host, void *out, size_t count, size_t bytes, const char *what) {
    void *pointer;
    put_pointer(out, NULL);
    TDM_TRY(allocate(host, &pointer, count, bytes, what));
    memset(pointer, 0, count * bytes);
    put_pointer(out, pointer);
    return TDM_OK;
}

void tdm__delete(const tdm_host *host, void *pointer) {
    if (pointer == NULL) return;
    const tdm_host *from = host->release != NULL ? host : tdm_host_default();
    from->release(from->user, pointer);
}

/* Stands before the block, in a cache line of its own. */
typedef struct page_head {
    size_t mapped; /* bytes; 0: the block is from the host */
    char pad[TDM_ALIGN - sizeof(size_t)];
} page_head;

static tdm_status map_pages(const tdm_host *host, page_head **out, size_t bytes, const char *what) {
    *out = tdm__map_pages(bytes);
    if (*out == NULL) return tdm__out_of_memory(host, what, bytes);
    (*out)->mapped = bytes;
    return TDM_OK;
}

tdm_status tdm__new_pages_at(const tdm_host *host, void *out, size_t bytes, const char *what) {
    page_head *head = NULL;
    size_t total = 0;
    put_pointer(out, NULL);
    if (!tdm__add_fits(bytes, sizeof(*head), &total))
        TDM_FAIL(TDM_E_MEMORY, "%s: %zu bytes is more than this machine can address", what, bytes);
    if ((host->allocate == NULL || host->allocate == tdm_host_default()->allocate) && total >= 2 * TDM_HUGE_PAGE)
        TDM_TRY(map_pages(host, &head, total, what));
    else
        TDM_TRY(tdm__new(host, &head, 1, total, what));
    put_pointer(out, head + 1);
    return TDM_OK;
}

void tdm__delete_pages(const tdm_host *host, void *pointer) {
    if (pointer == NULL) return;
    page_head *head = (page_head *)pointer - 1;
    if (head->mapped > 0)
        (void)munmap(head, head->mapped);
    else
        tdm__delete(host, head);
}

void tdm__zone_init(tdm_zone *zone, const tdm_host *host) {
    zone->host = host;
    zone->blocks = NULL;
}

void tdm__zone_deinit(tdm_zone *zone) {
    tdm_zone_block *block = zone->blocks;
    while (block != NULL) {
        tdm_zone_block *next = block->next;
        tdm__delete(zone->host, block);
        block = next;
    }
    zone->blocks = NULL;
}

/* A large request gets a block of its own, because it would waste most of a shared one. That block goes second in the
 * list, so that the first one, which still has room, stays in use. */
static tdm_status add_block(tdm_zone *zone, size_t needed, tdm_zone_block **out) {
    size_t capacity = needed > ZONE_BLOCK / 4 ? needed : ZONE_BLOCK;
    size_t total;
    *out = NULL;
    if (!tdm__add_fits(capacity, sizeof(tdm_zone_block), &total))
        TDM_FAIL(TDM_E_MEMORY, ZONE_HOLDS ": %zu bytes is more than this machine can address", needed);
    void *memory;
    TDM_TRY(allocate(zone->host, &memory, 1, total, ZONE_HOLDS));
    tdm_zone_block *block = memory;
    *block = (tdm_zone_block){.capacity = capacity};
    if (capacity == ZONE_BLOCK || zone->blocks == NULL) {
        block->next = zone->blocks;
        zone->blocks = block;
    } else {
        block->next = zone->blocks->next;
        zone->blocks->next = block;
    }
    *out = block;
    return TDM_OK;
}

tdm_status tdm__zone_new_at(tdm_zone *zone, void *out, size_t count, size_t bytes) {
    size_t total;
    put_pointer(out, NULL);
    if (!tdm__mul_fits(count, bytes, &total) || total > SIZE_MAX - ZONE_ALIGN)
        TDM_FAIL(TDM_E_MEMORY, ZONE_HOLDS ": %zu times %zu bytes is more than this machine can address", count, bytes);
    const size_t needed = tdm__round_up(total == 0 ? 1 : total, ZONE_ALIGN);
    tdm_zone_block *block = zone->blocks;
    if (block == NULL || block->capacity - block->used < needed) TDM_TRY(add_block(zone, needed, &block));
    put_pointer(out, memset((char *)(block + 1) + block->used, 0, needed));
    block->used += needed;
    return TDM_OK;
}

tdm_status tdm__zone_text(tdm_zone *zone, const char **out, const char *text) {
    *out = NULL;
    if (text == NULL) return TDM_OK;
    size_t length = strlen(text);
    char *copy;
    TDM_TRY(tdm__zone_new(zone, &copy, length + 1, 1));
    memcpy(copy, text, length);
    *out = copy;
    return TDM_OK;
}

tdm_status tdm__zone_vprintf(tdm_zone *zone, const char **out, const char *format, va_list arguments) {
    va_list again;
    char *text;
    va_copy(again, arguments);
    const size_t bytes = (size_t)tdm__format(NULL, 0, format, arguments) + 1;
    tdm_status status = tdm__zone_new(zone, &text, bytes, 1);
    if (status == TDM_OK) tdm__format(text, bytes, format, again);
    va_end(again);
    *out = text;
    return status;
}

tdm_status tdm__zone_printf(tdm_zone *zone, const char **out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tdm_status status = tdm__zone_vprintf(zone, out, format, arguments);
    va_end(arguments);
    return status;
}

tdm_status tdm__grow_at(const tdm_host *host, void *items_pointer, size_t *capacity, size_t needed, size_t bytes,
                        const char *what) {
    if (needed <= *capacity) return TDM_OK;
    size_t larger = *capacity > SIZE_MAX / 2 ? needed : *capacity * 2;
    if (larger < 8) larger = 8;
    if (larger < needed) larger = needed;
    void *items, *old;
    TDM_TRY(tdm__new(host, &items, larger, bytes, what));
    memcpy(&old, items_pointer, sizeof(old));
    if (old != NULL) memcpy(items, old, *capacity * bytes);
    tdm__delete(host, old);
    put_pointer(items_pointer, items);
    *capacity = larger;
    return TDM_OK;
}
