/* Numbers of an ONNX file: what types there are, and reading some of them. */
#include <string.h>

#include "runtime/base/f16.h"
#include "runtime/base/status.h"
#include "runtime/onnx/file.h"

typedef struct type_row {
    int type, bytes;
    const char *dtype; /* safetensors' name; NULL: no floats */
} type_row;

static const type_row types[] = {
    {TDM_ONNX_FLOAT, 4, "F32"},     {TDM_ONNX_DOUBLE, 8, "F64"}, {TDM_ONNX_FLOAT16, 2, "F16"},
    {TDM_ONNX_BFLOAT16, 2, "BF16"}, {TDM_ONNX_INT64, 8, NULL},   {TDM_ONNX_INT32, 4, NULL},
    {TDM_ONNX_BOOL, 1, NULL},
};

static const type_row *find_type(int type) {
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].type == type) return &types[i];
    return NULL;
}

int tdm__onnx_bytes_of(int type) {
    const type_row *row = find_type(type);
    return row != NULL ? row->bytes : 0;
}

const char *tdm__onnx_dtype(int type) {
    const type_row *row = find_type(type);
    return row != NULL ? row->dtype : NULL;
}

static double number_of(int type, const unsigned char *bytes) {
    union {
        float f;
        double d;
        int64_t l;
        int32_t i;
        uint16_t h;
        uint32_t w;
    } as = {.l = 0};
    memcpy(&as, bytes, (size_t)tdm__onnx_bytes_of(type));
    switch (type) {
    case TDM_ONNX_FLOAT:
        return (double)as.f;
    case TDM_ONNX_DOUBLE:
        return as.d;
    case TDM_ONNX_FLOAT16:
        return (double)tdm__f16_float(as.h);
    case TDM_ONNX_BFLOAT16:
        as.w = (uint32_t)as.h << 16;
        return (double)as.f;
    case TDM_ONNX_INT64:
        return (double)as.l;
    case TDM_ONNX_INT32:
        return (double)as.i;
    default:
        return (double)bytes[0];
    }
}

/* One number behind the other, as integers, and those of float16 as their bits. */
static tdm_status read_varints(const tdm_onnx_tensor *tensor, int64_t most, int64_t *out) {
    unsigned char bytes[16];
    tdm_wire_span span = tensor->span;
    for (int64_t k = 0; k < most; k++) {
        uint64_t value = 0;
        size_t at = 0;
        const size_t left = (size_t)(span.end - span.at), have = left < 10 ? left : 10;
        TDM_TRY(tdm__wire_take(tensor->source, bytes, have, span.at));
        do {
            if (at == have)
                TDM_FAIL(TDM_E_CHECKPOINT, "%s: the numbers of '%s' are cut short", tensor->source->path, tensor->name);
            value |= (uint64_t)(bytes[at] & 0x7F) << (7 * at);
        } while (bytes[at++] >= 0x80);
        out[k] = (int64_t)value;
        span.at += at;
    }
    return TDM_OK;
}

tdm_status tdm__onnx_integers(const tdm_onnx_tensor *tensor, int64_t most, int64_t *out) {
    if (tensor->source == NULL) {
        for (int64_t k = 0; k < most; k++) out[k] = tensor->items != NULL ? tensor->items[k] : (int64_t)tensor->number;
        return TDM_OK;
    }
    if (tensor->is_varints) return read_varints(tensor, most, out);
    int32_t narrow[TDM_ONNX_FEW];
    const bool is_wide = tdm__onnx_bytes_of(tensor->type) == sizeof(*out);
    TDM_TRY(tdm__wire_take(tensor->source, is_wide ? (void *)out : (void *)narrow,
                           (size_t)most * (is_wide ? sizeof(*out) : sizeof(*narrow)), tensor->span.at));
    for (int64_t k = 0; k < most && !is_wide; k++) out[k] = narrow[k];
    return TDM_OK;
}

static tdm_status numbers_of_integers(const tdm_onnx_tensor *tensor, int64_t most, double *out) {
    int64_t value[TDM_ONNX_FEW];
    TDM_TRY(tdm__onnx_integers(tensor, most, value));
    for (int64_t k = 0; k < most; k++)
        out[k] = tensor->type == TDM_ONNX_FLOAT16 ? (double)tdm__f16_float((uint16_t)value[k]) : (double)value[k];
    return TDM_OK;
}

tdm_status tdm__onnx_numbers(const tdm_onnx_tensor *tensor, int64_t most, double *out) {
    unsigned char bytes[8 * TDM_ONNX_FEW];
    const size_t each = (size_t)tdm__onnx_bytes_of(tensor->type);
    if (tensor->is_varints || tensor->items != NULL) return numbers_of_integers(tensor, most, out);
    if (tensor->source != NULL) TDM_TRY(tdm__wire_take(tensor->source, bytes, (size_t)most * each, tensor->span.at));
    for (int64_t k = 0; k < most; k++)
        out[k] = tensor->source != NULL ? number_of(tensor->type, bytes + (size_t)k * each) : tensor->number;
    return TDM_OK;
}
