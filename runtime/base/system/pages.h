/* Advice to the kernel about pages of memory. A refusal is ignored. */
#ifndef TDM_BASE_PAGES_H
#define TDM_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/round.h"

enum { TDM_HUGE_PAGE = 2 << 20 };

/* Asks for huge pages. Every step reads and writes the arenas from end to end, and they cut the address translations
 * and page faults of that to a five-hundredth. `start` must be aligned to one; only whole huge pages of the range count.
 */
static inline void tdm__advise_huge_pages(void *start, size_t bytes) {
    (void)madvise(start, bytes - bytes % TDM_HUGE_PAGE, MADV_HUGEPAGE);
}

/* Gives back the whole pages in a range of a mapped file that nobody has written: they are read from the file again
 * when they are touched. */
static inline void tdm__give_back_pages(uintptr_t at, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = tdm__round_up(at, page), end = (at + bytes) / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

#endif
