/* Tensors of the mode's own in a checkpoint: what compressed gradients have kept back. */
#include <string.h>

#include "runtime/base/finite.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

tdm_status tdm__run_collect_mode(tdm_run *run, tdm_zone *zone, tdm_ckpt_parts *parts) {
    const tdm_mode_ops *ops = run->mode->ops;
    tdm_mode_tensor *own = NULL;
    tdm_tensor *to = NULL;
    int count = 0;
    if (ops->list_state != NULL) TDM_TRY(ops->list_state(run->mode, zone, true, &own, &count));
    if (count == 0) return TDM_OK;
    TDM_TRY(tdm__zone_new(zone, &to, (size_t)count, sizeof(*to)));
    for (int i = 0; i < count; i++) {
        to[i] = (tdm_tensor){.name = own[i].name,
                             .dtype = TDM_ST_F32,
                             .ndim = own[i].shape.ndim,
                             .bytes = (size_t)tdm__shape_count(&own[i].shape) * sizeof(float),
                             .data = own[i].data};
        memcpy(to[i].dim, own[i].shape.dim, (size_t)own[i].shape.ndim * sizeof(int64_t));
    }
    parts->compression = to;
    parts->compression_count = count;
    return TDM_OK;
}

tdm_status tdm__run_gather_mode(tdm_run *run) {
    const tdm_mode_ops *ops = run->mode->ops;
    return ops->gather_state != NULL ? ops->gather_state(run->mode) : TDM_OK;
}

tdm_status tdm__run_share_mode(tdm_run *run, bool found) {
    const tdm_mode_ops *ops = run->mode->ops;
    return ops->share_state != NULL ? ops->share_state(run->mode, found) : TDM_OK;
}

/* Has the file this tensor, and no infinite number in it? */
static tdm_status read_one(const tdm_tensor_file *file, const tdm_mode_tensor *own, bool *fits) {
    const tdm_tensor *from = tdm__tensor_file_find(file, own->name);
    const size_t count = (size_t)tdm__shape_count(&own->shape);
    *fits = from != NULL && from->dtype == TDM_ST_F32 && from->ndim == own->shape.ndim &&
            memcmp(from->dim, own->shape.dim, (size_t)from->ndim * sizeof(int64_t)) == 0;
    if (!*fits) return TDM_OK;
    TDM_TRY(tdm__tensor_file_read(file, from, own->data));
    *fits = tdm__first_not_finite(TDM_F32_BITS, own->data, count) == count;
    return TDM_OK;
}

/* With another number of ranks, or another rank of the factors, compression begins anew, which is a little less
 * accurate for some steps. */
tdm_status tdm__run_restore_mode(tdm_run *run, const tdm_ckpt *ckpt, bool *found) {
    const tdm_tensor_file *file = tdm__ckpt_compression(ckpt);
    const tdm_mode_ops *ops = run->mode->ops;
    tdm_mode_tensor *own = NULL;
    tdm_zone zone;
    int count = 0;
    *found = false;
    if (ops->list_state == NULL) return TDM_OK;
    tdm__zone_init(&zone, run->host);
    tdm_status status = ops->list_state(run->mode, &zone, false, &own, &count);
    *found = file != NULL && count > 0 && tdm__tensor_file_count(file) == count;
    for (int i = 0; status == TDM_OK && *found && i < count; i++) status = read_one(file, &own[i], found);
    tdm__zone_deinit(&zone);
    if (status == TDM_OK && !*found && file != NULL && count > 0)
        TDM_WARN(run->host, "checkpoint",
                 "%s: compression.safetensors was saved with another number of ranks or other settings of "
                 "parallel.ddp.compress: its errors are dropped, and compression begins anew",
                 tdm__ckpt_path(ckpt));
    return status;
}
