/* Compares two checkpoints: are all bits equal, and which number differs most, with its tensor and index. */
#include <tandem/checkpoint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/ckpt.h"

typedef struct comparison {
    const tdm_host *host;
    double rtol, atol;
    tdm_checkpoint_part part; /* being compared */
    tdm_checkpoint_difference *out;
} comparison;

static void copy_name(char out[160], const char *name) {
    snprintf(out, 160, "%s", name);
}

/* Remembers the first differing tensor: the first in order of names, and one of the model before those of the average
 * and the optimizer, which follow from it. */
static void note_first(const comparison *c, const char *name) {
    tdm_checkpoint_difference *out = c->out;
    if (out->first[0] != 0 && (out->first_part != c->part || strcmp(name, out->first) >= 0)) return;
    copy_name(out->first, name);
    out->first_part = c->part;
}

static bool same_shape(const tdm_tensor *a, const tdm_tensor *b) {
    return strcmp(a->dtype_name, b->dtype_name) == 0 && a->ndim == b->ndim && a->bytes == b->bytes &&
           memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->ndim) == 0;
}

static size_t element_bytes(int dtype) {
    return dtype == TDM_ST_F64 || dtype == TDM_ST_I64 ? 8 : dtype == TDM_ST_U8 || dtype == TDM_ST_OTHER ? 1 : 4;
}

static double element(const void *data, int dtype, size_t index) {
    switch (dtype) {
    case TDM_ST_F32:
        return (double)((const float *)data)[index];
    case TDM_ST_F64:
        return ((const double *)data)[index];
    case TDM_ST_I64:
        return (double)((const int64_t *)data)[index];
    case TDM_ST_I32:
        return (double)((const int32_t *)data)[index];
    default:
        return (double)((const uint8_t *)data)[index];
    }
}

/* Compares element by element. True if all of them are within the tolerance. */
static bool compare_numbers(const comparison *c, const tdm_tensor *tensor, const void *a, const void *b) {
    tdm_checkpoint_difference *out = c->out;
    size_t count = tensor->bytes / element_bytes(tensor->dtype);
    bool within = true;
    for (size_t i = 0; i < count; i++) {
        double x = element(a, tensor->dtype, i), y = element(b, tensor->dtype, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        double difference = isfinite(x) && isfinite(y) ? fabs(x - y) : (double)INFINITY;
        if (!(difference <= c->atol + c->rtol * fabs(y))) within = false;
        if (difference > out->largest) {
            out->largest = difference;
            copy_name(out->largest_name, tensor->name);
            out->largest_part = c->part;
            out->largest_index = (int64_t)i;
            out->a = x;
            out->b = y;
        }
        if (c->part == TDM_CHECKPOINT_MODEL && difference > out->largest_model) {
            out->largest_model = difference;
            copy_name(out->largest_model_name, tensor->name);
        }
    }
    return within;
}

static tdm_status compare_tensor(const comparison *c, const tdm_tensor_file *file_a, const tdm_tensor *a,
                                 const tdm_tensor_file *file_b, const tdm_tensor *b) {
    tdm_checkpoint_difference *out = c->out;
    void *bytes_a = NULL, *bytes_b = NULL;
    tdm_status status = TDM_OK;
    bool within = false;
    out->tensors++;
    if (same_shape(a, b)) {
        TDM_TRY_DONE(tdm__new(c->host, &bytes_a, 1, a->bytes, "tensor"));
        TDM_TRY_DONE(tdm__new(c->host, &bytes_b, 1, b->bytes, "tensor"));
        TDM_TRY_DONE(tdm__tensor_file_read(file_a, a, bytes_a));
        TDM_TRY_DONE(tdm__tensor_file_read(file_b, b, bytes_b));
        if (a->bytes == 0 || memcmp(bytes_a, bytes_b, a->bytes) == 0) goto done;
        within = compare_numbers(c, a, bytes_a, bytes_b);
    }
    out->equal_bits = 0;
    if (!within) {
        out->within = 0;
        out->differing++;
        note_first(c, a->name);
    }
done:
    tdm__delete(c->host, bytes_a);
    tdm__delete(c->host, bytes_b);
    return status;
}

static void note_missing(const comparison *c, const char *name, int64_t *side) {
    (*side)++;
    c->out->equal_bits = c->out->within = 0;
    note_first(c, name);
}

static tdm_status compare_files(comparison *c, tdm_checkpoint_part part, const tdm_tensor_file *a,
                                const tdm_tensor_file *b) {
    if (a == NULL || b == NULL) return TDM_OK;
    c->part = part;
    for (int i = 0; i < tdm__tensor_file_count(a); i++) {
        const tdm_tensor *tensor = tdm__tensor_file_get(a, i);
        const tdm_tensor *other = tdm__tensor_file_find(b, tensor->name);
        if (other) {
            TDM_TRY(compare_tensor(c, a, tensor, b, other));
        } else {
            note_missing(c, tensor->name, &c->out->only_in_a);
        }
    }
    for (int i = 0; i < tdm__tensor_file_count(b); i++) {
        const tdm_tensor *tensor = tdm__tensor_file_get(b, i);
        if (!tdm__tensor_file_find(a, tensor->name)) note_missing(c, tensor->name, &c->out->only_in_b);
    }
    return TDM_OK;
}

tdm_status tdm_checkpoint_compare(const tdm_host *host, const char *a, const char *b, double rtol, double atol,
                                  tdm_checkpoint_difference *out) {
    if (!a || !b || !out || !(rtol >= 0) || !(atol >= 0))
        TDM_FAIL(TDM_E_USAGE, "tdm_checkpoint_compare needs two paths, tolerances of at least 0 and a difference");
    TDM_TRY(tdm__sized_check("tdm_checkpoint_compare: tdm_checkpoint_difference", out, sizeof *out, sizeof *out));
    TDM_TRY(tdm__host_take(&host));
    *out = (tdm_checkpoint_difference){.size = sizeof *out, .equal_bits = 1, .within = 1};
    tdm_ckpt *ckpt_a = NULL, *ckpt_b = NULL;
    comparison c = {.host = host, .rtol = rtol, .atol = atol, .out = out};
    tdm_status status = TDM_OK;
    TDM_TRY_DONE(tdm__ckpt_open_any(&ckpt_a, host, a));
    TDM_TRY_DONE(tdm__ckpt_open_any(&ckpt_b, host, b));
    if (!ckpt_a || !ckpt_b) TDM_FAIL_DONE(TDM_E_CHECKPOINT, "%s holds no checkpoint", ckpt_a ? b : a);
    TDM_TRY_DONE(compare_files(&c, TDM_CHECKPOINT_MODEL, tdm__ckpt_model(ckpt_a), tdm__ckpt_model(ckpt_b)));
    TDM_TRY_DONE(compare_files(&c, TDM_CHECKPOINT_AVERAGE, tdm__ckpt_average(ckpt_a), tdm__ckpt_average(ckpt_b)));
    TDM_TRY_DONE(
        compare_files(&c, TDM_CHECKPOINT_COMPRESSION, tdm__ckpt_compression(ckpt_a), tdm__ckpt_compression(ckpt_b)));
    TDM_TRY_DONE(compare_files(&c, TDM_CHECKPOINT_OPTIMIZER, tdm__ckpt_optimizer(ckpt_a), tdm__ckpt_optimizer(ckpt_b)));
done:
    tdm__ckpt_close(ckpt_a);
    tdm__ckpt_close(ckpt_b);
    return status;
}
