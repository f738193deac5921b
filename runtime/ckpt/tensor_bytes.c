/* The bytes of a tensor file, wherever they are. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/tensor_file.h"

tdm_status tdm__tensor_file_take(const tdm_tensor_file *file, void *to, size_t count, uint64_t offset) {
    if (file->memory == NULL) return tdm__file_read(file->fd, file->path, to, count, offset, TDM_E_CHECKPOINT);
    if (count > 0) memcpy(to, file->memory + offset, count);
    return TDM_OK;
}
