/* Arenas in host memory, for every device: parameters in PyTorch's layouts, outputs as floats. Only here is the plan's
 * own order of parameters undone. */
#include <string.h>

#include "runtime/base/bf16.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/replica.h"

tdm_status tdm__replica_allocate_at(tdm_replica *replica, size_t bytes, void *out, const char *what) {
    TDM_TRY(tdm__device_new_at(replica->device, replica->device->ops->allocate, out, bytes, what));
    replica->memory_bytes += bytes;
    return TDM_OK;
}

void *tdm__replica_arena(const tdm_replica *replica, tdm_arena_kind kind, size_t *bytes) {
    const size_t floats = tdm__replica_floats(replica) * sizeof(float);
    const size_t trained = tdm__replica_trained(replica) * sizeof(float);
    const struct {
        void *memory;
        size_t bytes;
    } arenas[TDM_ARENA_COUNT] = {
        [TDM_ARENA_PARAM] = {replica->arena.param, floats},
        [TDM_ARENA_GRAD] = {replica->arena.grad, trained},
        [TDM_ARENA_STATE] = {replica->arena.state, trained * (size_t)replica->arena.state_count},
        [TDM_ARENA_BUFFER] = {replica->arena.buffer, replica->plan->stages[replica->stage].buffer_bytes},
        [TDM_ARENA_AVERAGE] = {replica->arena.average, replica->arena.average != NULL ? floats : 0},
    };
    *bytes = arenas[kind].memory != NULL ? arenas[kind].bytes : 0;
    return arenas[kind].memory;
}

size_t tdm__replica_arena_bytes(const tdm_replica *replica, tdm_arena_kind kind) {
    size_t sum = 0, bytes = 0;
    for (int k = 0; k < replica->plan->stage_count; k++) {
        (void)tdm__replica_arena(replica->stages[k], kind, &bytes);
        sum += bytes;
    }
    return sum;
}

void tdm__param_change_form(const tdm_plan_param *param, const float *from, float *to, bool to_plain) {
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
            tdm__param_change_form(&plan->params[i], from + at, to + at, to_plain);
        }
    }
}

static bool has_forms(const tdm_replica *replica, tdm_arena_kind kind) {
    return kind != TDM_ARENA_BUFFER && replica->plan->has_forms;
}

/* Is the arena in one piece, which others may read and write? */
static bool is_reached(const tdm_replica *replica) {
    return tdm__replica_in_host(replica) && replica->plan->stage_count == 1;
}

/* A range of the plan's arena in that of a stage, in bytes. */
typedef struct range {
    size_t whole, own, bytes;
} range;

/* The ranges of a stage: state has one for each of the optimizer's arenas, parameters one for those that are trained
 * and one for the others. */
static int list_ranges(const tdm_replica *replica, tdm_arena_kind kind, range *out) {
    const size_t width = sizeof(float);
    const tdm_plan_stage *s = &replica->plan->stages[replica->stage];
    const bool all = kind == TDM_ARENA_PARAM || kind == TDM_ARENA_AVERAGE;
    const int arenas = kind == TDM_ARENA_STATE ? replica->arena.state_count : 1;
    int count = 0;
    if (kind == TDM_ARENA_BUFFER) {
        out[count++] = (range){s->buffer_at, 0, s->buffer_bytes};
        return count;
    }
    for (int i = 0; i < arenas; i++)
        out[count++] = (range){((size_t)i * replica->plan->trained_floats + s->trained_at) * width,
                               (size_t)i * s->trained_floats * width, s->trained_floats * width};
    if (all) out[count++] = (range){s->frozen_at * width, s->trained_floats * width, s->frozen_floats * width};
    return count;
}

/* Copies a stage's ranges of an arena into host memory, in the plan's layout, or back. */
static tdm_status copy_stage(tdm_replica *replica, tdm_arena_kind kind, char *host, bool to_host) {
    tdm_device *device = replica->device;
    range ranges[TDM_MAX_STATES + 1];
    size_t bytes = 0;
    char *arena = tdm__replica_arena(replica, kind, &bytes);
    const int count = bytes > 0 ? list_ranges(replica, kind, ranges) : 0;
    for (int i = 0; i < count; i++) {
        char *own = arena + ranges[i].own, *whole = host + ranges[i].whole;
        TDM_TRY(device->ops->queues->copy(device, NULL, to_host ? whole : own, to_host ? own : whole, ranges[i].bytes));
    }
    return TDM_OK;
}

static tdm_status copy_stages(tdm_replica *replica, tdm_arena_kind kind, char *host, bool to_host) {
    for (int k = 0; k < replica->plan->stage_count; k++) {
        tdm_replica *stage = replica->stages[k];
        TDM_TRY(copy_stage(stage, kind, host, to_host));
        if (!to_host && kind == TDM_ARENA_PARAM) TDM_TRY(tdm__replica_params_changed(stage));
        TDM_TRY(stage->device->ops->queues->finish(stage->device, NULL));
    }
    return TDM_OK;
}

tdm_status tdm__replica_fetch(tdm_replica *replica, tdm_arena_kind kind, void **out) {
    const size_t bytes = tdm__replica_arena_bytes(replica, kind);
    size_t own = 0;
    void *raw = NULL;
    *out = tdm__replica_arena(replica, kind, &own);
    if (is_reached(replica) || bytes == 0) return TDM_OK;
    if (replica->mirror.arena[kind] == NULL)
        TDM_TRY(tdm__new_pages(replica->host, &replica->mirror.arena[kind], bytes, "the host's copy of an arena"));
    *out = raw = replica->mirror.arena[kind];
    if (has_forms(replica, kind)) TDM_TRY(tdm__new_pages(replica->host, &raw, bytes, "an arena as it lies"));
    tdm_status status = copy_stages(replica, kind, raw, true);
    if (raw == *out) return status;
    if (status == TDM_OK) change_forms(replica->plan, kind, raw, *out, bytes / sizeof(float), true);
    tdm__delete_pages(replica->host, raw);
    return status;
}

tdm_status tdm__replica_put(tdm_replica *replica, tdm_arena_kind kind) {
    const size_t bytes = tdm__replica_arena_bytes(replica, kind);
    void *raw = replica->mirror.arena[kind];
    if (is_reached(replica)) return kind == TDM_ARENA_PARAM ? tdm__replica_params_changed(replica) : TDM_OK;
    if (bytes == 0 || raw == NULL) return TDM_OK;
    if (has_forms(replica, kind)) {
        TDM_TRY(tdm__new_pages(replica->host, &raw, bytes, "an arena as it lies"));
        change_forms(replica->plan, kind, (float *)(void *)replica->mirror.arena[kind], raw, bytes / sizeof(float),
                     false);
    }
    tdm_status status = copy_stages(replica, kind, raw, false);
    if (raw != replica->mirror.arena[kind]) tdm__delete_pages(replica->host, raw);
    return status;
}

tdm_status tdm__replica_params_changed(tdm_replica *replica) {
    tdm_device *device = replica->device;
    if (replica->arena.param_bf16 == NULL) return TDM_OK;
    return device->ops->arenas->to_bf16(device, replica->arena.param_bf16, replica->arena.param,
                                        tdm__replica_floats(replica));
}

/* Widens bf16 in place: the last number first, so that none is overwritten before it is read. */
static void widen(float *numbers, size_t count) {
    const uint16_t *bf16 = (const uint16_t *)(const void *)numbers;
    for (size_t i = count; i-- > 0;) {
        uint16_t bits;
        memcpy(&bits, bf16 + i, sizeof(bits));
        numbers[i] = tdm__bf16_float(bits);
    }
}

tdm_status tdm__replica_fetch_output(tdm_replica *replica, int64_t rows, const float **out) {
    replica = replica->stages[replica->plan->stage_count - 1];
    tdm_device *device = replica->device;
    const float *y = *out = tdm__exec_output(replica);
    size_t count = (size_t)(rows * replica->plan->output_width);
    if (replica->mirror.output == NULL) return TDM_OK;
    *out = replica->mirror.output;
    if (tdm__plan_converts(replica->plan))
        return device->ops->arenas->from_bf16(device, replica->mirror.output, y, count);
    TDM_TRY(device->ops->queues->copy(device, NULL, replica->mirror.output, y, count * replica->plan->element_bytes));
    TDM_TRY(device->ops->queues->finish(device, NULL));
    if (replica->arena.param_bf16 != NULL) widen(replica->mirror.output, count);
    return TDM_OK;
}

static tdm_status open_norms(tdm_replica *replica) {
    if (replica->plan->stage_count == 1) return TDM_OK;
    if (tdm__replica_in_host(replica)) {
        replica->mirror.norms = replica->norms.gradient;
        return TDM_OK;
    }
    return tdm__device_new_host(replica->device, &replica->mirror.norms,
                                (size_t)replica->norms.range_count * sizeof(float), "norms");
}

tdm_status tdm__mirror_open(tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    TDM_TRY(open_norms(replica));
    if (tdm__replica_in_host(replica) && !tdm__plan_converts(replica->plan)) return TDM_OK;
    if (replica->stage + 1 < plan->stage_count) return TDM_OK; /* the last has the outputs */
    size_t bytes = (size_t)(plan->options.rows * plan->output_width) * sizeof(float);
    TDM_TRY(tdm__device_new_host(replica->device, &replica->mirror.output, bytes, "fetched outputs"));
    if (!tdm__plan_converts(replica->plan) || !plan->options.training) return TDM_OK;
    return tdm__device_new_host(replica->device, &replica->mirror.gradient, bytes, "gradients of outputs");
}

void tdm__mirror_close(tdm_replica *replica) {
    replica->device->ops->release_host(replica->device, replica->mirror.output);
    replica->device->ops->release_host(replica->device, replica->mirror.gradient);
    if (!tdm__replica_in_host(replica)) replica->device->ops->release_host(replica->device, replica->mirror.norms);
    for (int i = 0; i < TDM_ARENA_COUNT; i++) tdm__delete_pages(replica->host, replica->mirror.arena[i]);
}
