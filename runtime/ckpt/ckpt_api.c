/* The public view of checkpoints, tandem/checkpoint.h, over ckpt.h. */
#include <tandem/checkpoint.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/ckpt.h"

typedef tdm_status (*printer)(const tdm_host *host, const char *path, bool json, tdm_text *out);

static tdm_status print(printer function, const tdm_host *host, const char *path, int json, char **out) {
    if (!path || !out) TDM_FAIL(TDM_E_USAGE, "a path and a place for the text are wanted, NULL was given");
    *out = NULL;
    if (!host) host = tdm_host_default();
    tdm_text text;
    tdm__text_init(&text, host);
    tdm_status status = function(host, path, json != 0, &text);
    if (status == TDM_OK) status = tdm__text_take(&text, out);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm_checkpoint_list(const tdm_host *host, const char *path, int json, char **out) {
    return print(tdm__ckpt_list, host, path, json, out);
}

tdm_status tdm_checkpoint_show(const tdm_host *host, const char *path, int json, char **out) {
    return print(tdm__ckpt_show, host, path, json, out);
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int is_step(const struct dirent *entry) {
    return strncmp(entry->d_name, "step-", 5) == 0 && strlen(entry->d_name) == 13 &&
           strspn(entry->d_name + 5, "0123456789") == 8;
}

/* Every step directory in `folder`, oldest first; stops at the first that is damaged. */
static tdm_status verify_all(const tdm_host *host, const char *folder) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_step, alphasort);
    tdm_status status = TDM_OK;
    if (count < 0) TDM_FAIL(TDM_E_CHECKPOINT, "%s cannot be listed", folder);
    if (count == 0) status = tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "%s holds no checkpoint", folder);
    for (int i = 0; i < count && status == TDM_OK; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        status = tdm__ckpt_verify(host, path);
    }
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    return status;
}

tdm_status tdm_checkpoint_verify(const tdm_host *host, const char *path, char **checked) {
    if (!path) TDM_FAIL(TDM_E_USAGE, "a path is wanted, NULL was given");
    if (checked) *checked = NULL;
    if (!host) host = tdm_host_default();
    char inner[4096];
    int length = snprintf(inner, sizeof inner, "%s/MANIFEST.json", path);
    if (length < 0 || (size_t)length >= sizeof inner) TDM_FAIL(TDM_E_CHECKPOINT, "the path of a checkpoint is too long");
    const char *what = path;
    struct stat info;
    bool step = stat(inner, &info) == 0;
    if (!is_folder(path)) {
        tdm_tensor_file *file;
        TDM_TRY(tdm__tensor_file_open(&file, host, path));
        tdm__tensor_file_close(file);
    } else if (step) {
        TDM_TRY(tdm__ckpt_verify(host, path));
    } else {
        snprintf(inner, sizeof inner, "%s/checkpoints", path);
        if (is_folder(inner)) what = inner;
        TDM_TRY(verify_all(host, what));
    }
    if (!checked) return TDM_OK;
    tdm_text text;
    tdm__text_init(&text, host);
    tdm__text_puts(&text, what);
    return tdm__text_take(&text, checked);
}
