/* Arenas are read and written from end to end every step; on huge pages that takes a five-hundredth of the translations
 * and page faults. */
#ifndef TDM_BASE_HUGE_PAGE_H
#define TDM_BASE_HUGE_PAGE_H

#include <stddef.h>
#include <sys/mman.h>

enum { TDM_HUGE_PAGE = 2 << 20 };

/* Advice for the whole huge pages of a range that begins on one; that it is not taken is no failure. */
static inline void tdm__advise_huge_pages(void *start, size_t bytes) {
    (void)madvise(start, bytes - bytes % TDM_HUGE_PAGE, MADV_HUGEPAGE);
}

#endif
