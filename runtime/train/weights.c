/* Initial weights, the same bits as PyTorch's; weights from files; the hash of all weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/finite.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/ckpt.h"
#include "runtime/train/train.h"

static void init_tensor(float *to, const tdm_param_def *def, int64_t count, tdm_rng *rng) {
    if (def->init == TDM_INIT_UNIFORM_FAN_IN) {
        double bound = 1.0 / sqrt((double)def->fan_in);
        tdm__rng_uniform(rng, to, (size_t)count, -bound, bound);
        return;
    }
    float value = def->init == TDM_INIT_ONES ? 1.0f : 0.0f;
    for (int64_t i = 0; i < count; i++) to[i] = value;
}

tdm_status tdm__weights_init(tdm_replica *replica, int64_t seed, tdm_rng_profile profile) {
    const tdm_plan *plan = replica->plan;
    void *params = NULL, *buffers = NULL;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_PARAM, &params));
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers));
    tdm_rng *rng = NULL;
    TDM_TRY(tdm__new(replica->host, &rng, 1, sizeof(*rng), "generator"));
    tdm__rng_seed(rng, (uint64_t)seed, profile);
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        init_tensor((float *)params + param->offset, &param->def, param->count, rng);
    }
    tdm__delete(replica->host, rng);
    for (int i = 0; i < plan->buffer_count; i++) {
        const tdm_plan_buffer *buffer = &plan->buffers[i];
        char *to = (char *)buffers + buffer->offset;
        if (buffer->def.is_counter)
            memset(to, 0, sizeof(int64_t));
        else
            init_tensor((float *)(void *)to, &buffer->def, buffer->count, NULL);
    }
    TDM_TRY(tdm__replica_put(replica, TDM_ARENA_PARAM));
    return tdm__replica_put(replica, TDM_ARENA_BUFFER);
}

/* ---- loading ---- */

static tdm_status load_one(const tdm_tensor_file *file, const char *name, const tdm_shape *shape, int dtype, void *to,
                           const char *dtype_name) {
    const tdm_tensor *tensor = tdm__tensor_file_find(file, name);
    if (tensor == NULL) TDM_FAIL(TDM_E_CHECKPOINT, "the file lacks this model's tensor '%s'", name);
    if (tensor->dtype != dtype)
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' is %s, in the file %s; convert it before loading", name, dtype_name,
                 tensor->dtype_name);
    bool same = tensor->ndim == shape->ndim;
    tdm_shape found = {.ndim = tensor->ndim < TDM_MAX_DIMS ? tensor->ndim : TDM_MAX_DIMS};
    for (int d = 0; d < found.ndim; d++) {
        found.dim[d] = tensor->dim[d];
        same = same && d < shape->ndim && shape->dim[d] == tensor->dim[d];
    }
    if (!same) {
        char want[64], got[64];
        tdm__shape_print(want, sizeof(want), shape);
        tdm__shape_print(got, sizeof(got), &found);
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' has shape %s, in the file %s", name, want[0] ? want : "scalar",
                 got[0] ? got : "scalar");
    }
    TDM_TRY(tdm__tensor_file_read(file, tensor, to));
    size_t count = dtype == TDM_ST_F32 ? tensor->bytes / sizeof(float) : 0;
    size_t bad = tdm__first_not_finite(TDM_F32_BITS, to, count);
    if (bad < count)
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' of the file is not finite (element %zu is infinite or NaN)", name, bad);
    return TDM_OK;
}

static bool is_ours(const tdm_plan *plan, const char *name) {
    for (int i = 0; i < plan->param_count; i++) {
        if (strcmp(plan->params[i].name, name) == 0) return true;
    }
    for (int i = 0; i < plan->buffer_count; i++) {
        if (strcmp(plan->buffers[i].name, name) == 0) return true;
    }
    return false;
}

tdm_status tdm__weights_load(tdm_replica *replica, const tdm_tensor_file *file) {
    const tdm_plan *plan = replica->plan;
    for (int i = 0; i < tdm__tensor_file_count(file); i++) {
        const char *name = tdm__tensor_file_get(file, i)->name;
        if (!is_ours(plan, name)) TDM_FAIL(TDM_E_CHECKPOINT, "this model has no tensor '%s', which the file has", name);
    }
    void *params = NULL, *buffers = NULL;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_PARAM, &params));
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers));
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        TDM_TRY(load_one(file, param->name, &param->def.shape, TDM_ST_F32, (float *)params + param->offset, "F32"));
    }
    for (int i = 0; i < plan->buffer_count; i++) {
        const tdm_plan_buffer *buffer = &plan->buffers[i];
        bool counter = buffer->def.is_counter;
        TDM_TRY(load_one(file, buffer->name, &buffer->def.shape, counter ? TDM_ST_I64 : TDM_ST_F32,
                         (char *)buffers + buffer->offset, counter ? "I64" : "F32"));
    }
    TDM_TRY(tdm__replica_put(replica, TDM_ARENA_PARAM));
    return tdm__replica_put(replica, TDM_ARENA_BUFFER);
}

/* ---- hash ---- */

static int by_name(const void *a, const void *b, void *user) {
    const tdm_plan *plan = user;
    return strcmp(plan->params[*(const int *)a].name, plan->params[*(const int *)b].name);
}

tdm_status tdm__params_hash(tdm_replica *replica, tdm_hash128 *out) {
    const tdm_plan *plan = replica->plan;
    void *params = NULL;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_PARAM, &params));
    int *order = NULL;
    TDM_TRY(tdm__new(replica->host, &order, (size_t)plan->param_count, sizeof(int), "names"));
    for (int i = 0; i < plan->param_count; i++) order[i] = i;
    qsort_r(order, (size_t)plan->param_count, sizeof(int), by_name, (void *)(uintptr_t)plan);
    tdm_hasher *hasher = NULL;
    tdm_status status = tdm__hash_open(&hasher, replica->host);
    for (int i = 0; i < plan->param_count && status == TDM_OK; i++) {
        const tdm_plan_param *param = &plan->params[order[i]];
        tdm__hash_add(hasher, (const float *)params + param->offset, (size_t)param->count * sizeof(float));
    }
    if (status == TDM_OK) {
        *out = tdm__hash_value(hasher);
        tdm__hash_close(hasher);
    }
    tdm__delete(replica->host, order);
    return status;
}
