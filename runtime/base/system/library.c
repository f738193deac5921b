/* dlopen reports only a text, in the user's language, and "no such file" even if it merely had no memory to look for
 * the file. Two signs tell that there was no memory: errno is ENOMEM, which a failed allocation sets; or there is no
 * address space for the library, because the loader's own failed mappings do not set errno. */
#include "runtime/base/system/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/status.h"

/* Tries a mapping like those of the loader: private and writable, which counts against the commit limit of a machine
 * without overcommit. */
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
    const char *message = dlerror();
    snprintf(why, bytes, "%s", message != NULL ? message : "it cannot be opened");
    if (short_of_memory)
        TDM_FAIL(TDM_E_MEMORY, "%s cannot be loaded: out of memory (%s); raise the limit on address space (ulimit -v)",
                 path, why);
    return TDM_OK;
}

/* A line is "7f00-7f80 r--p 00000000 08:01 1234    /usr/lib/x.so". Returns the path if the range contains `address`. */
static const char *file_in(char *line, uintptr_t address) {
    uintptr_t from, to;
    int path = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &from, &to, &path) < 2 || path == 0) return NULL;
    if (address < from || address >= to) return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line + path;
}

/* Is this the path of an existing file? The kernel escapes a line break with a backslash, which cannot be told from a
 * literal backslash, and marks removed files. */
static bool is_whole(const char *path) {
    static const char removed[] = " (deleted)";
    const size_t length = strlen(path), end = sizeof removed - 1;
    return path[0] == '/' && strchr(path, '\\') == NULL &&
           !(length >= end && strcmp(path + length - end, removed) == 0);
}

tdm_status tdm__library_file(const void *address, char *path, size_t bytes) {
    char line[PATH_MAX + 128];
    const char *found = NULL;
    bool begins = true; /* fgets returns the start of a line, not the rest of one that was too long */
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
