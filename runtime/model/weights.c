/* The graph's tensors in the file. Kernels read a parameter where the file is mapped if it begins and ends at a
 * multiple of a cache line, as nearly all bytes of a file that tandem writes do (ckpt/tensor_write.c); the others are
 * copied. */
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"

static tdm_status find(const tdm_model *model, const tdm_graph_param *param, const tdm_tensor **out) {
    const tdm_tensor *tensor = *out = tdm__tensor_file_find(model->file, param->name);
    if (tensor == NULL)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: the tensor '%s' of its model is missing", model->path, param->name);
    if (tensor->dtype != (param->def.is_counter ? TDM_ST_I64 : TDM_ST_F32))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' must be %s, it is %s", model->path, param->name,
                 param->def.is_counter ? "I64" : "F32", tensor->dtype_name);
    if (!tdm__tensor_has_shape(tensor, &param->def.shape))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' has another shape than its model says, %s", model->path,
                 param->name, tdm__shape_text(&param->def.shape).text);
    return TDM_OK;
}

static bool can_stay(const tdm_tensor *tensor) {
    return (uintptr_t)tensor->data % TDM_ALIGN == 0 && tensor->bytes % TDM_ALIGN == 0;
}

/* Every tensor of the file is one of the model's. */
static tdm_status check_count(const tdm_model *model) {
    const size_t wanted = model->graph->param_count + model->graph->buffer_count;
    const int count = tdm__tensor_file_count(model->file);
    if ((size_t)count == wanted) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: it has %d tensors, and its model %zu", model->path, count, wanted);
}

/* Where the copies begin in model->copies: of parameters, of all of them in bf16, of buffers. */
typedef struct layout {
    const tdm_plan *plan;
    size_t param, bf16, buffer, end;
} layout;

static size_t lines(size_t bytes) {
    return tdm__round_up(bytes, TDM_ALIGN);
}

/* Looks at all tensors before anything is copied. */
static tdm_status lay_out(tdm_model *model, layout *at) {
    const tdm_graph *graph = model->graph;
    const tdm_tensor *tensor;
    const bool is_bf16 = model->job.train.precision == TDM_BF16;
    TDM_TRY(check_count(model));
    for (size_t i = 0; i < graph->param_count; i++) {
        TDM_TRY(find(model, &graph->params[i], &tensor));
        if (!can_stay(tensor)) at->bf16 += lines(tensor->bytes);
        if (is_bf16) at->buffer += lines((size_t)graph->params[i].count * sizeof(uint16_t));
    }
    for (size_t i = 0; i < graph->buffer_count; i++) TDM_TRY(find(model, &graph->buffers[i], &tensor));
    at->buffer += at->bf16;
    at->end = at->buffer + at->plan->buffer_bytes;
    return TDM_OK;
}

static tdm_status copy_param(tdm_model *model, const tdm_graph_param *param, layout *at, const float **out) {
    const tdm_tensor *tensor;
    TDM_TRY(find(model, param, &tensor));
    *out = tensor->data;
    if (can_stay(tensor)) {
        if (model->job.train.precision != TDM_BF16) model->used_bytes += tensor->bytes;
        return TDM_OK;
    }
    char *copy = model->copies + at->param;
    memcpy(copy, tensor->data, tensor->bytes);
    at->param += lines(tensor->bytes);
    *out = (float *)(void *)copy;
    return TDM_OK;
}

static tdm_status bind_params(tdm_model *model, layout *at) {
    const tdm_graph *graph = model->graph;
    const bool is_bf16 = model->job.train.precision == TDM_BF16;
    const float **param;
    const uint16_t **param_bf16;
    TDM_TRY(tdm__zone_new(&model->zone, &param, graph->param_count, sizeof(*param)));
    TDM_TRY(tdm__zone_new(&model->zone, &param_bf16, graph->param_count, sizeof(*param_bf16)));
    for (size_t i = 0; i < graph->param_count; i++) {
        const size_t count = (size_t)graph->params[i].count;
        TDM_TRY(copy_param(model, &graph->params[i], at, &param[i]));
        if (!is_bf16) continue;
        uint16_t *rounded = (uint16_t *)(void *)(model->copies + at->bf16);
        tdm_builtin_flat()->to_bf16(rounded, param[i], count);
        at->bf16 += lines(count * sizeof(*rounded));
        tdm__map_release(&model->map, param[i], count * sizeof(*param[i]));
        param_bf16[i] = rounded;
    }
    model->weights.param = param;
    if (is_bf16) model->weights.param_bf16 = param_bf16;
    return TDM_OK;
}

tdm_status tdm__model_bind(tdm_model *model) {
    layout at = {.plan = model->piece[0].plan};
    TDM_TRY(lay_out(model, &at));
    TDM_TRY(tdm__new_pages(model->host, &model->copies, at.end, "copies of weights"));
    model->copied_bytes = at.end;
    model->weights.buffer = model->copies + at.buffer;
    for (int i = 0; i < at.plan->buffer_count; i++) {
        const tdm_plan_buffer *buffer = &at.plan->buffers[i];
        const tdm_tensor *tensor = tdm__tensor_file_find(model->file, buffer->name);
        memcpy(model->copies + at.buffer + buffer->offset, tensor->data, tensor->bytes);
    }
    return bind_params(model, &at);
}
