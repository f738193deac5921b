/* Opening checkpoints: one directory, the newest intact one of several, or any path that a user gives. */
#include "runtime/ckpt/ckpt.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"
#include "runtime/ckpt/torch/torch_file.h"
#include "runtime/onnx/import.h"
#include "runtime/graph/graph.h"

static tdm_status new_ckpt(tdm_ckpt **out, const tdm_host *host) {
    tdm_ckpt *ckpt;
    *out = NULL;
    TDM_TRY(tdm__new(host, &ckpt, 1, sizeof(*ckpt), "checkpoint"));
    ckpt->host = host;
    ckpt->folder.fd = -1;
    tdm__zone_init(&ckpt->zone, host);
    *out = ckpt;
    return TDM_OK;
}

void tdm__ckpt_close(tdm_ckpt *ckpt) {
    if (ckpt == NULL) return;
    for (int part = 0; part < TDM_CKPT_TENSORS; part++) tdm__tensor_file_close(ckpt->tensors[part]);
    tdm__folder_close(&ckpt->folder);
    tdm__zone_deinit(&ckpt->zone);
    tdm__delete(ckpt->host, ckpt);
}

const tdm_ckpt_state *tdm__ckpt_state(const tdm_ckpt *ckpt) {
    return ckpt->has_state ? &ckpt->state : NULL;
}

const tdm_tensor_file *tdm__ckpt_model(const tdm_ckpt *ckpt) {
    return ckpt->tensors[TDM_CKPT_MODEL];
}

const tdm_tensor_file *tdm__ckpt_optimizer(const tdm_ckpt *ckpt) {
    return ckpt->tensors[TDM_CKPT_OPTIMIZER];
}

const tdm_tensor_file *tdm__ckpt_compression(const tdm_ckpt *ckpt) {
    return ckpt->tensors[TDM_CKPT_COMPRESSION];
}

const tdm_tensor_file *tdm__ckpt_average(const tdm_ckpt *ckpt) {
    return ckpt->tensors[TDM_CKPT_AVERAGE];
}

const char *tdm__ckpt_path(const tdm_ckpt *ckpt) {
    return ckpt->path;
}

/* Reads a text file into the zone, checks its hash, and adds a NUL. */
static tdm_status read_text(tdm_ckpt *ckpt, int part, uint64_t most, char **out, uint64_t *bytes) {
    tdm_ckpt_file file;
    tdm_status status;
    TDM_TRY(tdm__ckpt_file_open(&file, ckpt, part));
    *bytes = file.bytes;
    if (*bytes > most)
        TDM_FAIL_DONE(TDM_E_CHECKPOINT, "%s: expected at most %llu bytes, found %llu", file.path,
                      (unsigned long long)most, (unsigned long long)*bytes);
    TDM_TRY_DONE(tdm__zone_new(&ckpt->zone, out, (size_t)*bytes + 1, 1));
    TDM_TRY_DONE(tdm__ckpt_file_read(&file, *out, (size_t)*bytes, 0));
    if (!tdm__hash_equal(tdm__hash(*out, (size_t)*bytes), ckpt->manifest.file[part].hash))
        TDM_FAIL_DONE(TDM_E_CHECKPOINT, "%s: damaged: its hash differs from the one in the manifest", file.path);
done:
    tdm__ckpt_file_close(&file);
    return status;
}

static tdm_status open_state(tdm_ckpt *ckpt) {
    char *text;
    uint64_t bytes;
    TDM_TRY(read_text(ckpt, TDM_CKPT_STATE, TDM_CKPT_MAX_STATE, &text, &bytes));
    TDM_TRY(tdm__state_read(&ckpt->state, text, (size_t)bytes, ckpt->path));
    ckpt->has_state = true;
    return TDM_OK;
}

tdm_status tdm__ckpt_config(tdm_ckpt *ckpt, const char **out) {
    char *text;
    uint64_t bytes;
    *out = NULL;
    if (!ckpt->manifest.file[TDM_CKPT_CONFIG].listed) return TDM_OK;
    TDM_TRY(read_text(ckpt, TDM_CKPT_CONFIG, TDM_CKPT_MAX_CONFIG, &text, &bytes));
    *out = text;
    return TDM_OK;
}

/* A copy under the name of a later step would stay the newest for ever. */
static tdm_status check_name(const tdm_ckpt *ckpt) {
    const char *slash = strrchr(ckpt->path, '/'), *name = slash != NULL ? slash + 1 : ckpt->path;
    char expected[32];
    tdm__step_name(expected, ckpt->state.step);
    if (strncmp(name, "step-", 5) != 0 || strcmp(name, expected) == 0) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: the folder's name is not that of the checkpoint in it, %s; rename the folder",
             ckpt->path, expected);
}

tdm_status tdm__ckpt_open(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder, const char *name) {
    tdm_ckpt *ckpt;
    tdm_status status;
    *out = NULL;
    TDM_TRY_DONE(new_ckpt(&ckpt, host));
    TDM_TRY_DONE(tdm__folder_open(&ckpt->folder, &ckpt->zone, folder, name, TDM_E_CHECKPOINT));
    ckpt->path = ckpt->folder.path;
    TDM_TRY_DONE(tdm__manifest_read(ckpt));
    TDM_TRY_DONE(open_state(ckpt));
    TDM_TRY_DONE(check_name(ckpt));
    *out = ckpt;
    return TDM_OK;
done:
    tdm__ckpt_close(ckpt);
    return status;
}

/* The file as a whole is damaged: finds the damaged tensor and fails with its name. */
static tdm_status name_damage(const tdm_ckpt *ckpt, int part) {
    const tdm_tensor_file *file = ckpt->tensors[part];
    const tdm_hash128 *expected = ckpt->manifest.file[part].tensor_hash;
    const tdm_ckpt_file bytes = {ckpt->host, file->fd, file->memory, file->bytes, file->path};
    char name[TDM_ST_PRINTABLE];
    for (int i = 0; i < file->count; i++) {
        const tdm_tensor *tensor = &file->tensor[i];
        tdm_hash128 hash;
        TDM_TRY(tdm__ckpt_file_hash(&bytes, tensor->file_offset, tensor->bytes, &hash));
        if (!tdm__hash_equal(hash, expected[i]))
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' is damaged (bytes %llu to %llu of the file)", file->path,
                     tdm__printable(name, tensor->name), (unsigned long long)tensor->file_offset,
                     (unsigned long long)(tensor->file_offset + tensor->bytes));
    }
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: its header is damaged (the first %llu bytes), all tensors are intact", file->path,
             (unsigned long long)file->header_bytes + 8);
}

/* NULL: an optimizer that this build does not have. */
static const tdm_optim_def *optim_of(const tdm_ckpt *ckpt) {
    const tdm_optim_def *const *optim = tdm_builtin_optims;
    while (*optim != NULL && strcmp((*optim)->name, ckpt->state.optimizer) != 0) optim++;
    return *optim;
}

/* Even an undamaged file may hold numbers from which no run can continue. */
static tdm_status verify_tensors(const tdm_ckpt *ckpt, int part) {
    const tdm_tensor_file *file = ckpt->tensors[part];
    tdm_bad_number bad;
    tdm_hash128 hash;
    TDM_TRY(tdm__tensor_file_hash(file, part == TDM_CKPT_OPTIMIZER ? optim_of(ckpt) : NULL, &hash, &bad));
    if (!tdm__hash_equal(hash, ckpt->manifest.file[part].hash)) return name_damage(ckpt, part);
    return tdm__bad_number_fail(file, &bad);
}

/* Checks every byte of an open checkpoint against its manifest. Its state was checked when it was opened. */
static tdm_status verify_open(tdm_ckpt *ckpt) {
    const char *config;
    for (int part = 0; part < TDM_CKPT_TENSORS; part++) {
        if (ckpt->tensors[part] != NULL) TDM_TRY(verify_tensors(ckpt, part));
    }
    return tdm__ckpt_config(ckpt, &config);
}

static tdm_status open_verified(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder, const char *name) {
    TDM_TRY(tdm__ckpt_open(out, host, folder, name));
    tdm_status status = verify_open(*out);
    if (status == TDM_OK) return TDM_OK;
    tdm__ckpt_close(*out);
    *out = NULL;
    return tdm__frame(status, __FILE__, __LINE__);
}

tdm_status tdm__ckpt_verify(const tdm_host *host, const tdm_folder *folder, const char *name) {
    tdm_ckpt *ckpt;
    TDM_TRY(open_verified(&ckpt, host, folder, name));
    tdm__ckpt_close(ckpt);
    return TDM_OK;
}

static tdm_status open_archive(tdm_ckpt *ckpt, const void *bytes, size_t count) {
    tdm_ckpt_memory *memory;
    TDM_TRY(tdm__zone_new(&ckpt->zone, &memory, 1, sizeof(*memory)));
    TDM_TRY(tdm__archive_read(memory, bytes, count));
    ckpt->memory = memory;
    TDM_TRY(tdm__path_join(&ckpt->zone, &ckpt->path, "memory", memory->folder));
    TDM_TRY(tdm__manifest_read(ckpt));
    TDM_TRY(open_state(ckpt));
    TDM_TRY(check_name(ckpt));
    return verify_open(ckpt);
}

/* The length of a safetensors header, of 8 bytes, may begin as an ONNX file does; but its upper half is zeros, and the
 * header is an object of JSON. */
static bool is_onnx(const void *bytes, size_t count) {
    static const char zeros[4];
    const char *first = bytes;
    if (!tdm__onnx_begins(bytes, count)) return false;
    return count < 9 || memcmp(first + 4, zeros, sizeof(zeros)) != 0 || first[8] != '{';
}

tdm_status tdm__ckpt_open_memory(tdm_ckpt **out, const tdm_host *host, const void *bytes, size_t count) {
    tdm_ckpt *ckpt;
    *out = NULL;
    TDM_TRY(new_ckpt(&ckpt, host));
    ckpt->path = "memory";
    tdm_tensor_file **model = &ckpt->tensors[TDM_CKPT_MODEL];
    const tdm_status status = tdm__archive_is(bytes, count) ? open_archive(ckpt, bytes, count)
                              : is_onnx(bytes, count)
                                  ? tdm__onnx_tensors_open(model, host, ckpt->path, bytes, count)
                                  : tdm__tensor_file_open_memory(model, host, bytes, count, ckpt->path);
    if (status == TDM_OK)
        *out = ckpt;
    else
        tdm__ckpt_close(ckpt);
    return status;
}

/* A checkpoint that was renamed is still one: without a word the run would go back further, or begin anew. `others`:
 * how many have their names. */
static tdm_status tell_misnamed(const tdm_host *host, const tdm_folder *dir, size_t others) {
    static const char rule[] = "is not a checkpoint's name, which is step- and the step in eight digits; rename it, or "
                               "move it away";
    const char *name;
    int64_t step;
    DIR *list;
    tdm_status status;
    TDM_TRY(tdm__folder_list(&list, dir));
    for (;;) {
        TDM_TRY_DONE(tdm__folder_next(list, dir, &name));
        if (name == NULL) break;
        if (strncmp(name, "step-", 5) != 0 || tdm__step_of(name, &step) || !tdm__file_is_folder(dir, name)) continue;
        if (others == 0) TDM_FAIL_DONE(TDM_E_CHECKPOINT, "%s: '%s' %s", dir->path, name, rule);
        TDM_WARN(host, "ckpt", "%s is passed over: it %s", name, rule);
    }
done:
    closedir(list);
    return status;
}

static tdm_status open_newest(tdm_ckpt **out, const tdm_host *host, const tdm_folder *dir) {
    tdm_zone zone;
    tdm_error before, newest;
    tdm_status status;
    int64_t *steps;
    size_t count;
    *out = NULL;
    tdm__zone_init(&zone, host);
    TDM_TRY_DONE(tdm__steps_list(&zone, dir, &steps, &count));
    TDM_TRY_DONE(tell_misnamed(host, dir, count));
    tdm__error_save(&before);
    for (size_t i = 0; i < count && *out == NULL; i++) {
        char name[32];
        tdm__step_name(name, steps[i]);
        status = open_verified(out, host, dir, name);
        if (status != TDM_OK && status != TDM_E_CHECKPOINT && status != TDM_E_IO) goto done;
        if (status != TDM_OK) TDM_WARN(host, "ckpt", "%s is skipped: %s", name, tdm_error_message());
        if (i == 0) tdm__error_save(&newest);
    }
    status = TDM_OK;
    if (*out != NULL)
        tdm__error_restore(&before, NULL);
    else if (count > 0)
        TDM_FAIL_DONE(TDM_E_CHECKPOINT, "%s: none of its %zu checkpoints is usable; the newest: %s", dir->path, count,
                      newest.message);
done:
    tdm__zone_deinit(&zone);
    return status;
}

tdm_status tdm__ckpt_open_newest(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder, const char *name) {
    tdm_zone zone;
    tdm_folder dir;
    *out = NULL;
    if (!tdm__file_is_there(folder, name)) return TDM_OK;
    tdm__zone_init(&zone, host);
    tdm_status status = tdm__folder_open(&dir, &zone, folder, name, TDM_E_IO);
    if (status == TDM_OK) status = open_newest(out, host, &dir);
    tdm__folder_close(&dir);
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status open_torch(tdm_tensor_file **out, const tdm_host *host, const char *path) {
    TDM_TRY(tdm__torch_open(out, host, path, NULL));
    const int left_out = tdm__torch_left_out(*out);
    if (left_out > 0)
        TDM_INFO(host, "ckpt", "%s: %d entr%s no tensor and left out", path, left_out,
                 left_out == 1 ? "y is" : "ies are");
    return TDM_OK;
}

static tdm_status open_tensors(tdm_tensor_file **out, const tdm_host *host, const char *path) {
    bool is_torch;
    if (tdm__onnx_named(path)) return tdm__onnx_tensors_open(out, host, path, NULL, 0);
    TDM_TRY(tdm__torch_is(&is_torch, path));
    return is_torch ? open_torch(out, host, path) : tdm__tensor_file_open(out, host, NULL, path);
}

/* Opens a single .safetensors, .pt or .onnx file: a model without state. Its names may have the prefix of torch's
 * wrapper. */
static tdm_status open_model_file(tdm_ckpt **out, const tdm_host *host, const char *path) {
    tdm_ckpt *ckpt;
    tdm_tensor_file *file;
    tdm_status status;
    int stripped = 0;
    TDM_TRY_DONE(new_ckpt(&ckpt, host));
    TDM_TRY_DONE(tdm__zone_text(&ckpt->zone, &ckpt->path, path));
    TDM_TRY_DONE(open_tensors(&ckpt->tensors[TDM_CKPT_MODEL], host, path));
    file = ckpt->tensors[TDM_CKPT_MODEL];
    /* tandem never writes that prefix, so in its own files "module." is the name of a layer. */
    if (!file->is_tandems) TDM_TRY_DONE(tdm__tensor_file_strip(file, &stripped));
    if (stripped > 0)
        TDM_INFO(host, "ckpt", "%s: \"module.\" is removed from %d names (saved from a DataParallel wrapper)", path,
                 stripped);
    *out = ckpt;
    return TDM_OK;
done:
    tdm__ckpt_close(ckpt);
    return status;
}

tdm_status tdm__ckpt_open_any(tdm_ckpt **out, const tdm_host *host, const char *path) {
    tdm_zone zone;
    tdm_folder dir = {.fd = -1};
    tdm_status status;
    const char *named;
    bool is_step;
    *out = NULL;
    tdm__zone_init(&zone, host);
    TDM_TRY_DONE(tdm__pointer_follow(&zone, path, &named));
    if (named != NULL) path = named;
    if (!tdm__file_is_folder(NULL, path)) {
        TDM_TRY_DONE(open_model_file(out, host, path));
        goto done;
    }
    TDM_TRY_DONE(tdm__is_step(&zone, path, &is_step));
    if (is_step) {
        TDM_TRY_DONE(open_verified(out, host, NULL, path));
    } else {
        TDM_TRY_DONE(tdm__steps_open(&dir, &zone, path));
        TDM_TRY_DONE(open_newest(out, host, &dir));
        if (*out == NULL)
            TDM_FAIL_DONE(TDM_E_CHECKPOINT,
                          "%s: expected a step directory, a checkpoints or run directory, or a "
                          ".safetensors, .pt or .onnx file; found a folder without " TDM_CKPT_MANIFEST
                          " and without checkpoints",
                          path);
    }
done:
    tdm__folder_close(&dir);
    tdm__zone_deinit(&zone);
    return status;
}
