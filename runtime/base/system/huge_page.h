/* Every step reads and writes the arenas from end to end. Huge pages cut the address translations and page faults of
 * that to a five-hundredth. */
#ifndef TDM_BASE_HUGE_PAGE_H
#define TDM_BASE_HUGE_PAGE_H

#include <stddef.h>
#include <sys/mman.h>

enum { TDM_HUGE_PAGE = 2 << 20 };

/* Asks the kernel for huge pages. `start` must be aligned to one; only whole huge pages of the range count. It is only
 * advice, so a refusal is ignored. */
static inline void tdm__advise_huge_pages(void *start, size_t bytes) {
    (void)madvise(start, bytes - bytes % TDM_HUGE_PAGE, MADV_HUGEPAGE);
}

#endif
