/* Initial weights, the same bits as PyTorch's; weights from files; the hash of all weights. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

static void init_tensor(float *to, const tdm_param_def *def, int64_t count, tdm_rng *rng) {
    double bound;
    switch (def->init) {
    case TDM_INIT_UNIFORM_FAN_IN:
        bound = 1.0 / sqrt((double)def->fan_in);
        tdm__rng_uniform(rng, to, (size_t)count, -bound, bound);
        break;
    case TDM_INIT_ZEROS:
    case TDM_INIT_ONES:
        for (int64_t i = 0; i < count; i++) to[i] = def->init == TDM_INIT_ONES ? 1.0f : 0.0f;
        break;
    }
}

tdm_status tdm__weights_init(tdm_run *run) {
    tdm_replica *replica = run->mode->replica[0];
    const tdm_plan *plan = run->plan;
    void *params = NULL, *buffers = NULL;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_PARAM, &params));
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers));
    tdm_rng *rng = NULL;
    TDM_TRY(tdm__new(run->host, &rng, 1, sizeof(*rng), "generator"));
    tdm__rng_seed(rng, (uint64_t)run->job->seed, (tdm_rng_profile)run->job->rng_profile);
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        init_tensor((float *)params + param->offset, &param->def, param->count, rng);
    }
    tdm__delete(run->host, rng);
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

/* ---- from a file ---- */

static bool is_ours(const tdm_run *run, const char *name) {
    for (int i = 0; i < run->model_tensors; i++) {
        if (strcmp(run->tensors[i].name, name) == 0) return true;
    }
    return false;
}

tdm_status tdm__weights_load(tdm_run *run, const tdm_tensor_file *file) {
    for (int i = 0; i < tdm__tensor_file_count(file); i++) {
        const char *name = tdm__tensor_file_get(file, i)->name;
        if (!is_ours(run, name)) TDM_FAIL(TDM_E_CHECKPOINT, "this model has no tensor '%s', which the file has", name);
    }
    return tdm__tensors_load(run, file, 0, run->model_tensors);
}

/* ---- hash ---- */

tdm_status tdm__params_hash(tdm_run *run, tdm_hash128 *out) {
    void *params = NULL;
    tdm_hasher *hasher;
    TDM_TRY(tdm__replica_fetch(run->mode->replica[0], TDM_ARENA_PARAM, &params));
    TDM_TRY(tdm__hash_open(&hasher, run->host));
    for (int i = 0; i < run->plan->param_count; i++) {
        const tdm_named *named = run->params_by_name[i];
        tdm__hash_add(hasher, (const char *)params + named->offset, named->bytes);
    }
    *out = tdm__hash_value(hasher);
    tdm__hash_close(hasher);
    return TDM_OK;
}
