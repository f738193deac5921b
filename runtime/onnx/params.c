/* The numbers of a layer's parameters, out of constants of an ONNX file. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/onnx/import.h"

static int64_t runs_of(const tdm_onnx_weight *weight) {
    return weight->runs > 0 ? weight->runs : 1;
}

/* Dimensions of 1 in front do not matter, as in broadcasting; those behind do, unless the layer has seen to them. */
static bool has_shape(const tdm_onnx_tensor *tensor, const tdm_shape *shape, bool ones_behind) {
    int first = 0, end = tensor->ndim, wanted = 0;
    while (wanted < shape->ndim && shape->dim[wanted] == 1) wanted++;
    while (first < end && tensor->dim[first] == 1) first++;
    while (ones_behind && first < end && tensor->dim[end - 1] == 1) end--;
    return end - first == shape->ndim - wanted &&
           memcmp(tensor->dim + first, shape->dim + wanted, (size_t)(end - first) * sizeof(*shape->dim)) == 0;
}

const char *tdm__onnx_param_fault(const tdm_onnx_draft *draft, const tdm_param_def *def,
                                  const tdm_onnx_weight *weight) {
    const int64_t wanted = tdm__shape_count(&def->shape);
    if (weight->value == NULL) return NULL;
    const tdm_onnx_tensor *tensor = tdm__onnx_constant_of(draft, weight->value);
    if (tensor == NULL) return "its weights are computed by other nodes; tandem needs them as constants";
    if (tdm__onnx_dtype(tensor->type) == NULL || tensor->is_varints || tensor->source == NULL)
        return "its weights are no floats that tandem reads (F32, F64, F16, BF16)";
    int64_t count = tensor->count;
    if (weight->runs > 0) {
        int64_t last = 0;
        for (int i = 0; i < weight->runs; i++) last = weight->order[i] > last ? weight->order[i] : last;
        const bool inside = weight->each > 0 && weight->first >= 0 && weight->first <= count &&
                            (last + 1) <= (count - weight->first) / weight->each;
        count = inside ? weight->each * weight->runs : -1;
    }
    const bool turns = !weight->turned || (tensor->ndim == 2 && def->shape.ndim == 2 && weight->runs == 0 &&
                                           tensor->dim[0] == def->shape.dim[1]);
    const bool same = weight->turned || weight->runs > 0 || has_shape(tensor, &def->shape, weight->ones_behind);
    return count == wanted && turns && same ? NULL : "its weights have another shape than its inputs and outputs want";
}

void tdm__onnx_param_init(const tdm_onnx_draft *draft, tdm_onnx_param *out, const tdm_graph_param *of,
                          const tdm_onnx_weight *weight) {
    *out = (tdm_onnx_param){.of = of, .weight = *weight, .dtype = of->def.is_counter ? "I64" : "F32"};
    if (weight->value != NULL) out->tensor = tdm__onnx_constant_of(draft, weight->value);
    if (out->tensor != NULL) out->dtype = tdm__onnx_dtype(out->tensor->type);
    out->element = of->def.is_counter    ? sizeof(int64_t)
                   : out->tensor != NULL ? (size_t)tdm__onnx_bytes_of(out->tensor->type)
                                         : sizeof(float);
}

/* Row by row, each into a column. */
static tdm_status read_turned(const tdm_onnx_import *import, const tdm_onnx_param *param, char *to) {
    const tdm_onnx_tensor *tensor = param->tensor;
    const size_t rows = (size_t)tensor->dim[0], columns = (size_t)tensor->dim[1], element = param->element;
    tdm_status status = TDM_OK;
    char *row;
    TDM_TRY(tdm__new(import->file->host, &row, columns, element, "a row of a matrix"));
    for (size_t i = 0; i < rows && status == TDM_OK; i++) {
        status = tdm__wire_take(tensor->source, row, columns * element, tensor->span.at + i * columns * element);
        for (size_t k = 0; k < columns; k++) memcpy(to + (k * rows + i) * element, row + k * element, element);
    }
    tdm__delete(import->file->host, row);
    return status;
}

static void fill(const tdm_onnx_param *param, char *to) {
    for (int64_t i = 0; i < param->of->count; i++)
        memcpy(to + (size_t)i * sizeof(float), &param->weight.fill, sizeof(float));
}

tdm_status tdm__onnx_param_read(const tdm_onnx_import *import, const tdm_onnx_param *param, void *to) {
    const tdm_onnx_weight *weight = &param->weight;
    const size_t count = (size_t)param->of->count, element = param->element;
    if (param->of->def.is_counter) {
        memset(to, 0, sizeof(int64_t));
        return TDM_OK;
    }
    if (param->tensor == NULL) {
        fill(param, to);
        return TDM_OK;
    }
    if (weight->turned) return read_turned(import, param, to);
    const size_t each = count / (size_t)runs_of(weight);
    for (int i = 0; i < runs_of(weight); i++) {
        const size_t first = weight->runs > 0 ? (size_t)(weight->first + weight->order[i] * weight->each) : 0;
        TDM_TRY(tdm__wire_take(param->tensor->source, (char *)to + (size_t)i * each * element, each * element,
                               param->tensor->span.at + first * element));
    }
    return TDM_OK;
}
