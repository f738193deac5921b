/* The module's tensors by name: for checkpoints, and for programs that read and write them. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

int tdm__run_named_count(const tdm_run *run) {
    return run->plan->param_count + run->plan->buffer_count;
}

tdm_named tdm__run_named(const tdm_run *run, int index) {
    const tdm_plan *plan = run->plan;
    if (index < plan->param_count) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[index]];
        return (tdm_named){.name = param->name,
                           .shape = &param->def.shape,
                           .count = param->count,
                           .arena = TDM_ARENA_PARAM,
                           .offset = param->offset * sizeof(float),
                           .bytes = (size_t)param->count * sizeof(float)};
    }
    const tdm_plan_buffer *buffer = &plan->buffers[index - plan->param_count];
    size_t bytes = (size_t)buffer->count * (buffer->def.is_counter ? sizeof(int64_t) : sizeof(float));
    return (tdm_named){.name = buffer->name,
                       .shape = &buffer->def.shape,
                       .count = buffer->count,
                       .is_buffer = true,
                       .is_counter = buffer->def.is_counter,
                       .arena = TDM_ARENA_BUFFER,
                       .offset = buffer->offset,
                       .bytes = bytes};
}

int tdm_run_tensor_count(const tdm_run *run) {
    return run != NULL ? tdm__run_named_count(run) : 0;
}

tdm_status tdm_run_tensor(const tdm_run *run, int index, tdm_tensor_info *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_tensor: a pointer is NULL");
    if (index < 0 || index >= tdm__run_named_count(run))
        TDM_FAIL(TDM_E_USAGE, "tdm_run_tensor: index %d is not in [0, %d)", index, tdm__run_named_count(run));
    tdm_named named = tdm__run_named(run, index);
    *out = (tdm_tensor_info){.name = named.name,
                             .ndim = named.shape->ndim,
                             .count = named.count,
                             .bytes = named.bytes,
                             .is_buffer = named.is_buffer,
                             .is_int64 = named.is_counter};
    memcpy(out->dim, named.shape->dim, (size_t)named.shape->ndim * sizeof(int64_t));
    return TDM_OK;
}

static tdm_status find(tdm_run *run, const char *function, const char *name, const void *memory, size_t bytes,
                       tdm_named *out) {
    if (run == NULL || name == NULL || memory == NULL) TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL", function);
    TDM_TRY(tdm__run_idle(run, function));
    for (int i = 0; i < tdm__run_named_count(run); i++) {
        *out = tdm__run_named(run, i);
        if (strcmp(out->name, name) != 0) continue;
        if (out->bytes != bytes)
            TDM_FAIL(TDM_E_USAGE, "%s: tensor '%s' has %zu bytes, the caller's memory %zu", function, name, out->bytes,
                     bytes);
        return TDM_OK;
    }
    TDM_FAIL(TDM_E_USAGE, "%s: the model has no tensor '%s'", function, name);
}

static tdm_status fetch(tdm_run *run, const tdm_named *named, char **out) {
    void *arena = NULL;
    TDM_TRY(tdm__replica_fetch(run->mode->replica[0], named->arena, &arena));
    *out = (char *)arena + named->offset;
    return TDM_OK;
}

tdm_status tdm_run_read(tdm_run *run, const char *name, void *to, size_t bytes) {
    tdm_named named = {0};
    char *data = NULL;
    TDM_TRY(find(run, "tdm_run_read", name, to, bytes, &named));
    TDM_TRY(fetch(run, &named, &data));
    memcpy(to, data, bytes);
    return TDM_OK;
}

tdm_status tdm_run_write(tdm_run *run, const char *name, const void *from, size_t bytes) {
    tdm_named named = {0};
    char *data = NULL;
    TDM_TRY(find(run, "tdm_run_write", name, from, bytes, &named));
    TDM_TRY(fetch(run, &named, &data));
    memcpy(data, from, bytes);
    TDM_TRY(tdm__replica_put(run->mode->replica[0], named.arena));
    return tdm__mode_sync(run->mode, false);
}
