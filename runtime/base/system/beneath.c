/* Opening below a folder, see beneath.h. */
#include "runtime/base/system/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALWAYS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* Without openat2: one name after the other, no links. */
static int open_by_names(int folder, const char *path, int flags) {
    char name[256];
    int at = folder;
    if (path[0] == '/') {
        errno = EXDEV;
        return -1;
    }
    for (;;) {
        const size_t length = strcspn(path, "/");
        const int is_last = path[length] == '\0';
        int next = -1;
        errno = length < sizeof(name) ? EXDEV : ENAMETOOLONG;
        if (length < sizeof(name)) {
            memcpy(name, path, length);
            name[length] = '\0';
            if (strcmp(name, "..") != 0)
                next = openat(at, length > 0 ? name : ".", ALWAYS | O_NOFOLLOW | (is_last ? flags : O_DIRECTORY));
        }
        const int error = errno;
        if (at != folder) close(at);
        errno = error;
        if (next < 0 || is_last) return next;
        at = next;
        path += length + 1;
    }
}

int tdm__open_beneath(int folder, const char *path, int flags) {
    const struct open_how how = {.flags = (unsigned)(ALWAYS | flags), .resolve = RESOLVE_BENEATH};
    const long fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return (int)fd;
    return open_by_names(folder, path, flags);
}
