/* runs.c - see runs.h. */
#include "tools/report/runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/terminal/term.h"

enum { DEPTH_MAX = 3, ENTRIES_MAX = 20000 }; /* runs/NAME/TIME; runs of `compare` are one folder deeper */

typedef struct search {
    char *newest; /* NULL: none yet */
    struct timespec at;
    int entries; /* seen so far */
} search;

static void keep_newer(search *s, const char *path, struct timespec at) {
    bool is_newer = at.tv_sec != s->at.tv_sec ? at.tv_sec > s->at.tv_sec : at.tv_nsec > s->at.tv_nsec;
    if (s->newest && !is_newer) return;
    free(s->newest);
    s->newest = text_copy(path);
    s->at = at;
}

static void look_in(search *s, int parent, const char *name, const char *path, int depth);

static void look_below(search *s, int folder, const char *path, int depth) {
    DIR *dir = fdopendir(folder);
    struct dirent *entry;
    if (!dir) close(folder);
    while (dir && s->entries++ < ENTRIES_MAX && (entry = readdir(dir)) != NULL) {
        bool may_be_folder = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (!may_be_folder || entry->d_name[0] == '.') continue;
        FREED char *below = text_format("%s%s%s", path, text_ends(path, "/") ? "" : "/", entry->d_name);
        look_in(s, folder, entry->d_name, below, depth + 1);
    }
    if (dir) closedir(dir);
}

static void look_in(search *s, int parent, const char *name, const char *path, int depth) {
    struct stat status;
    int follow = depth > 0 ? O_NOFOLLOW : 0;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (folder < 0) return;
    bool is_run = fstatat(folder, "status.json", &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_run && depth > 0) keep_newer(s, path, status.st_mtim);
    if (is_run || depth == DEPTH_MAX) {
        close(folder);
    } else {
        look_below(s, folder, path, depth);
    }
}

void runs_hint(const char *folder) {
    search s = {.newest = NULL};
    look_in(&s, AT_FDCWD, folder, folder, 0);
    if (s.newest) term_line("       the newest run in it is %s", s.newest);
    free(s.newest);
}

bool runs_lacks(const char *path, const char *name) {
    struct stat info;
    FREED char *file = text_format("%s/%s", path, name);
    bool lacks = stat(path, &info) == 0 && S_ISDIR(info.st_mode) && files_is_missing(file);
    if (!lacks) return false;
    term_error("%s is not a run directory: it has no %s", path, name);
    runs_hint(path);
    return true;
}
