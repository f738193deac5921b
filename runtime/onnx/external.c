/* Numbers of an ONNX file that lie in other files: in its folder, and nowhere else. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/text/text.h"
#include "runtime/onnx/file.h"

/* A name in the folder of the file, and nothing that leads out of it. */
static bool is_beside(const char *name) {
    return name != NULL && name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static tdm_status open_external(tdm_onnx_file *file, const char *name, tdm_wire_source *out) {
    const char *path = file->source.path, *slash = strrchr(path, '/'), *parent;
    tdm_folder folder;
    TDM_TRY(tdm__zone_printf(&file->zone, &parent, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
                             slash != NULL ? path : "."));
    TDM_TRY(tdm__zone_printf(&file->zone, &out->path, "%s%s%s", slash != NULL ? parent : "", name, ""));
    TDM_TRY(tdm__folder_open(&folder, &file->zone, NULL, parent, TDM_E_CHECKPOINT));
    const tdm_status status = tdm__file_open(&out->fd, &out->bytes, &folder, name, TDM_E_CHECKPOINT);
    tdm__folder_close(&folder);
    if (status == TDM_E_CHECKPOINT)
        TDM_FAIL(status, "%s: numbers of it are in the file '%s' beside it: %s", path, name, tdm_error_message());
    return status;
}

static tdm_status find_external(tdm_onnx_file *file, const char *name, tdm_wire_source **out) {
    int i = 0;
    while (i < file->external_count && strcmp(file->external_name[i], name) != 0) i++;
    *out = &file->external[i < TDM_ONNX_EXTERNAL ? i : 0];
    if (i < file->external_count) return TDM_OK;
    if (i == TDM_ONNX_EXTERNAL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: its numbers are in more than %d other files; save it as one file",
                 file->source.path, TDM_ONNX_EXTERNAL);
    tdm_wire_source source = {.fd = -1};
    TDM_TRY(open_external(file, name, &source));
    file->external_name[i] = name;
    file->external[i] = source;
    file->external_count++;
    return TDM_OK;
}

static bool natural(const char *text, uint64_t initial, uint64_t *out) {
    int64_t value;
    *out = initial;
    if (text == NULL) return true;
    if (!tdm__parse_int(text, &value) || value < 0) return false;
    *out = (uint64_t)value;
    return true;
}

tdm_status tdm__onnx_external(tdm_onnx_file *file, tdm_onnx_tensor *tensor, const char *name, const char *offset,
                              const char *length) {
    tdm_wire_source *source;
    uint64_t at, count;
    if (file->source.memory != NULL || !is_beside(name))
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "%s: the numbers of '%s' are in another file%s; save it as one file, in Python: "
                 "onnx.save(onnx.load('%s'), 'whole.onnx')",
                 file->source.path, tensor->name, file->source.memory != NULL ? "" : ", and not one beside it",
                 file->source.path);
    TDM_TRY(find_external(file, name, &source));
    if (!natural(offset, 0, &at) || at > source->bytes || !natural(length, source->bytes - at, &count) ||
        count > source->bytes - at)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the numbers of '%s' lie beyond the end of %s, which is damaged or another's",
                 file->source.path, tensor->name, source->path);
    tensor->source = source;
    tensor->span = (tdm_wire_span){at, at + count};
    tensor->is_varints = false;
    return TDM_OK;
}
