/* The tensors of a run by name: for checkpoints, and for comparing replicas. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/finite.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

static int by_name(const void *a, const void *b) {
    const tdm_named *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static tdm_named named_param(const tdm_plan *plan, int index) {
    const tdm_plan_param *param = &plan->params[plan->param_of_graph[index]];
    return (tdm_named){.name = param->name,
                       .shape = &param->def.shape,
                       .count = param->count,
                       .arena = TDM_ARENA_PARAM,
                       .offset = param->offset * sizeof(float),
                       .bytes = (size_t)param->count * sizeof(float)};
}

static tdm_named named_buffer(const tdm_plan_buffer *buffer) {
    return (tdm_named){.name = buffer->name,
                       .shape = &buffer->def.shape,
                       .count = buffer->count,
                       .is_counter = buffer->def.is_counter,
                       .arena = TDM_ARENA_BUFFER,
                       .offset = buffer->offset,
                       .bytes = (size_t)buffer->count * (buffer->def.is_counter ? sizeof(int64_t) : sizeof(float))};
}

/* The `index`-th of the optimizer's arenas that the replicas have: a tensor for each trained parameter. */
static tdm_status list_state(tdm_run *run, const char *name, int index, tdm_named **to) {
    const tdm_plan *plan = run->plan;
    for (int i = 0; i < plan->param_count; i++) {
        if (plan->frozen[i]) continue;
        tdm_named *named = (*to)++;
        *named = run->tensors[i];
        named->arena = TDM_ARENA_STATE;
        named->offset += (size_t)index * plan->trained_floats * sizeof(float);
        TDM_TRY(tdm__zone_printf(&run->zone, &named->name, "%s.%s", name, run->tensors[i].name));
    }
    return TDM_OK;
}

tdm_status tdm__run_list_tensors(tdm_run *run) {
    const tdm_plan *plan = run->plan;
    const unsigned states = run->optim_states;
    int params = plan->param_count, state_count = __builtin_popcount(states);
    tdm_named *to;
    run->model_tensors = params + plan->buffer_count;
    run->tensor_count = run->model_tensors + state_count * plan->trained_count;
    run->average_count = run->options.predicts || isnan(run->job->train.ema_decay) ? 0 : params;
    TDM_TRY(tdm__zone_new(&run->zone, &to, (size_t)(run->tensor_count + run->average_count), sizeof(*to)));
    TDM_TRY(tdm__zone_new(&run->zone, &run->params_by_name, (size_t)params, sizeof(*run->params_by_name)));
    run->tensors = to;
    for (int i = 0; i < params; i++, to++) {
        *to = named_param(plan, i);
        run->params_by_name[i] = to;
    }
    for (int i = 0; i < plan->buffer_count; i++) *to++ = named_buffer(&plan->buffers[i]);
    for (int k = 0, index = 0; k < TDM_MAX_STATES; k++) {
        if ((states >> k & 1) != 0) TDM_TRY(list_state(run, run->optim->state[k], index++, &to));
    }
    for (int i = 0; i < run->average_count; i++, to++) {
        *to = run->tensors[i];
        to->arena = TDM_ARENA_AVERAGE;
    }
    qsort(run->params_by_name, (size_t)params, sizeof(*run->params_by_name), by_name);
    return TDM_OK;
}

tdm_status tdm__tensor_at(tdm_replica *replica, const tdm_named *named, void *arenas[TDM_ARENA_COUNT], char **out) {
    void **arena = &arenas[named->arena];
    if (*arena == NULL) TDM_TRY(tdm__replica_fetch(replica, named->arena, arena));
    *out = (char *)*arena + named->offset;
    return TDM_OK;
}

/* ---- from a file ---- */

static tdm_status check_shape(const tdm_named *named, const tdm_tensor *tensor) {
    char want[64], got[64];
    tdm_shape found = {.ndim = tensor->ndim < TDM_MAX_DIMS ? tensor->ndim : TDM_MAX_DIMS};
    bool same = tensor->ndim == named->shape->ndim;
    for (int d = 0; d < found.ndim; d++) {
        found.dim[d] = tensor->dim[d];
        same = same && named->shape->dim[d] == tensor->dim[d];
    }
    if (same) return TDM_OK;
    tdm__shape_print(want, sizeof(want), named->shape);
    tdm__shape_print(got, sizeof(got), &found);
    TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' has shape %s, in the file %s", named->name, want[0] ? want : "scalar",
             got[0] ? got : "scalar");
}

static tdm_status load_one(const tdm_tensor_file *file, const tdm_named *named, void *to) {
    const tdm_tensor *tensor = tdm__tensor_file_find(file, named->name);
    if (tensor == NULL) TDM_FAIL(TDM_E_CHECKPOINT, "the file lacks this model's tensor '%s'", named->name);
    if (tensor->dtype != (named->is_counter ? TDM_ST_I64 : TDM_ST_F32))
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' is %s, in the file %s; convert it before loading", named->name,
                 named->is_counter ? "I64" : "F32", tensor->dtype_name);
    TDM_TRY(check_shape(named, tensor));
    TDM_TRY(tdm__tensor_file_read(file, tensor, to));
    size_t count = named->is_counter ? 0 : (size_t)named->count;
    size_t bad = tdm__first_not_finite(TDM_F32_BITS, to, count);
    if (bad < count)
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' of the file is not finite (element %zu is infinite or NaN)",
                 named->name, bad);
    return TDM_OK;
}

tdm_status tdm__tensors_load(tdm_run *run, const tdm_tensor_file *file, int first, int end) {
    tdm_replica *root = run->mode->replica[0];
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    for (int i = first; i < end; i++) {
        char *to;
        TDM_TRY(tdm__tensor_at(root, &run->tensors[i], arenas, &to));
        TDM_TRY(load_one(file, &run->tensors[i], to));
    }
    for (int kind = 0; kind < TDM_ARENA_COUNT; kind++) {
        if (arenas[kind] != NULL) TDM_TRY(tdm__replica_put(root, (tdm_arena_kind)kind));
    }
    return TDM_OK;
}
