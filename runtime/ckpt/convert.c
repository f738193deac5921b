/* From a file of tensors of another kind to safetensors. */
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/ckpt/tensor_file.h"

/* The file's tensors with their numbers, which are the caller's to delete, after a failure too. */
static tdm_status read_tensors(const tdm_tensor_file *file, tdm_tensor *tensors) {
    for (int i = 0; i < file->count; i++) {
        void *data;
        tensors[i] = file->tensor[i];
        TDM_TRY(tdm__new(file->host, &data, tensors[i].bytes, 1, "a tensor"));
        tensors[i].data = data;
        TDM_TRY(tdm__tensor_file_read(file, &file->tensor[i], data));
    }
    return TDM_OK;
}

tdm_status tdm__tensor_file_copy(const tdm_tensor_file *file, const char *to, tdm_text *report) {
    static const char *const metadata[] = {"format", "pt", NULL};
    const tdm_host *host = file->host;
    tdm_tensor *tensors;
    TDM_TRY(tdm__new(host, &tensors, (size_t)file->count, sizeof(*tensors), "tensors"));
    tdm_status status = read_tensors(file, tensors);
    if (status == TDM_OK)
        status =
            tdm__tensor_file_write(host, &tdm__file_system, NULL, to, tensors, file->count, metadata, NULL, NULL, NULL);
    for (int i = 0; i < file->count; i++) tdm__delete(host, (void *)(uintptr_t)tensors[i].data);
    tdm__delete(host, tensors);
    if (status == TDM_OK) tdm__text_printf(report, "%d tensors", file->count);
    return status;
}
