/* Arenas in host memory, for every device: parameters in PyTorch's layouts, outputs as floats. Only here is the plan's
 * own order of parameters undone. */
#include <string.h>

#include "runtime/base/bf16.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/replica.h"

tdm_status tdm__replica_allocate(tdm_replica *replica, size_t bytes, void *out, const char *what) {
    void *memory = NULL;
    TDM_TRY(replica->device->ops->allocate(replica->device, &memory, bytes, what));
    memcpy(out, &memory, sizeof(memory)); /* any T *: they have one representation on the platforms tandem runs on */
    replica->memory_bytes += bytes;
    return TDM_OK;
}

void *tdm__replica_arena(const tdm_replica *replica, tdm_arena_kind kind, size_t *bytes) {
    const size_t floats = replica->plan->param_floats * sizeof(float);
    const size_t trained = replica->plan->trained_floats * sizeof(float);
    const struct {
        void *memory;
        size_t bytes;
    } arenas[TDM_ARENA_COUNT] = {
        [TDM_ARENA_PARAM] = {replica->param, floats},
        [TDM_ARENA_GRAD] = {replica->grad, trained},
        [TDM_ARENA_STATE] = {replica->state, trained * (size_t)replica->state_count},
        [TDM_ARENA_BUFFER] = {replica->buffer, replica->plan->buffer_bytes},
        [TDM_ARENA_AVERAGE] = {replica->average, replica->average != NULL ? floats : 0},
    };
    *bytes = arenas[kind].bytes;
    return arenas[kind].memory;
}

/* One parameter from the arena's form to PyTorch's, or back; what is beside the channels stays 0. */
static void change_form(const tdm_plan_param *param, const float *from, float *to, bool to_plain) {
    const tdm_param_form *f = &param->form;
    if (f->filled == 0) {
        memcpy(to, from, (size_t)param->count * sizeof(float));
        return;
    }
    for (int64_t o = 0; o < f->outer; o++) {
        for (int64_t a = 0; a < f->a; a++) {
            for (int64_t b = 0; b < f->b; b++) {
                int64_t plain = (o * f->a + a) * f->b + b, stored = (o * f->b + b) * f->filled + a;
                to[to_plain ? plain : stored] = from[to_plain ? stored : plain];
            }
        }
    }
}

/* All parameters of an arena; or, of gradients and state, those that are trained, in several arenas in a row. */
static void change_forms(const tdm_plan *plan, tdm_arena_kind kind, const float *from, float *to, size_t floats,
                         bool to_plain) {
    const bool all = kind == TDM_ARENA_PARAM || kind == TDM_ARENA_AVERAGE;
    memset(to, 0, floats * sizeof(float));
    for (size_t arena = 0; arena < floats; arena += all ? plan->param_floats : plan->trained_floats) {
        for (int i = 0; i < (all ? plan->param_count : plan->trained_count); i++) {
            size_t at = arena + plan->params[i].offset;
            change_form(&plan->params[i], from + at, to + at, to_plain);
        }
    }
}

static bool has_forms(const tdm_replica *replica, tdm_arena_kind kind) {
    return kind != TDM_ARENA_BUFFER && replica->plan->has_forms;
}

tdm_status tdm__replica_fetch(tdm_replica *replica, tdm_arena_kind kind, void **out) {
    tdm_device *device = replica->device;
    size_t bytes = 0;
    void *arena = tdm__replica_arena(replica, kind, &bytes), *raw = NULL;
    *out = arena;
    if (tdm__replica_lends(replica) || arena == NULL) return TDM_OK;
    if (replica->mirror.arena[kind] == NULL)
        TDM_TRY(tdm__new_pages(replica->host, &replica->mirror.arena[kind], bytes, "the host's copy of an arena"));
    *out = raw = replica->mirror.arena[kind];
    if (has_forms(replica, kind)) TDM_TRY(tdm__new_pages(replica->host, &raw, bytes, "an arena as it lies"));
    tdm_status status = device->ops->queues->copy(device, NULL, raw, arena, bytes);
    if (status == TDM_OK) status = device->ops->queues->finish(device, NULL);
    if (raw == *out) return status;
    if (status == TDM_OK) change_forms(replica->plan, kind, raw, *out, bytes / sizeof(float), true);
    tdm__delete_pages(replica->host, raw);
    return status;
}

tdm_status tdm__replica_put(tdm_replica *replica, tdm_arena_kind kind) {
    tdm_device *device = replica->device;
    size_t bytes = 0;
    void *arena = tdm__replica_arena(replica, kind, &bytes), *raw = replica->mirror.arena[kind];
    if (tdm__replica_lends(replica) && kind == TDM_ARENA_PARAM) return tdm__replica_params_changed(replica);
    if (tdm__replica_lends(replica) || arena == NULL || raw == NULL) return TDM_OK;
    if (has_forms(replica, kind)) {
        TDM_TRY(tdm__new_pages(replica->host, &raw, bytes, "an arena as it lies"));
        change_forms(replica->plan, kind, (float *)(void *)replica->mirror.arena[kind], raw, bytes / sizeof(float),
                     false);
    }
    tdm_status status = device->ops->queues->copy(device, NULL, arena, raw, bytes);
    if (status == TDM_OK && kind == TDM_ARENA_PARAM) status = tdm__replica_params_changed(replica);
    if (status == TDM_OK) status = device->ops->queues->finish(device, NULL);
    if (raw != replica->mirror.arena[kind]) tdm__delete_pages(replica->host, raw);
    return status;
}

tdm_status tdm__replica_params_changed(tdm_replica *replica) {
    tdm_device *device = replica->device;
    if (replica->param_bf16 == NULL) return TDM_OK;
    return device->ops->arenas->to_bf16(device, replica->param_bf16, replica->param, replica->plan->param_floats);
}

/* Numbers of 16 bits become floats in the same memory: from the last on, which lie furthest apart. */
static void widen(float *numbers, size_t count) {
    const uint16_t *bf16 = (const uint16_t *)(const void *)numbers;
    for (size_t i = count; i-- > 0;) {
        uint16_t bits;
        memcpy(&bits, bf16 + i, sizeof(bits));
        numbers[i] = tdm__bf16_float(bits);
    }
}

tdm_status tdm__replica_fetch_output(tdm_replica *replica, int64_t rows, const float **out) {
    tdm_device *device = replica->device;
    *out = tdm__exec_output(replica);
    size_t count = (size_t)(rows * replica->plan->output_width);
    if (tdm__plan_converts(replica->plan)) {
        TDM_TRY(device->ops->arenas->from_bf16(device, replica->mirror.output, *out, count));
        *out = replica->mirror.output;
    }
    if (tdm__replica_lends(replica)) return TDM_OK;
    TDM_TRY(
        device->ops->queues->copy(device, NULL, replica->mirror.output, *out, count * replica->plan->element_bytes));
    *out = replica->mirror.output;
    TDM_TRY(device->ops->queues->finish(device, NULL));
    if (replica->param_bf16 != NULL) widen(replica->mirror.output, count);
    return TDM_OK;
}

tdm_status tdm__mirror_open(tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    const tdm_device_ops *ops = replica->device->ops;
    void *memory = NULL;
    if (tdm__replica_lends(replica) && !tdm__plan_converts(replica->plan)) return TDM_OK;
    size_t bytes = (size_t)(plan->options.rows * plan->output_width) * sizeof(float);
    TDM_TRY(ops->allocate_host(replica->device, &memory, bytes, "fetched outputs"));
    replica->mirror.output = memory;
    if (!tdm__plan_converts(replica->plan) || !plan->options.training) return TDM_OK;
    TDM_TRY(ops->allocate_host(replica->device, &memory, bytes, "gradients of outputs"));
    replica->mirror.gradient = memory;
    return TDM_OK;
}

void tdm__mirror_close(tdm_replica *replica) {
    replica->device->ops->release_host(replica->device, replica->mirror.output);
    replica->device->ops->release_host(replica->device, replica->mirror.gradient);
    for (int i = 0; i < TDM_ARENA_COUNT; i++) tdm__delete_pages(replica->host, replica->mirror.arena[i]);
}
