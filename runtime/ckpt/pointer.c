/* The files `latest` and `best`: each names a checkpoint beside it, for people and for the paths that they give. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"

bool tdm__is_pointer(const char *name) {
    return strcmp(name, "latest") == 0 || strcmp(name, "best") == 0;
}

tdm_status tdm__pointer_set(const tdm_file_ops *ops, const tdm_folder *dir, const char *name, int64_t step) {
    char step_name[32], line[40];
    tdm__step_name(step_name, step);
    if (!tdm__file_is_folder(dir, step_name)) return TDM_OK;
    int length = snprintf(line, sizeof(line), "%s\n", step_name);
    return tdm__file_replace(ops, dir, name, line, (size_t)length);
}

tdm_status tdm__pointer_remove(const tdm_file_ops *ops, const tdm_folder *dir, const char *name) {
    if (ops->unlink(ops->user, dir->fd, name) == 0 || errno == ENOENT) return TDM_OK;
    return tdm__file_fail("remove", dir, name, errno);
}

static tdm_status read_pointer(const char *path, char *line, size_t room) {
    uint64_t bytes;
    int fd;
    TDM_TRY(tdm__file_open(&fd, &bytes, NULL, path, TDM_E_CHECKPOINT));
    size_t count = bytes < room ? (size_t)bytes : room - 1;
    tdm_status status = tdm__file_read(fd, path, line, count, 0, TDM_E_CHECKPOINT);
    close(fd);
    line[status == TDM_OK ? count : 0] = '\0';
    return status;
}

tdm_status tdm__pointer_follow(tdm_zone *zone, const char *path, const char **out) {
    const char *slash = strrchr(path, '/');
    char line[40];
    int64_t step;
    *out = NULL;
    if (!tdm__is_pointer(slash != NULL ? slash + 1 : path) || tdm__file_is_folder(NULL, path)) return TDM_OK;
    if (!tdm__file_is_there(NULL, path))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: there is no such file; %s", path,
                 strcmp(slash != NULL ? slash + 1 : path, "best") == 0
                     ? "a run with checkpoint.keep_best writes it after its first evaluation"
                     : "a run writes it with its first checkpoint");
    TDM_TRY(read_pointer(path, line, sizeof(line)));
    size_t length = strcspn(line, "\n");
    bool is_line = strcmp(line + length, "\n") == 0;
    line[length] = '\0';
    if (!is_line || !tdm__step_of(line, &step))
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: expected one line with the name of a checkpoint, such as step-00000391; name "
                 "the checkpoint's folder itself",
                 path);
    const char *folder;
    TDM_TRY(tdm__zone_printf(zone, &folder, "%.*s%s", slash != NULL ? (int)(slash + 1 - path) : 0, path, line));
    if (!tdm__file_is_folder(NULL, folder))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s names %s, which is not there; name another checkpoint", path, line);
    *out = folder;
    return TDM_OK;
}
