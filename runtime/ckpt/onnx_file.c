/* An ONNX file as a file of tensors: the parameters and buffers of the layers that tandem makes of it, by their names
 * there. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"
#include "runtime/onnx/import.h"

static tdm_status read_param(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to) {
    const tdm_onnx_import *import = file->source_state;
    return tdm__onnx_param_read(import, &import->param[tensor - file->tensor], to);
}

static void close_import(tdm_tensor_file *file) {
    tdm__onnx_import_close(file->source_state);
}

static tdm_tensor tensor_of(const tdm_onnx_param *param) {
    const tdm_shape *shape = &param->of->def.shape;
    tdm_tensor tensor = {.name = param->of->name,
                         .dtype = tdm__dtype_find(param->dtype)->dtype,
                         .ndim = shape->ndim,
                         .bytes = (size_t)param->of->count * param->element};
    snprintf(tensor.dtype_name, sizeof(tensor.dtype_name), "%s", param->dtype);
    memcpy(tensor.dim, shape->dim, (size_t)shape->ndim * sizeof(*shape->dim));
    return tensor;
}

static tdm_status open_import(tdm_tensor_file *file, const void *memory, size_t count) {
    static const tdm_tensor_source reads_onnx = {read_param, close_import};
    tdm_onnx_import *import;
    TDM_TRY(tdm__onnx_import_open(&import, file->host, file->path, memory, count));
    file->source = &reads_onnx;
    file->source_state = import;
    file->bytes = import->file->source.bytes;
    TDM_TRY(tdm__zone_new(&file->zone, &file->tensor, (size_t)import->param_count, sizeof(*file->tensor)));
    TDM_TRY(tdm__zone_new(&file->zone, &file->by_name, (size_t)import->param_count, sizeof(*file->by_name)));
    file->count = import->param_count;
    for (int i = 0; i < file->count; i++) file->tensor[i] = tensor_of(&import->param[i]);
    return tdm__tensor_file_index(file);
}

tdm_status tdm__onnx_tensors_open(tdm_tensor_file **out, const tdm_host *host, const char *path, const void *memory,
                                  size_t count) {
    tdm_tensor_file *file;
    *out = NULL;
    TDM_EXTRA(ONNX);
    TDM_TRY(tdm__tensor_file_new(&file, host, path));
    TDM_TRY_ELSE(open_import(file, memory, count), tdm__tensor_file_close(file));
    *out = file;
    return TDM_OK;
}
