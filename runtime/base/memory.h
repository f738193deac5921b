/* Host memory: through the embedder's tdm_host, singly or from a bump arena that is freed in one call. */
#ifndef TDM_BASE_MEMORY_H
#define TDM_BASE_MEMORY_H

#include <stdbool.h>

#include <tandem/host.h>

enum { TDM_ALIGN = 64 }; /* a cache line, and the widest vector register */

/* NULL becomes the default host; one that cannot be used is TDM_E_USAGE. */
tdm_status tdm__host_take(const tdm_host **host);

/* `count * bytes` zeroed bytes aligned to TDM_ALIGN into *out; TDM_E_MEMORY names `what`, wanted bytes. Overflow of
 * the product is TDM_E_MEMORY too. A product of 0 gives a valid pointer. On failure *out is NULL. */
tdm_status tdm__new(const tdm_host *host, void *out, size_t count, size_t bytes, const char *what);
void tdm__delete(const tdm_host *host, void *pointer); /* NULL is fine */

/* As tdm__new, for arenas. Where the host is the default one they come from the system, as huge pages that are zero
 * already: writing zeros would touch all of them once for nothing. Released by tdm__delete_pages only. */
tdm_status tdm__new_pages(const tdm_host *host, void *out, size_t bytes, const char *what);
void tdm__delete_pages(const tdm_host *host, void *pointer); /* NULL is fine */

/* Checked arithmetic on sizes that came from a file: true when the result fits. */
bool tdm__add_fits(size_t a, size_t b, size_t *out);
bool tdm__mul_fits(size_t a, size_t b, size_t *out);

typedef struct tdm_arena_block tdm_arena_block;
/* A bump allocator; what it gives is zeroed and lives until the arena is deinitialised. Not thread-safe. */
typedef struct tdm_arena {
    const tdm_host *host;
    tdm_arena_block *blocks;
} tdm_arena;

void tdm__arena_init(tdm_arena *arena, const tdm_host *host);
void tdm__arena_deinit(tdm_arena *arena);
tdm_status tdm__arena_new(tdm_arena *arena, void *out, size_t count, size_t bytes);
/* A copy with a terminating NUL. NULL text gives NULL. */
tdm_status tdm__arena_text(tdm_arena *arena, const char **out, const char *text);
tdm_status tdm__arena_printf(tdm_arena *arena, const char **out, const char *format, ...) TDM_PRINTF(3, 4);

/* A growing array `{count, capacity, items}` of any element type, from a host; grown by doubling. */
tdm_status tdm__grow(const tdm_host *host, void *items_pointer, size_t *capacity, size_t wanted, size_t bytes,
                     const char *what);

#endif
