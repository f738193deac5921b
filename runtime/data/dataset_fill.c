/* Reads consecutive samples. */
#include "runtime/base/status.h"
#include "runtime/data/formats.h"
#include "runtime/data/transform.h"

tdm_status tdm__dataset_fill(const tdm_dataset *dataset, const tdm_transform *transform, int64_t first, int64_t count,
                             void *x, void *targets) {
    size_t x_bytes = tdm__dataset_x_bytes(dataset), target_bytes = tdm__dataset_target_bytes(dataset);
    for (int64_t i = 0; i < count; i++) {
        char *sample = (char *)x + (size_t)i * x_bytes;
        TDM_TRY(dataset->ops->read(dataset, first + i, sample, (char *)targets + (size_t)i * target_bytes));
        if (!dataset->x_is_bytes) tdm__transform_floats(transform, (float *)sample);
    }
    return TDM_OK;
}
