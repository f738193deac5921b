/* Saving, so that a crash at any instant leaves the previous checkpoint valid:
 *
 *   1. The directory .step-XXXXXXXX.tmp-<pid>-<n> is made beside the others, and locked while it is written.
 *   2. Every file is written and fsynced, MANIFEST.json last. Then the temporary directory is fsynced.
 *   3. It is renamed to step-XXXXXXXX, or exchanged with an existing one that differs. The parent is fsynced. Now the
 *      checkpoint is saved.
 *   4. `latest` and `best` are replaced. They are hints for people; tandem never relies on them.
 *   5. Checkpoints older than the newest keep_last, but not the best, are renamed to temporary names, then deleted.
 *
 * After a failure in steps 1 to 3 the temporary directory is removed. After a kill the next save removes it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/archive.h"
#include "runtime/ckpt/folder.h"

typedef struct saving {
    const tdm_host *host;
    const tdm_file_ops *ops;
    tdm_zone zone;
    tdm_folder dir;
    const char *temporary; /* our temporary directory in dir; NULL: there is none */
    char final[32];
    tdm_folder inside;    /* the directory that is being filled; a temporary one is locked */
    tdm_hash128 manifest; /* of its MANIFEST.json */
} saving;

/* ---- temporary names ---- */

/* A name .step-XXXXXXXX.tmp-<pid>-<n> that does not exist yet. Until it is used, another process may take it. */
static tdm_status temporary_name(saving *s, int64_t step, int from, const char **out, int *n) {
    char name[32];
    tdm__step_name(name, step);
    for (*n = from; *n < from + 10000; ++*n) {
        TDM_TRY(tdm__zone_printf(&s->zone, out, ".%s.tmp-%ld-%d", name, (long)getpid(), *n));
        if (!tdm__file_is_there(&s->dir, *out)) return TDM_OK;
    }
    TDM_FAIL(TDM_E_IO, "%s: too many temporary folders of step %lld; remove them", s->dir.path, (long long)step);
}

static tdm_status make_temporary(saving *s, int64_t step) {
    const char *name;
    for (int n = 0;; n++) {
        TDM_TRY(temporary_name(s, step, n, &name, &n));
        if (s->ops->mkdir(s->ops->user, s->dir.fd, name, TDM_FOLDER_MODE) == 0) break;
        if (errno != EEXIST) return tdm__file_fail("make the folder", &s->dir, name, errno);
    }
    s->temporary = name;
    TDM_TRY(tdm__folder_open(&s->inside, &s->zone, &s->dir, name, TDM_E_IO));
    flock(s->inside.fd, LOCK_EX | LOCK_NB); /* if the file system has no locks, only the pid in its name protects it */
    return TDM_OK;
}

static bool is_ours(const char *base, bool numbered) {
    int64_t step;
    return numbered ? base[0] == '.' && tdm__step_of(base + 1, &step) : tdm__is_pointer(base);
}

static tdm_status remove_leftovers(saving *s) {
    return tdm__leftovers_remove(s->host, s->ops, &s->dir, "ckpt", is_ours);
}

/* ---- writing ---- */

static tdm_status write_tensors(saving *s, int part, const tdm_tensor *tensors, int count, const tdm_ckpt_parts *parts,
                                tdm_manifest_file *entry) {
    const bool is_model = part == TDM_CKPT_MODEL || part == TDM_CKPT_AVERAGE;
    char step_text[TDM_METADATA_STEP];
    const char *metadata[TDM_METADATA];
    tdm__tensor_metadata(metadata, step_text, parts->state.step, is_model ? parts->note : NULL);
    if (is_model) tdm__tensor_metadata_add(metadata, parts->property, parts->property_count);
    TDM_TRY(tdm__zone_new(&s->zone, &entry->tensor_hash, (size_t)count, sizeof(*entry->tensor_hash)));
    entry->listed = true;
    return tdm__tensor_file_write(s->host, s->ops, &s->inside, tdm__ckpt_file_names[part], tensors, count, metadata,
                                  entry->tensor_hash, &entry->hash, &entry->bytes);
}

/* Writes a small file; puts its size and hash into *entry. */
static tdm_status write_text(saving *s, const char *name, const char *text, size_t bytes, tdm_manifest_file *entry) {
    tdm_out_file file;
    TDM_TRY(tdm__out_open(&file, s->ops, &s->inside, name, bytes, NULL));
    tdm_status status = tdm__out_write(&file, text, bytes);
    if (status != TDM_OK) {
        tdm__out_discard(&file);
        return status;
    }
    TDM_TRY(tdm__out_finish(&file));
    *entry = (tdm_manifest_file){.listed = true, .bytes = bytes, .hash = tdm__hash(text, bytes)};
    return TDM_OK;
}

static tdm_status write_files(saving *s, const tdm_ckpt_parts *parts) {
    tdm_manifest manifest = {.file = {{.listed = false}}};
    tdm_manifest_file own;
    const tdm_tensor *const tensors[TDM_CKPT_TENSORS] = {parts->model, parts->optimizer, parts->average,
                                                         parts->compression};
    const int counts[TDM_CKPT_TENSORS] = {parts->model_count, parts->optimizer_count, parts->average_count,
                                          parts->compression_count};
    const char *config = parts->config_yaml;
    tdm_text text;
    tdm_status status;
    tdm__text_init(&text, s->host);
    for (int part = 0; part < TDM_CKPT_TENSORS; part++) {
        if ((part == TDM_CKPT_AVERAGE || part == TDM_CKPT_COMPRESSION) && tensors[part] == NULL) continue;
        TDM_TRY_DONE(write_tensors(s, part, tensors[part], counts[part], parts, &manifest.file[part]));
    }
    if (config != NULL)
        TDM_TRY_DONE(write_text(s, tdm__ckpt_file_names[TDM_CKPT_CONFIG], config, strlen(config),
                                &manifest.file[TDM_CKPT_CONFIG]));
    tdm_json_out json = tdm__json_out(&text, " ");
    tdm__state_print(&json, NULL, &parts->state);
    tdm__json_put(&json, "\n");
    if (text.failed) TDM_FAIL_DONE(TDM_E_MEMORY, "checkpoint: out of memory for state.json");
    TDM_TRY_DONE(
        write_text(s, tdm__ckpt_file_names[TDM_CKPT_STATE], text.data, text.length, &manifest.file[TDM_CKPT_STATE]));
    tdm__text_deinit(&text);
    tdm__manifest_print(&text, &manifest, tensors, counts);
    if (text.failed) TDM_FAIL_DONE(TDM_E_MEMORY, "checkpoint: out of memory for " TDM_CKPT_MANIFEST);
    TDM_TRY_DONE(write_text(s, TDM_CKPT_MANIFEST, text.data, text.length, &own));
    s->manifest = own.hash;
    TDM_TRY_DONE(tdm__folder_sync(s->ops, &s->inside));
done:
    tdm__text_deinit(&text);
    return status;
}

/* ---- committing ---- */

/* Is the existing checkpoint under the final name equal to ours, and intact? */
static tdm_status is_same(saving *s, bool *same) {
    tdm_folder folder;
    tdm_hash128 hash;
    uint64_t bytes;
    int fd = -1;
    *same = false;
    tdm_status status = tdm__folder_open(&folder, &s->zone, &s->dir, s->final, TDM_E_CHECKPOINT);
    if (status == TDM_OK) status = tdm__file_open(&fd, &bytes, &folder, TDM_CKPT_MANIFEST, TDM_E_CHECKPOINT);
    if (status == TDM_OK) status = tdm__file_hash(s->host, fd, folder.path, 0, bytes, &hash);
    if (fd >= 0) close(fd);
    tdm__folder_close(&folder);
    if (status == TDM_OK && tdm__hash_equal(hash, s->manifest)) {
        status = tdm__ckpt_verify(s->host, &s->dir, s->final);
        *same = status == TDM_OK;
    }
    return status == TDM_E_MEMORY ? status : TDM_OK;
}

static int rename_in(const saving *s, const char *from, const char *to) {
    return s->ops->rename(s->ops->user, s->dir.fd, from, s->dir.fd, to);
}

/* For file systems that cannot exchange two names: moves the old checkpoint aside, then the new one in. If the second
 * rename fails, moves the old one back. */
static tdm_status replace_in_two_steps(saving *s, int64_t step) {
    const char *aside;
    int n;
    TDM_TRY(temporary_name(s, step, 0, &aside, &n));
    if (rename_in(s, s->final, aside) != 0) return tdm__file_fail("rename", &s->dir, s->final, errno);
    if (rename_in(s, s->temporary, s->final) != 0) {
        int error = errno;
        rename_in(s, aside, s->final);
        tdm__folder_sync(s->ops, &s->dir);
        return tdm__file_fail("rename", &s->dir, s->temporary, error);
    }
    s->temporary = aside;
    return TDM_OK;
}

/* Gives the temporary directory its final name. Afterwards s->temporary is what remains to be removed, or NULL. */
static tdm_status commit(saving *s, int64_t step) {
    bool same;
    if (!tdm__file_is_there(&s->dir, s->final)) {
        if (rename_in(s, s->temporary, s->final) != 0) return tdm__file_fail("rename", &s->dir, s->temporary, errno);
        s->temporary = NULL;
        return tdm__folder_sync(s->ops, &s->dir);
    }
    if (!tdm__file_is_folder(&s->dir, s->final))
        TDM_FAIL(TDM_E_IO, "%s/%s: expected a folder or nothing, found something else; move it away", s->dir.path,
                 s->final);
    TDM_TRY(is_same(s, &same));
    if (same) return TDM_OK;
    if (s->ops->exchange(s->ops->user, s->dir.fd, s->temporary, s->final) != 0) {
        if (errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP)
            return tdm__file_fail("exchange", &s->dir, s->temporary, errno);
        TDM_TRY(replace_in_two_steps(s, step));
    }
    tdm_status status = tdm__folder_sync(s->ops, &s->dir);
    /* The exchange may not be durable: keep the old checkpoint until the next save. */
    if (status != TDM_OK) s->temporary = NULL;
    return status;
}

/* ---- after the commit: a failure here only warns, the checkpoint is saved ---- */

/* Removes one checkpoint. A link or a file of that name is not ours and stays. */
static tdm_status drop(saving *s, int64_t step) {
    char name[32];
    const char *aside;
    int n;
    tdm__step_name(name, step);
    if (!tdm__file_is_folder(&s->dir, name)) return TDM_OK;
    TDM_TRY(temporary_name(s, step, 0, &aside, &n));
    if (rename_in(s, name, aside) != 0) return tdm__file_fail("rename", &s->dir, name, errno);
    return tdm__folder_remove(s->ops, &s->dir, aside);
}

/* Removes checkpoints older than the newest keep_last complete ones, the oldest first; never the one just saved, and
 * never the best. */
static tdm_status prune(saving *s, int64_t keep_last, int64_t saved, int64_t best) {
    int64_t *steps, kept = 0;
    size_t count, end = 0;
    TDM_TRY(tdm__steps_list(&s->zone, &s->dir, &steps, &count));
    while (end < count && kept < keep_last) {
        char name[32];
        tdm_ckpt *ckpt = NULL;
        tdm__step_name(name, steps[end]);
        const tdm_status status = steps[end] == saved ? TDM_OK : tdm__ckpt_open(&ckpt, s->host, &s->dir, name);
        tdm__ckpt_close(ckpt);
        if (status == TDM_E_MEMORY) return status; /* it may be a good one */
        kept += status == TDM_OK;
        end++;
    }
    for (size_t i = count; kept == keep_last && i > end; i--) {
        if (steps[i - 1] != saved && steps[i - 1] != best) TDM_TRY(drop(s, steps[i - 1]));
    }
    return TDM_OK;
}

/* While `best` may still name an older checkpoint, none is removed. */
static void tidy(saving *s, int64_t keep_last, int64_t step, int64_t best) {
    if (s->temporary != NULL && tdm__folder_remove(s->ops, &s->dir, s->temporary) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "a temporary folder cannot be removed: %s", tdm_error_message());
    s->temporary = NULL;
    if (tdm__pointer_set(s->ops, &s->dir, "latest", step) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "`latest` cannot be updated: %s", tdm_error_message());
    if (best > 0 && tdm__pointer_set(s->ops, &s->dir, "best", best) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "`best` cannot be updated: %s", tdm_error_message());
    else if (keep_last > 0 && prune(s, keep_last, step, best) != TDM_OK)
        TDM_WARN(s->host, "ckpt", "old checkpoints cannot be removed: %s", tdm_error_message());
}

/* ---- the interface ---- */

static void begin(saving *s, const tdm_host *host, const tdm_file_ops *ops) {
    *s = (saving){.host = host, .ops = ops, .dir = {.fd = -1}, .inside = {.fd = -1}};
    tdm__zone_init(&s->zone, host);
}

static void end(saving *s) {
    tdm__folder_close(&s->inside);
    tdm__folder_close(&s->dir);
    tdm__zone_deinit(&s->zone);
}

/* Opens the checkpoints directory; makes it if it is missing. */
static tdm_status enter(saving *s, const tdm_folder *folder, const char *name) {
    if (folder != NULL) return tdm__folder_enter(&s->dir, &s->zone, s->ops, folder, name);
    TDM_TRY(tdm__folder_make(s->host, s->ops, name));
    return tdm__folder_open(&s->dir, &s->zone, NULL, name, TDM_E_IO);
}

static tdm_status check_state(const tdm_ckpt_state *state) {
    if (state->step >= 0 && isfinite(state->lr)) return TDM_OK;
    TDM_FAIL(TDM_E_INTERNAL, "checkpoint: step %lld or lr %g cannot be saved", (long long)state->step, state->lr);
}

tdm_status tdm__ckpt_save(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *folder, const char *name,
                          const tdm_ckpt_parts *parts, int64_t keep_last) {
    char prefix[64];
    tdm_error record;
    tdm_status status;
    saving s;
    int64_t step = parts->state.step;
    TDM_TRY(check_state(&parts->state));
    tdm__error_save(&record);
    begin(&s, host, ops);
    tdm__step_name(s.final, step);
    TDM_TRY_DONE(enter(&s, folder, name));
    TDM_TRY_DONE(remove_leftovers(&s));
    TDM_TRY_DONE(make_temporary(&s, step));
    TDM_TRY_DONE(write_files(&s, parts));
    TDM_TRY_DONE(commit(&s, step));
    tidy(&s, keep_last, step, parts->state.best_step);
    tdm__error_restore(&record, NULL);
done:
    if (status != TDM_OK) {
        tdm__error_save(&record);
        if (s.temporary != NULL) tdm__folder_remove(ops, &s.dir, s.temporary);
        snprintf(prefix, sizeof(prefix), "the checkpoint of step %lld is not saved: ", (long long)step);
        tdm__error_restore(&record, prefix);
    }
    end(&s);
    return status;
}

tdm_status tdm__ckpt_save_archive(const tdm_host *host, const tdm_file_ops *ops, const tdm_ckpt_parts *parts) {
    tdm_archive archive;
    saving s;
    TDM_TRY(check_state(&parts->state));
    tdm__archive_begin(&archive, ops, parts->state.step);
    begin(&s, host, &archive.ops);
    s.inside.path = "the archive";
    tdm_status status = write_files(&s, parts);
    if (status == TDM_OK) status = tdm__archive_end(&archive);
    end(&s);
    return status;
}

tdm_status tdm__ckpt_remove_leftovers(const tdm_host *host, const tdm_folder *folder, const char *name) {
    saving s;
    begin(&s, host, &tdm__file_system);
    tdm_status status = tdm__folder_open(&s.dir, &s.zone, folder, name, TDM_E_IO);
    if (status == TDM_OK) status = remove_leftovers(&s);
    end(&s);
    return status;
}

tdm_status tdm__ckpt_name_best(const tdm_host *host, const tdm_folder *folder, const char *name, int64_t step) {
    saving s;
    char final[32];
    if (!tdm__file_is_there(folder, name)) return TDM_OK;
    begin(&s, host, &tdm__file_system);
    tdm__step_name(final, step);
    tdm_status status = tdm__folder_open(&s.dir, &s.zone, folder, name, TDM_E_IO);
    if (status == TDM_OK && step > 0 && tdm__file_is_folder(&s.dir, final))
        status = tdm__pointer_set(s.ops, &s.dir, "best", step);
    else if (status == TDM_OK)
        status = tdm__pointer_remove(s.ops, &s.dir, "best");
    end(&s);
    return status;
}

/* Makes the folder before-<time>, or before-<time>-<n>: two runs may begin anew within one second. */
static tdm_status make_before(saving *s, tdm_folder *before) {
    char stamp[24];
    const char *name;
    tdm__utc_stamp(s->zone.host, stamp);
    for (int n = 1;; n++) {
        TDM_TRY(n == 1 ? tdm__zone_printf(&s->zone, &name, "before-%s", stamp)
                       : tdm__zone_printf(&s->zone, &name, "before-%s-%d", stamp, n));
        if (s->ops->mkdir(s->ops->user, s->dir.fd, name, TDM_FOLDER_MODE) == 0) break;
        if (errno != EEXIST) return tdm__file_fail("make the folder", &s->dir, name, errno);
    }
    return tdm__folder_open(before, &s->zone, &s->dir, name, TDM_E_IO);
}

static tdm_status set_aside(saving *s, int64_t step) {
    int64_t *steps;
    size_t count, moved = 0;
    char which[48] = "";
    TDM_TRY(tdm__steps_list(&s->zone, &s->dir, &steps, &count));
    for (; moved < count && steps[moved] > step; moved++) {
        char name[32];
        tdm__step_name(name, steps[moved]);
        if (moved == 0) TDM_TRY(make_before(s, &s->inside));
        if (s->ops->rename(s->ops->user, s->dir.fd, name, s->inside.fd, name) != 0)
            return tdm__file_fail("rename", &s->dir, name, errno);
    }
    if (moved == 0) return TDM_OK;
    if (step >= 0) snprintf(which, sizeof(which), ", of steps after %lld,", (long long)step);
    TDM_WARN(s->host, "ckpt", "%zu checkpoint%s of an earlier run%s %s now in %s", moved, moved == 1 ? "" : "s", which,
             moved == 1 ? "is" : "are", s->inside.path);
    TDM_TRY(tdm__folder_sync(s->ops, &s->inside));
    return tdm__folder_sync(s->ops, &s->dir);
}

tdm_status tdm__ckpt_set_aside(const tdm_host *host, const tdm_folder *folder, const char *name, int64_t step) {
    saving s;
    if (!tdm__file_is_there(folder, name)) return TDM_OK;
    begin(&s, host, &tdm__file_system);
    tdm_status status = tdm__folder_open(&s.dir, &s.zone, folder, name, TDM_E_IO);
    if (status == TDM_OK) status = set_aside(&s, step);
    end(&s);
    return status;
}
