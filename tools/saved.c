/* saved.c - see saved.h. */
#include "tools/saved.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t saved_step(const char *dir) {
    char *path = text_format("%s/checkpoints", dir);
    DIR *folder = opendir(files_exists(path) ? path : dir);
    struct dirent *entry;
    int64_t newest = -1;
    while (folder && (entry = readdir(folder)) != NULL) {
        char *end;
        errno = 0;
        long long step = strncmp(entry->d_name, "step-", 5) == 0 ? strtoll(entry->d_name + 5, &end, 10) : -1;
        if (step > newest && *end == 0 && errno == 0) newest = step;
    }
    if (folder) closedir(folder);
    free(path);
    return newest;
}

int saved_code(const tdm_job *job) {
    const char *resume = job->checkpoint.resume;
    bool goes_on = job->run.dir && resume && strcmp(resume, "auto") == 0;
    return goes_on && saved_step(job->run.dir) > 0 ? TDM_E_STOPPED : 0;
}
