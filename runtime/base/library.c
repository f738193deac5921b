/* The loader answers with a sentence only, in the user's language and with "no such file" for a file that it had no
 * memory to look for. What tells a lack of memory is errno, which requests for memory set; and that there is no room
 * for the library, for the loader's own mappings set nothing. */
#include "runtime/base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "runtime/base/status.h"

/* As the loader maps data: private and writable, which a machine that promises no more than it has counts. */
static bool has_room(size_t bytes) {
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return false;
    munmap(room, bytes);
    return true;
}

tdm_status tdm__library_open(void **out, const char *path, size_t room, char *why, size_t bytes) {
    errno = 0;
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*out != NULL) return TDM_OK;
    const bool short_of_memory = errno == ENOMEM || !has_room(room);
    const char *said = dlerror();
    snprintf(why, bytes, "%s", said != NULL ? said : "it cannot be opened");
    if (short_of_memory)
        TDM_FAIL(TDM_E_MEMORY, "%s cannot be loaded for lack of memory (%s); raise the limit (ulimit -v)", path, why);
    return TDM_OK;
}
