/* Host memory from the embedder's tdm_host: single blocks, or a zone that is freed in one call. */
#ifndef TDM_BASE_MEMORY_H
#define TDM_BASE_MEMORY_H

#include <stdarg.h>
#include <stdbool.h>

#include <tandem/host.h>

enum { TDM_ALIGN = 64 }; /* a cache line, and the widest vector register */

/* The address of a pointer of any type. The address of anything else does not compile. */
#define TDM_POINTER_AT(out) ((void)sizeof(*(out) == NULL), (void *)(out))

/* Replaces NULL by the default host. TDM_E_USAGE if the host cannot be used. */
tdm_status tdm__host_take(const tdm_host **host);
/* The host's memory, or the C library's. For functions that need another alignment than TDM_ALIGN, or no zeros. */
void *tdm__host_allocate(const tdm_host *host, size_t bytes, size_t align);

/* *out = `count * bytes` zeroed bytes aligned to TDM_ALIGN. TDM_E_MEMORY names `what` and the size, also if the product
 * overflows. A product of 0 gives a valid pointer. On failure *out is NULL. */
#define tdm__new(host, out, count, bytes, what) tdm__new_at(host, TDM_POINTER_AT(out), count, bytes, what)
tdm_status tdm__new_at(const tdm_host *host, void *out, size_t count, size_t bytes, const char *what);
void tdm__delete(const tdm_host *host, void *pointer); /* NULL is fine */

/* Like tdm__new, for arenas. With the default host the memory is mapped from the system, as huge pages. They are zero
 * already; zeroing them again would touch every page for nothing. Release with tdm__delete_pages only. */
#define tdm__new_pages(host, out, bytes, what) tdm__new_pages_at(host, TDM_POINTER_AT(out), bytes, what)
tdm_status tdm__new_pages_at(const tdm_host *host, void *out, size_t bytes, const char *what);
void tdm__delete_pages(const tdm_host *host, void *pointer); /* NULL is fine */

/* The failure of an allocation. */
tdm_status tdm__out_of_memory(const tdm_host *host, const char *what, size_t bytes);

/* Checked arithmetic on sizes that came from a file: true when the result fits. */
bool tdm__add_fits(size_t a, size_t b, size_t *out);
bool tdm__mul_fits(size_t a, size_t b, size_t *out);

typedef struct tdm_zone_block tdm_zone_block;
/* A bump allocator. Its memory is zeroed and lives until the zone is deinitialised. Not thread-safe. */
typedef struct tdm_zone {
    const tdm_host *host;
    tdm_zone_block *blocks;
} tdm_zone;

void tdm__zone_init(tdm_zone *zone, const tdm_host *host);
void tdm__zone_deinit(tdm_zone *zone);
#define tdm__zone_new(zone, out, count, bytes) tdm__zone_new_at(zone, TDM_POINTER_AT(out), count, bytes)
tdm_status tdm__zone_new_at(tdm_zone *zone, void *out, size_t count, size_t bytes);
/* Copies a text, with its NUL. NULL gives NULL. */
tdm_status tdm__zone_text(tdm_zone *zone, const char **out, const char *text);
tdm_status tdm__zone_printf(tdm_zone *zone, const char **out, const char *format, ...) TDM_PRINTF(3, 4);
tdm_status tdm__zone_vprintf(tdm_zone *zone, const char **out, const char *format, va_list arguments) TDM_PRINTF(3, 0);

/* Grows an array of any element type to at least `needed` elements, by doubling its capacity. */
#define tdm__grow(host, items, capacity, needed, bytes, what) \
    tdm__grow_at(host, TDM_POINTER_AT(items), capacity, needed, bytes, what)
tdm_status tdm__grow_at(const tdm_host *host, void *items, size_t *capacity, size_t needed, size_t bytes,
                        const char *what);

#endif
