/* Initial weights, the same bits as PyTorch's; weights from files; the hash of all weights. */
#include <math.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/weights/weights.h"

static void init_tensor(float *to, const tdm_param_def *def, tdm_init_kind kind, int64_t count, tdm_rng *rng) {
    double bound;
    switch (kind) {
    case TDM_INIT_UNIFORM_FAN_IN:
        bound = 1.0 / sqrt((double)def->fan_in);
        tdm__rng_uniform(rng, to, (size_t)count, -bound, bound);
        break;
    case TDM_INIT_ZEROS:
    case TDM_INIT_ONES:
        for (int64_t i = 0; i < count; i++) to[i] = kind == TDM_INIT_ONES ? 1.0f : 0.0f;
        break;
    case TDM_INIT_NORMAL:
        tdm__rng_normal(rng, to, (size_t)count, 0.0, def->std);
        break;
    }
    if (!def->has_zero_row) return;
    const int64_t width = count / def->shape.dim[0];
    for (int64_t i = 0; i < width; i++) to[def->zero_row * width + i] = 0.0f;
}

tdm_status tdm__weights_init(tdm_run *run) {
    tdm_replica *replica = run->mode->replica[0];
    const tdm_plan *plan = run->plan;
    void *params = NULL, *buffers = NULL;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_PARAM, &params));
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers));
    tdm_rng *rng = NULL;
    TDM_TRY(tdm__new(run->host, &rng, 1, sizeof(*rng), "generator"));
    tdm__rng_seed(rng, (uint64_t)run->job->seed, run->job->rng_profile);
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        init_tensor((float *)params + param->offset, &param->def, param->def.init, param->count, rng);
    }
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        if (!param->def.is_set_again) continue;
        init_tensor((float *)params + param->offset, &param->def, param->def.again, param->count, rng);
    }
    tdm__delete(run->host, rng);
    for (int i = 0; i < plan->buffer_count; i++) {
        const tdm_plan_buffer *buffer = &plan->buffers[i];
        char *to = (char *)buffers + buffer->offset;
        if (buffer->def.is_counter)
            memset(to, 0, sizeof(int64_t));
        else
            init_tensor((float *)(void *)to, &buffer->def, buffer->def.init, buffer->count, NULL);
    }
    TDM_TRY(tdm__replica_put(replica, TDM_ARENA_PARAM));
    return tdm__replica_put(replica, TDM_ARENA_BUFFER);
}

/* ---- from a file ---- */

static tdm_status load(tdm_run *run, const tdm_tensor_file *file, const tdm_weights_match *match) {
    tdm_replica *root = run->mode->replica[0];
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    for (int i = 0; i < match->count; i++) {
        char *to;
        if (match->outcome[i] != TDM_WEIGHTS_LOADED) continue;
        TDM_TRY(tdm__tensor_at(root, &run->tensors[i], arenas, &to));
        TDM_TRY(tdm__weights_read(run, file, match->of[i], &run->tensors[i], to));
    }
    for (int kind = 0; kind < TDM_ARENA_COUNT; kind++) {
        if (arenas[kind] != NULL) TDM_TRY(tdm__replica_put(root, (tdm_arena_kind)kind));
    }
    return TDM_OK;
}

static tdm_status report(tdm_run *run, const tdm_weights_match *match) {
    tdm_text line, json;
    tdm__text_init(&line, run->host);
    tdm__text_init(&json, run->host);
    tdm__weights_print(match, &line);
    tdm__weights_print_json(run, match, &json);
    const bool failed = line.failed || json.failed;
    if (!failed && match->total[TDM_WEIGHTS_LOADED] < match->count)
        TDM_WARN(run->host, "weights", "%s: %s", run->job->weights, line.data);
    tdm_status status = failed ? TDM_OK : tdm__zone_text(&run->zone, &run->weights_report, json.data);
    tdm__text_deinit(&line);
    tdm__text_deinit(&json);
    if (failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while reporting the weights");
    return status;
}

tdm_status tdm__weights_load(tdm_run *run, const tdm_tensor_file *file) {
    static const tdm_weights_section whole = {.strict = true};
    tdm_weights_match match;
    TDM_TRY(tdm__weights_match(run, file, &whole, &match));
    TDM_TRY(tdm__weights_check(run, &match));
    return load(run, file, &match);
}

tdm_status tdm__weights_start(tdm_run *run, const tdm_tensor_file *file) {
    tdm_weights_match match;
    TDM_TRY(tdm__weights_match(run, file, &run->job->match, &match));
    const tdm_status status = tdm__weights_check(run, &match);
    if (status == TDM_E_CHECKPOINT)
        TDM_FAIL(status,
                 "%s; weights fit only the model that they were trained with, which config.resolved.yaml in the run "
                 "directory describes%s",
                 tdm_error_message(), run->job->match.strict ? "; model.strict: false loads the tensors that fit" : "");
    TDM_TRY(status);
    TDM_TRY(load(run, file, &match));
    return report(run, &match);
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
