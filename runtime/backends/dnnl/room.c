/* Whether there is memory for what oneDNN makes next. */
#include "runtime/backends/dnnl/kit/dnnl.h"

#include <stdlib.h>
#include <sys/mman.h>

/* oneDNN takes up to 12 MiB at once. Meanwhile another thread may ask the C library for memory the first time, which
 * reserves 64 MiB of addresses for it. */
enum { CODE_ROOM = 128 << 20, HEAP_ROOM = 64 << 10 };

/* Where oneDNN gets no memory for code it writes that code through a null pointer, without an exception that edge.cpp
 * could stop. So what it is about to take is asked for first: address space, which costs two system calls and
 * touches nothing, and a piece of the heap. */
dnnl_status_t tdm__dnnl_room(void) {
    void *room = mmap(NULL, CODE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return dnnl_out_of_memory;
    munmap(room, CODE_ROOM);
    void *volatile heap = malloc(HEAP_ROOM); /* volatile: or the compiler would take it as given */
    if (heap == NULL) return dnnl_out_of_memory;
    free(heap);
    return dnnl_success;
}
