/* The loader answers with a sentence only, in the user's language and with "no such file" for a file that it had no
 * memory to look for. What tells a lack of memory is errno, which requests for memory set; and that there is no room
 * for the library, for the loader's own mappings set nothing. */
#include "runtime/base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* "7f00-7f80 r--p 00000000 08:01 1234    /usr/lib/x.so": the path, if the address is in there. */
static const char *file_in(char *line, uintptr_t address) {
    uintptr_t from, to;
    int path = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &from, &to, &path) < 2 || path == 0) return NULL;
    if (address < from || address >= to) return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line + path;
}

/* Of a path with a line break only an escape is shown, which may as well be meant literally. */
static bool is_whole(const char *path) {
    static const char removed[] = " (deleted)";
    const size_t length = strlen(path), end = sizeof removed - 1;
    return path[0] == '/' && strchr(path, '\\') == NULL &&
           !(length >= end && strcmp(path + length - end, removed) == 0);
}

tdm_status tdm__library_file(const void *address, char *path, size_t bytes) {
    char line[PATH_MAX + 128];
    const char *found = NULL;
    bool begins = true; /* the line, not the rest of one that is longer than any that counts */
    path[0] = '\0';
    errno = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && found == NULL && fgets(line, sizeof line, maps) != NULL) {
        const bool ends = strchr(line, '\n') != NULL;
        if (begins && ends) found = file_in(line, (uintptr_t)address);
        begins = ends;
    }
    const int error = errno;
    if (maps != NULL) fclose(maps);
    if (found == NULL && (error == ENOMEM || error == EMFILE || error == ENFILE))
        TDM_FAIL(TDM_E_MEMORY, "/proc/self/maps cannot be read: %s", strerrordesc_np(error));
    if (found != NULL && is_whole(found) && strlen(found) < bytes) strcpy(path, found);
    return TDM_OK;
}
