/* Checks that there is memory for what oneDNN makes next. */
#include "runtime/backends/dnnl/kit/dnnl.h"

#include <stdlib.h>
#include <sys/mman.h>

/* oneDNN takes up to 12 MiB at a time. Meanwhile another thread may allocate for the first time, and the C library then
 * reserves 64 MiB of addresses for it. */
enum { CODE_ROOM = 128 << 20, HEAP_ROOM = 64 << 10 };

/* If oneDNN gets no memory for code it writes the code through a null pointer, and there is no exception that edge.cpp
 * could stop. So the memory that it will take is tested first: address space, at the cost of two system calls and
 * touching nothing, and a piece of the heap. */
dnnl_status_t tdm__dnnl_room(void) {
    void *room = mmap(NULL, CODE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return dnnl_out_of_memory;
    munmap(room, CODE_ROOM);
    void *volatile heap = malloc(HEAP_ROOM); /* volatile, or the compiler removes the allocation */
    if (heap == NULL) return dnnl_out_of_memory;
    free(heap);
    return dnnl_success;
}
