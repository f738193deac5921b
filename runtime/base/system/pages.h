/* Pages of memory: from the kernel, and advice to it. A refusal of advice is ignored. */
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

/* Maps so many bytes from the system, large blocks at the start of a huge page; NULL: there are none. End them with
 * munmap. */
static inline void *tdm__map_pages(size_t bytes) {
    const size_t room = bytes >= 2 * TDM_HUGE_PAGE ? bytes + TDM_HUGE_PAGE : bytes;
    char *map = room >= bytes ? (char *)mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                              : (char *)MAP_FAILED;
    if (map == MAP_FAILED) return NULL;
    if (room == bytes) return map;
    const size_t front = (TDM_HUGE_PAGE - (uintptr_t)map % TDM_HUGE_PAGE) % TDM_HUGE_PAGE;
    const size_t used = front + tdm__round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
    if (front > 0) (void)munmap(map, front);
    if (used < room) (void)munmap(map + used, room - used);
    tdm__advise_huge_pages(map + front, bytes);
    return map + front;
}

/* Gives back the whole pages in a range of a mapped file that nobody has written: they are read from the file again
 * when they are touched. */
static inline void tdm__give_back_pages(uintptr_t at, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = tdm__round_up(at, page), end = (at + bytes) / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

#endif
