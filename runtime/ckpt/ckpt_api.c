/* The public view of checkpoints, tandem/checkpoint.h, over ckpt.h. */
#include <string.h>

#include <tandem/checkpoint.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"
#include "runtime/ckpt/torch/torch_file.h"
#include "runtime/onnx/import.h"

typedef tdm_status (*printer)(const tdm_host *host, const char *path, bool json, tdm_text *out);

static tdm_status print(printer function, const tdm_host *host, const char *path, int json, char **out) {
    if (!path || !out) TDM_FAIL(TDM_E_USAGE, "checkpoint: the path or the pointer for the text is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    tdm_text text;
    tdm__text_init(&text, host);
    tdm_status status = function(host, path, json != 0, &text);
    if (status == TDM_OK) status = tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm_checkpoint_list(const tdm_host *host, const char *path, int json, char **out) {
    return print(tdm__ckpt_list, host, path, json, out);
}

tdm_status tdm_checkpoint_show(const tdm_host *host, const char *path, int json, char **out) {
    return print(tdm__ckpt_show, host, path, json, out);
}

/* Verifies the checkpoints of a checkpoints directory, oldest first. Fails at the first damaged one. */
static tdm_status verify_all(const tdm_host *host, tdm_zone *zone, const tdm_folder *dir) {
    int64_t *steps;
    size_t count;
    TDM_TRY(tdm__steps_list(zone, dir, &steps, &count));
    if (count == 0) TDM_FAIL(TDM_E_CHECKPOINT, "%s holds no checkpoint", dir->path);
    for (size_t i = count; i > 0; i--) {
        char name[32];
        tdm__step_name(name, steps[i - 1]);
        TDM_TRY(tdm__ckpt_verify(host, dir, name));
    }
    return TDM_OK;
}

/* A file of another kind has no hash of the whole: its numbers are read, and a .pt file checks its own sums then. */
static tdm_status verify_tensors(const tdm_host *host, const tdm_tensor_file *file) {
    tdm_status status = TDM_OK;
    for (int i = 0; status == TDM_OK && i < tdm__tensor_file_count(file); i++) {
        tdm_tensor tensor = *tdm__tensor_file_get(file, i);
        void *data = NULL;
        status = tdm__new(host, &data, tensor.bytes, 1, "a tensor");
        if (status == TDM_OK) status = tdm__tensor_file_read(file, tdm__tensor_file_get(file, i), data);
        tensor.data = data;
        if (status == TDM_OK) status = tdm__tensors_finite(&tensor, 1);
        tdm__delete(host, data);
    }
    if (status == TDM_E_NUMERIC) TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s", file->path, tdm_error_message());
    return status;
}

static tdm_status verify_hash(const tdm_tensor_file *file) {
    tdm_bad_number bad;
    tdm_hash128 hash;
    TDM_TRY(tdm__tensor_file_hash(file, NULL, &hash, &bad));
    return tdm__bad_number_fail(file, &bad);
}

static tdm_status verify_file(const tdm_host *host, const char *path) {
    tdm_ckpt *ckpt;
    TDM_TRY(tdm__ckpt_open_any(&ckpt, host, path));
    const tdm_tensor_file *file = tdm__ckpt_model(ckpt);
    const tdm_status status = file->source != NULL ? verify_tensors(host, file) : verify_hash(file);
    tdm__ckpt_close(ckpt);
    return status;
}

tdm_status tdm_checkpoint_verify(const tdm_host *host, const char *path, char **checked) {
    tdm_zone zone;
    tdm_text text;
    tdm_status status;
    tdm_folder dir = {.fd = -1};
    const char *what = path;
    bool is_step;
    if (checked) *checked = NULL;
    if (!path) TDM_FAIL(TDM_E_USAGE, "checkpoint: the path is NULL");
    TDM_TRY(tdm__host_take(&host));
    tdm__zone_init(&zone, host);
    tdm__text_init(&text, host);
    TDM_TRY_DONE(tdm__is_step(&zone, path, &is_step));
    if (!tdm__file_is_folder(NULL, path)) {
        TDM_TRY_DONE(verify_file(host, path));
    } else if (is_step) {
        TDM_TRY_DONE(tdm__ckpt_verify(host, NULL, path));
    } else {
        TDM_TRY_DONE(tdm__steps_open(&dir, &zone, path));
        what = dir.path;
        TDM_TRY_DONE(verify_all(host, &zone, &dir));
    }
    if (checked) {
        tdm__text_puts(&text, what);
        status = tdm__text_take_public(&text, checked);
    }
done:
    tdm__folder_close(&dir);
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status convert_onnx(const tdm_host *host, const char *from, const char *to, tdm_text *report) {
    tdm_tensor_file *file;
    TDM_TRY(tdm__onnx_tensors_open(&file, host, from, NULL, 0));
    const tdm_status status = tdm__tensor_file_copy(file, to, report);
    tdm__tensor_file_close(file);
    return status;
}

static tdm_status write_torch(const tdm_host *host, const char *from, const char *to, tdm_text *report) {
    tdm_ckpt *ckpt = NULL;
    TDM_TRY(tdm__ckpt_open_any(&ckpt, host, from));
    tdm_status status = tdm__torch_write(host, tdm__ckpt_model(ckpt), to, report);
    tdm__ckpt_close(ckpt);
    return status;
}

tdm_status tdm_checkpoint_convert(const tdm_host *host, const char *from, const char *to, const char *key,
                                  char **report) {
    tdm_text text;
    if (from == NULL || to == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_checkpoint_convert: a path is NULL");
    if (report != NULL) *report = NULL;
    TDM_TRY(tdm__host_take(&host));
    const bool to_torch = tdm__torch_named(to), from_onnx = tdm__onnx_named(from);
    if (!to_torch && !tdm__text_ends_in(to, ".safetensors"))
        TDM_FAIL(TDM_E_USAGE, "%s: a converted file ends in .safetensors, .pt or .pth", to);
    if ((to_torch || from_onnx) && key != NULL)
        TDM_FAIL(TDM_E_USAGE, "%s: a key chooses in a file of PyTorch that becomes a .safetensors file", to);
    tdm__text_init(&text, host);
    tdm_status status = to_torch    ? write_torch(host, from, to, &text)
                        : from_onnx ? convert_onnx(host, from, to, &text)
                                    : tdm__torch_convert(host, from, to, key, &text);
    if (status == TDM_OK && report != NULL) status = tdm__text_take_public(&text, report);
    tdm__text_deinit(&text);
    if (status == TDM_E_NUMERIC)
        TDM_FAIL(status, "%s: %s; take a file from before training failed", from, tdm_error_message());
    return status;
}
