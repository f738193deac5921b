/* runs.c - see runs.h. */
#include "tools/report/runs.h"

#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/terminal/term.h"

enum { DEPTH_MAX = 3, ENTRIES_MAX = 20000 }; /* runs/NAME/TIME; runs of `compare` are one folder deeper */

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

void runs_hint(const char *folder) {
    FREED char *root = text_copy(folder), *newest = NULL;
    struct timespec at = {0, 0};
    struct stat status;
    FTS *walk = fts_open((char *const[]){root, NULL}, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    for (int i = 0; walk && i < ENTRIES_MAX && (entry = fts_read(walk)) != NULL; i++) {
        if (entry->fts_info != FTS_D) continue;
        FREED char *file = text_format("%s/status.json", entry->fts_path);
        bool is_root = entry->fts_level == 0, is_hidden = !is_root && entry->fts_name[0] == '.';
        bool is_run = !is_hidden && lstat(file, &status) == 0;
        if (is_run && !is_root && (!newest || is_later(status.st_mtim, at))) {
            free(newest);
            newest = text_copy(entry->fts_path);
            at = status.st_mtim;
        }
        if (is_run || is_hidden || entry->fts_level == DEPTH_MAX) fts_set(walk, entry, FTS_SKIP);
    }
    if (walk) fts_close(walk);
    if (newest) term_line("       the newest run in it is %s", newest);
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
