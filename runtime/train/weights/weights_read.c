/* Numbers of a file as floats. */
#include <math.h>
#include <string.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/base/finite.h"
#include "runtime/base/status.h"
#include "runtime/train/weights/weights.h"

typedef enum form { FORM_F32, FORM_F64, FORM_F16, FORM_BF16, FORM_OTHER } form;

static form form_of(const tdm_tensor *tensor) {
    if (tensor->dtype == TDM_ST_F32) return FORM_F32;
    if (tensor->dtype == TDM_ST_F64) return FORM_F64;
    if (strcmp(tensor->dtype_name, "F16") == 0) return FORM_F16;
    return strcmp(tensor->dtype_name, "BF16") == 0 ? FORM_BF16 : FORM_OTHER;
}

static tdm_status doubles_to_floats(const tdm_tensor *tensor, const double *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)from[i];
        if (isinf(to[i]) && isfinite(from[i]))
            TDM_FAIL(TDM_E_CHECKPOINT,
                     "tensor '%s' of the file has %.9g at element %zu, which is beyond the largest float", tensor->name,
                     from[i], i);
    }
    return TDM_OK;
}

static tdm_status to_floats(const tdm_tensor *tensor, const void *from, float *to, size_t count) {
    const uint16_t *half = from;
    switch (form_of(tensor)) {
    case FORM_F64:
        return doubles_to_floats(tensor, from, to, count);
    case FORM_F16:
        for (size_t i = 0; i < count; i++) to[i] = tdm__f16_float(half[i]);
        return TDM_OK;
    case FORM_BF16:
        for (size_t i = 0; i < count; i++) to[i] = tdm__bf16_float(half[i]);
        return TDM_OK;
    case FORM_F32:
    case FORM_OTHER:
        break;
    }
    memcpy(to, from, count * sizeof(*to));
    return TDM_OK;
}

static tdm_status check_type(const tdm_tensor *tensor, const tdm_named *named) {
    if (form_of(tensor) != FORM_OTHER || (named->is_counter && tensor->dtype == TDM_ST_I64)) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' is %s, in the file %s; convert it before loading", named->name,
             named->is_counter ? "I64" : "made of floats", tensor->dtype_name);
}

static tdm_status read_floats(const tdm_run *run, const tdm_tensor_file *file, const tdm_tensor *tensor, float *to,
                              size_t count) {
    void *raw = NULL;
    TDM_TRY(tdm__new(run->host, &raw, tensor->bytes, 1, "a tensor of the file"));
    tdm_status status = tdm__tensor_file_read(file, tensor, raw);
    if (status == TDM_OK) status = to_floats(tensor, raw, to, count);
    tdm__delete(run->host, raw);
    TDM_TRY(status);
    const size_t bad = tdm__first_not_finite(TDM_F32_BITS, to, count);
    if (bad < count)
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' of the file is not finite (element %zu is infinite or NaN)",
                 tensor->name, bad);
    return TDM_OK;
}

/* A program that makes all tensors of a state floats makes floats of the counters, too. */
static tdm_status read_counter(const tdm_run *run, const tdm_tensor_file *file, const tdm_tensor *tensor, int64_t *to) {
    float count;
    TDM_TRY(read_floats(run, file, tensor, &count, 1));
    if (count < 0.0f || count >= 0x1p63f || count != floorf(count))
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' of the file counts batches and is %g", tensor->name, (double)count);
    *to = (int64_t)count;
    return TDM_OK;
}

tdm_status tdm__weights_read(const tdm_run *run, const tdm_tensor_file *file, const tdm_tensor *tensor,
                             const tdm_named *named, void *to) {
    TDM_TRY(check_type(tensor, named));
    if (!named->is_counter) return read_floats(run, file, tensor, to, (size_t)named->count);
    if (tensor->dtype == TDM_ST_I64) return tdm__tensor_file_read(file, tensor, to);
    return read_counter(run, file, tensor, to);
}
