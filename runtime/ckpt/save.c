/* Saving, so that a crash at any instant leaves the previous checkpoint valid:
 *
 *   1. .step-XXXXXXXX.tmp-<pid>-<n> is made beside the others and locked while it is written.
 *   2. Every file is written and fsynced, MANIFEST.json last; then the temporary directory is fsynced.
 *   3. It is renamed to step-XXXXXXXX (exchanged with one that is there and differs); the parent is fsynced. Saved.
 *   4. `latest` is replaced: a hint for people, never believed.
 *   5. Checkpoints older than the newest keep_last are renamed to temporary names, then deleted.
 *
 * A failure up to 3 removes the temporary directory. What a killed process left is removed by the next save. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"

typedef struct saving {
    const tdm_host *host;
    const tdm_file_ops *ops;
    tdm_arena arena;
    const char *dir;
    const char *temporary; /* NULL: none of ours is there */
    const char *final;
    int lock; /* the temporary directory, open and locked; -1: not */
} saving;

/* ---- temporary names ---- */

/* A name .step-XXXXXXXX.tmp-<pid>-<n> that is not taken; it can be taken until it is used. */
static tdm_status temporary_name(saving *s, int64_t step, int from, const char **out, int *n) {
    char name[32];
    struct stat about;
    tdm__step_name(name, step);
    for (*n = from; *n < from + 10000; ++*n) {
        TDM_TRY(tdm__arena_printf(&s->arena, out, "%s/.%s.tmp-%ld-%d", s->dir, name, (long)getpid(), *n));
        if (lstat(*out, &about) != 0 && errno == ENOENT) return TDM_OK;
    }
    TDM_FAIL(TDM_E_IO, "%s: too many temporary folders of step %lld; remove them", s->dir, (long long)step);
}

static tdm_status make_temporary(saving *s, int64_t step) {
    const char *path;
    for (int n = 0;; n++) {
        TDM_TRY(temporary_name(s, step, n, &path, &n));
        if (s->ops->mkdir(s->ops->user, path, 0777) == 0) break;
        if (errno != EEXIST) return tdm__file_fail("make the folder", path, errno);
    }
    s->temporary = path;
    s->lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->lock >= 0) flock(s->lock, LOCK_EX | LOCK_NB); /* where there are no locks, the pid has to do */
    return TDM_OK;
}

/* Whose process is gone? The name says the pid; a lock that is held says that it lives, whatever the pid. */
static bool is_stale(const char *path, long pid) {
    if (pid != (long)getpid() && tdm__process_lives(pid)) return false;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno != ENOENT;
    bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return !held;
}

/* The pid in a name of our own pattern, which is what is printed again from its parts; 0: not our pattern. */
static long pid_of(const char *name) {
    char again[96];
    long long step;
    long pid;
    int n;
    if (sscanf(name, ".step-%18lld.tmp-%9ld-%9d", &step, &pid, &n) == 3) {
        snprintf(again, sizeof(again), ".step-%08lld.tmp-%ld-%d", step, pid, n);
        if (strcmp(name, again) == 0) return pid;
    }
    if (sscanf(name, "latest.tmp-%9ld", &pid) == 1) {
        snprintf(again, sizeof(again), "latest.tmp-%ld", pid);
        if (strcmp(name, again) == 0) return pid;
    }
    return 0;
}

static tdm_status remove_any(saving *s, const char *path) {
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode)) return tdm__folder_remove(s->host, s->ops, path);
    return s->ops->unlink(s->ops->user, path) == 0 ? TDM_OK : tdm__file_fail("remove", path, errno);
}

/* What killed processes left. */
static tdm_status reap(saving *s) {
    tdm_status status = TDM_OK;
    struct dirent *entry;
    DIR *folder = opendir(s->dir);
    if (folder == NULL) return tdm__file_fail("list", s->dir, errno);
    while ((entry = readdir(folder)) != NULL) {
        const char *path;
        long pid = pid_of(entry->d_name);
        if (pid <= 0) continue;
        TDM_TRY_DONE(tdm__path_join(&s->arena, &path, s->dir, entry->d_name));
        if (!is_stale(path, pid)) continue;
        if (remove_any(s, path) != TDM_OK)
            TDM_WARN(s->host, "ckpt", "%s, left by process %ld, stays: %s", entry->d_name, pid, tdm_error_message());
        else
            TDM_INFO(s->host, "ckpt", "removed %s, left by process %ld", entry->d_name, pid);
    }
done:
    closedir(folder);
    return status;
}

/* ---- writing ---- */

static tdm_status write_tensors(saving *s, int part, const tdm_tensor *tensors, int count, int64_t step,
                                tdm_manifest_file *entry) {
    char step_text[24];
    const char *path;
    const char *const metadata[] = {"format", "pt", "tandem.format", "1", "tandem.step", step_text, NULL};
    snprintf(step_text, sizeof(step_text), "%lld", (long long)step);
    TDM_TRY(tdm__path_join(&s->arena, &path, s->temporary, tdm__ckpt_file_names[part]));
    TDM_TRY(tdm__arena_new(&s->arena, &entry->tensor_hash, (size_t)count, sizeof(*entry->tensor_hash)));
    entry->listed = true;
    return tdm__tensor_file_write_with(s->host, s->ops, path, tensors, count, metadata, entry->tensor_hash,
                                       &entry->hash, &entry->bytes);
}

/* A small file; its size and hash into *entry unless that is NULL. */
static tdm_status write_text(saving *s, const char *name, const char *text, size_t bytes, tdm_manifest_file *entry) {
    const char *path;
    tdm_out_file file;
    TDM_TRY(tdm__path_join(&s->arena, &path, s->temporary, name));
    TDM_TRY(tdm__out_open(&file, s->ops, path, bytes, NULL));
    tdm_status status = tdm__out_write(&file, text, bytes);
    if (status != TDM_OK) {
        tdm__out_discard(&file);
        return status;
    }
    TDM_TRY(tdm__out_finish(&file));
    if (entry != NULL) *entry = (tdm_manifest_file){.listed = true, .bytes = bytes, .hash = tdm__hash(text, bytes)};
    return TDM_OK;
}

static tdm_status write_files(saving *s, const tdm_ckpt_parts *parts) {
    tdm_manifest manifest = {.file = {{.listed = false}}};
    const tdm_tensor *const tensors[2] = {parts->model, parts->optimizer};
    const int counts[2] = {parts->model_count, parts->optimizer_count};
    const char *config = parts->config_yaml;
    tdm_text text;
    tdm_status status;
    tdm__text_init(&text, s->host);
    for (int part = TDM_CKPT_MODEL; part <= TDM_CKPT_OPTIMIZER; part++)
        TDM_TRY_DONE(write_tensors(s, part, tensors[part], counts[part], parts->state.step, &manifest.file[part]));
    if (config != NULL)
        TDM_TRY_DONE(write_text(s, tdm__ckpt_file_names[TDM_CKPT_CONFIG], config, strlen(config),
                                &manifest.file[TDM_CKPT_CONFIG]));
    tdm__state_print(&text, &parts->state);
    if (text.failed) TDM_FAIL_DONE(TDM_E_MEMORY, "checkpoint: out of memory for state.json");
    TDM_TRY_DONE(
        write_text(s, tdm__ckpt_file_names[TDM_CKPT_STATE], text.data, text.length, &manifest.file[TDM_CKPT_STATE]));
    tdm__text_deinit(&text);
    tdm__manifest_print(&text, &manifest, tensors, counts);
    if (text.failed) TDM_FAIL_DONE(TDM_E_MEMORY, "checkpoint: out of memory for MANIFEST.json");
    TDM_TRY_DONE(write_text(s, "MANIFEST.json", text.data, text.length, NULL));
    TDM_TRY_DONE(tdm__folder_sync(s->ops, s->temporary));
done:
    tdm__text_deinit(&text);
    return status;
}

/* ---- committing ---- */

/* Is what lies under the final name the same checkpoint, whole? */
static tdm_status is_same(saving *s, bool *same) {
    const char *path[2];
    tdm_hash128 hash[2];
    tdm_status status = TDM_OK;
    *same = false;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes;
        int fd;
        TDM_TRY(tdm__path_join(&s->arena, &path[i], i == 0 ? s->temporary : s->final, "MANIFEST.json"));
        status = tdm__file_open(&fd, &bytes, path[i], TDM_E_CHECKPOINT);
        if (status == TDM_OK) {
            status = tdm__file_hash(s->host, fd, path[i], 0, bytes, &hash[i]);
            close(fd);
        }
        if (status != TDM_OK) return status == TDM_E_MEMORY ? status : TDM_OK;
    }
    if (!tdm__hash_equal(hash[0], hash[1])) return TDM_OK;
    status = tdm__ckpt_verify(s->host, s->final);
    *same = status == TDM_OK;
    return status == TDM_E_MEMORY ? status : TDM_OK;
}

/* Where two names cannot be exchanged: aside and in. The old one comes back if the new one cannot go in. */
static tdm_status replace_in_two_steps(saving *s, int64_t step) {
    const char *aside;
    int n;
    TDM_TRY(temporary_name(s, step, 0, &aside, &n));
    if (s->ops->rename(s->ops->user, s->final, aside) != 0) return tdm__file_fail("rename", s->final, errno);
    if (s->ops->rename(s->ops->user, s->temporary, s->final) != 0) {
        int error = errno;
        s->ops->rename(s->ops->user, aside, s->final);
        tdm__folder_sync(s->ops, s->dir);
        return tdm__file_fail("rename", s->temporary, error);
    }
    s->temporary = aside;
    return TDM_OK;
}

/* The temporary directory gets its final name; afterwards s->temporary is what remains to be removed, or NULL. */
static tdm_status commit(saving *s, int64_t step) {
    struct stat about;
    bool same;
    if (lstat(s->final, &about) != 0) {
        if (s->ops->rename(s->ops->user, s->temporary, s->final) != 0)
            return tdm__file_fail("rename", s->temporary, errno);
        s->temporary = NULL;
        return tdm__folder_sync(s->ops, s->dir);
    }
    if (!S_ISDIR(about.st_mode))
        TDM_FAIL(TDM_E_IO, "%s: wanted a folder or nothing, found something else; move it away", s->final);
    TDM_TRY(is_same(s, &same));
    if (same) return TDM_OK;
    if (s->ops->exchange(s->ops->user, s->temporary, s->final) != 0) {
        if (errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP)
            return tdm__file_fail("exchange", s->temporary, errno);
        TDM_TRY(replace_in_two_steps(s, step));
    }
    tdm_status status = tdm__folder_sync(s->ops, s->dir);
    /* Perhaps not durable: then the old one is left to the next save. */
    if (status != TDM_OK) s->temporary = NULL;
    return status;
}

/* ---- after the commit: nothing here can unsave the checkpoint ---- */

/* What is no folder of its own, a link or a file of this name, is not ours to remove. */
static tdm_status drop(saving *s, int64_t step) {
    char name[32];
    const char *path, *aside;
    struct stat about;
    int n;
    tdm__step_name(name, step);
    TDM_TRY(tdm__path_join(&s->arena, &path, s->dir, name));
    if (lstat(path, &about) == 0 && !S_ISDIR(about.st_mode)) return TDM_OK;
    TDM_TRY(temporary_name(s, step, 0, &aside, &n));
    if (s->ops->rename(s->ops->user, path, aside) != 0) return tdm__file_fail("rename", path, errno);
    return tdm__folder_remove(s->host, s->ops, aside);
}

/* Removes what is older than the newest keep_last complete ones, the oldest first; never the one just saved. */
static tdm_status prune(saving *s, int64_t keep_last, int64_t saved) {
    int64_t *steps, kept = 0;
    size_t count, end = 0;
    TDM_TRY(tdm__steps_list(&s->arena, s->dir, &steps, &count));
    while (end < count && kept < keep_last) {
        char name[32];
        const char *path;
        tdm_ckpt *ckpt = NULL;
        tdm__step_name(name, steps[end]);
        TDM_TRY(tdm__path_join(&s->arena, &path, s->dir, name));
        kept += steps[end] == saved || tdm__ckpt_open(&ckpt, s->host, path) == TDM_OK;
        tdm__ckpt_close(ckpt);
        end++;
    }
    for (size_t i = count; kept == keep_last && i > end; i--) {
        if (steps[i - 1] != saved) TDM_TRY(drop(s, steps[i - 1]));
    }
    return TDM_OK;
}

static void tidy(saving *s, int64_t keep_last, int64_t step) {
    char name[32];
    const char *path;
    tdm_status status = TDM_OK;
    if (s->temporary != NULL && tdm__folder_remove(s->host, s->ops, s->temporary) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "a temporary folder stays: %s", tdm_error_message());
    s->temporary = NULL;
    tdm__step_name(name, step);
    status = tdm__path_join(&s->arena, &path, s->dir, "latest");
    strcat(name, "\n");
    if (status == TDM_OK) status = tdm__file_replace(s->host, s->ops, path, name, strlen(name));
    if (status != TDM_OK) TDM_WARN(s->host, "ckpt", "`latest` is not updated: %s", tdm_error_message());
    if (keep_last > 0 && prune(s, keep_last, step) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "old checkpoints stay: %s", tdm_error_message());
}

tdm_status tdm__ckpt_save_with(const tdm_host *host, const tdm_file_ops *ops, const char *dir,
                               const tdm_ckpt_parts *parts, int64_t keep_last) {
    char name[32], prefix[64];
    tdm_error record;
    tdm_status status;
    int64_t step = parts->state.step;
    saving s = {.host = host, .ops = ops, .dir = dir, .lock = -1};
    if (step < 0 || !isfinite(parts->state.lr))
        TDM_FAIL(TDM_E_INTERNAL, "checkpoint: step %lld or lr %g cannot be saved", (long long)step, parts->state.lr);
    tdm__error_save(&record);
    tdm__arena_init(&s.arena, host);
    tdm__step_name(name, step);
    TDM_TRY_DONE(tdm__path_join(&s.arena, &s.final, dir, name));
    TDM_TRY_DONE(tdm__folder_make(host, ops, dir));
    TDM_TRY_DONE(reap(&s));
    TDM_TRY_DONE(make_temporary(&s, step));
    TDM_TRY_DONE(write_files(&s, parts));
    TDM_TRY_DONE(commit(&s, step));
    tidy(&s, keep_last, step);
    tdm__error_restore(&record, NULL);
done:
    if (status != TDM_OK) {
        tdm__error_save(&record);
        if (s.temporary != NULL) tdm__folder_remove(host, ops, s.temporary);
        snprintf(prefix, sizeof(prefix), "the checkpoint of step %lld is not saved: ", (long long)step);
        tdm__error_restore(&record, prefix);
    }
    if (s.lock >= 0) close(s.lock);
    tdm__arena_deinit(&s.arena);
    return status;
}

tdm_status tdm__ckpt_save(const tdm_host *host, const char *dir, const tdm_ckpt_parts *parts, int64_t keep_last) {
    return tdm__ckpt_save_with(host, &tdm__file_system, dir, parts, keep_last);
}

tdm_status tdm__ckpt_reap(const tdm_host *host, const char *dir) {
    saving s = {.host = host, .ops = &tdm__file_system, .dir = dir, .lock = -1};
    tdm__arena_init(&s.arena, host);
    tdm_status status = reap(&s);
    tdm__arena_deinit(&s.arena);
    return status;
}

static tdm_status set_aside(saving *s, int64_t step) {
    const char *aside;
    char stamp[24];
    int64_t *steps;
    size_t count, moved = 0;
    tdm__utc_stamp(stamp);
    TDM_TRY(tdm__arena_printf(&s->arena, &aside, "%s/before-%s", s->dir, stamp));
    TDM_TRY(tdm__steps_list(&s->arena, s->dir, &steps, &count));
    for (; moved < count && steps[moved] > step; moved++) {
        char name[32];
        const char *from, *to;
        tdm__step_name(name, steps[moved]);
        TDM_TRY(tdm__path_join(&s->arena, &from, s->dir, name));
        TDM_TRY(tdm__path_join(&s->arena, &to, aside, name));
        if (moved == 0) TDM_TRY(tdm__folder_make(s->host, s->ops, aside));
        if (s->ops->rename(s->ops->user, from, to) != 0) return tdm__file_fail("rename", from, errno);
    }
    if (moved == 0) return TDM_OK;
    TDM_WARN(s->host, "ckpt", "%zu checkpoint%s of an earlier run, of steps after %lld, %s now in %s", moved,
             moved == 1 ? "" : "s", (long long)step, moved == 1 ? "is" : "are", aside);
    TDM_TRY(tdm__folder_sync(s->ops, aside));
    return tdm__folder_sync(s->ops, s->dir);
}

tdm_status tdm__ckpt_set_aside(const tdm_host *host, const char *dir, int64_t step) {
    saving s = {.host = host, .ops = &tdm__file_system, .dir = dir, .lock = -1};
    if (!tdm__file_is_folder(dir)) return TDM_OK;
    tdm__arena_init(&s.arena, host);
    tdm_status status = set_aside(&s, step);
    tdm__arena_deinit(&s.arena);
    return status;
}
