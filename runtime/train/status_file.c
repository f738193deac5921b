/* status.json: what a job is doing, or how it ended. The run writes it; if its processes were killed, the launcher
 * does. */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/system/file.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_write.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

void tdm__status_print(tdm_text *text, const tdm_job_status *status) {
    char stamp[24];
    tdm__utc_stamp(text->host, stamp);
    tdm_json_out json = tdm__json_out(text, "");
    tdm__json_put(&json, "{ state:%s pid:%d step:%lld steps_total:%lld epoch:%lld", status->state,
                  status->pid != 0 ? status->pid : (int)getpid(), (long long)status->step,
                  (long long)status->steps_total, (long long)status->epoch);
    tdm__json_put(&json, "heartbeat:%s restarts:%lld exit_code:%d reason:%s }\n", stamp, (long long)status->restarts,
                  status->exit_code, status->reason);
}

enum { STATUS_BYTES = 8192 }; /* a reason has at most 2047 characters, each escaped into at most six */

/* Reads the file's numbers, and whether it reports an end; missing numbers keep their value. */
static void read_status(const tdm_folder *dir, tdm_job_status *out, bool *ended) {
    char text[STATUS_BYTES], word[STATUS_BYTES], key[32];
    size_t length;
    int fd = openat(dir->fd, "status.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
    if (fd >= 0) close(fd);
    tdm_json json;
    tdm__json_open(&json, text, got > 0 ? (size_t)got : 0, 1);
    if (!tdm__json_object(&json)) return;
    while (tdm__json_key(&json, key, sizeof(key), &length)) {
        int64_t number = 0;
        bool is_word = strcmp(key, "state") == 0 || strcmp(key, "heartbeat") == 0 || strcmp(key, "reason") == 0;
        if (is_word ? !tdm__json_string(&json, word, sizeof(word), &length) : !tdm__json_integer(&json, &number))
            return;
        if (strcmp(key, "state") == 0) *ended = strcmp(word, "running") != 0;
        if (strcmp(key, "step") == 0) out->step = number;
        if (strcmp(key, "steps_total") == 0) out->steps_total = number;
        if (strcmp(key, "epoch") == 0) out->epoch = number;
        if (strcmp(key, "exit_code") == 0) out->exit_code = (int)number;
    }
}

static const char *state_of(int exit_code) {
    return exit_code == TDM_OK          ? "finished"
           : exit_code == TDM_E_STOPPED ? "stopped"
           : exit_code > 128            ? "killed"
                                        : "failed";
}

/* This process holds the folder's lock until this returns. */
static tdm_status write_end(const tdm_folder *dir, int exit_code, int restarts, const char *reason) {
    tdm_job_status status = {.exit_code = -1};
    bool ended = false;
    read_status(dir, &status, &ended);
    bool is_whole = exit_code == TDM_OK || exit_code == TDM_E_STOPPED; /* the run wrote it then */
    if (is_whole && ended && status.exit_code == exit_code) return TDM_OK;
    status.state = state_of(exit_code);
    status.exit_code = exit_code;
    status.restarts = restarts;
    status.reason = reason;
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    tdm__status_print(&text, &status);
    tdm_status code = TDM_OK;
    if (text.failed)
        code = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory while writing status.json");
    else
        code = tdm__file_update(&tdm__file_system, dir, "status.json", text.data, text.length);
    tdm__text_deinit(&text);
    return code;
}

tdm_status tdm_launch_ended(const char *dir, int exit_code, int restarts, const char *reason) {
    if (dir == NULL || reason == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_ended: a pointer is NULL");
    tdm_folder folder = {.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .path = dir};
    if (folder.fd < 0) return TDM_OK;
    tdm_status status = TDM_OK;
    int lock = openat(folder.fd, ".lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) status = write_end(&folder, exit_code, restarts, reason);
    if (lock >= 0) close(lock);
    close(folder.fd);
    return status;
}
