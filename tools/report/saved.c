/* saved.c - see saved.h. */
#include "tools/report/saved.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_absent(int error) {
    return error == ENOENT || error == ENOTDIR;
}

static int64_t step_of(const char *name) {
    char *end;
    if (strncmp(name, "step-", 5) != 0) return SAVED_NONE;
    errno = 0;
    long long step = strtoll(name + 5, &end, 10);
    return *end == 0 && errno == 0 ? step : SAVED_NONE;
}

static int64_t newest_of(DIR *folder) {
    int64_t newest = SAVED_NONE;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) return errno == 0 ? newest : SAVED_UNREADABLE;
        int64_t step = step_of(entry->d_name);
        if (step > newest) newest = step;
    }
}

int64_t saved_step(const char *dir) {
    FREED char *path = text_format("%s/checkpoints", dir);
    DIR *folder = opendir(path);
    if (!folder && is_absent(errno)) folder = opendir(dir);
    int64_t newest = folder ? newest_of(folder) : is_absent(errno) ? SAVED_NONE : SAVED_UNREADABLE;
    if (folder) closedir(folder);
    return newest;
}

int saved_code(const tdm_job *job) {
    const char *resume = job->checkpoint.resume;
    bool goes_on = job->run.dir && resume && strcmp(resume, "auto") == 0;
    return goes_on && saved_step(job->run.dir) > 0 ? TDM_E_STOPPED : 0;
}
