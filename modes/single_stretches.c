/* single with sync_batchnorm: the parts of a batch go in stretches. Each in its turn runs until it has taken statistics
 * of its rows; when all have, each goes on with those of all. So each part needs activations, gradients and buffers of
 * its own. Statistics need no exchange: the parts share the replica's memory for them.
 *
 * With several stages each runs in its turn, too: a stage runs all parts of a micro-batch, then the next one does. So
 * stages and parts have one thread here, and only ddp keeps several stages busy. */
#include "modes/compress/compress.h"
#include "modes/single.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- memory ---- */

static single_part *part_of(const single *s, int part, int stage) {
    return &s->part[part * s->base.params.plan->stage_count + stage];
}

/* In all stages, because a stage writes into the memory of its neighbours. */
static void enter_part(const single *s, int part) {
    for (int k = 0; k < s->base.params.plan->stage_count; k++) {
        const single_part *p = part_of(s, part, k);
        tdm_replica *stage = s->replica->stages[k];
        stage->pass.activation = p->activation;
        stage->arena.buffer = p->buffer;
        stage->arena.grad = p->grad;
        stage->pass.batch_bf16 = p->batch_bf16;
    }
}

static tdm_status open_part(tdm_replica *stage, single_part *part) {
    const tdm_plan *plan = stage->plan;
    const tdm_plan_stage *of = &plan->stages[stage->stage];
    const size_t batch = (size_t)of->in_flight * (size_t)plan->options.rows * plan->input_row_bytes;
    TDM_TRY(tdm__replica_allocate(stage, tdm__stage_activation_bytes(of), &part->activation, "activations of a part"));
    TDM_TRY(tdm__replica_allocate(stage, of->buffer_bytes, &part->buffer, "buffers of a part"));
    TDM_TRY(tdm__replica_allocate(stage, of->trained_floats * sizeof(float), &part->grad, "gradients of a part"));
    if (stage->pass.batch_bf16 == NULL) return TDM_OK;
    return tdm__replica_allocate(stage, batch, &part->batch_bf16, "the batch of a part in bf16");
}

tdm_status tdm__single_open_stretches(single *s) {
    const tdm_mode_params *params = &s->base.params;
    const int stages = params->plan->stage_count;
    TDM_TRY(tdm__new(params->host, &s->part, (size_t)(params->replicas * stages), sizeof(*s->part), "parts"));
    for (int k = 0; k < stages; k++) {
        tdm_replica *stage = s->replica->stages[k];
        *part_of(s, 0, k) =
            (single_part){stage->pass.activation, stage->arena.buffer, stage->arena.grad, stage->pass.batch_bf16};
        for (int i = 1; i < params->replicas; i++) TDM_TRY(open_part(stage, part_of(s, i, k)));
    }
    return TDM_OK;
}

/* After a failure to open, stages may lack parts, the first among them. */
static void close_stage(const single *s, tdm_replica *stage) {
    tdm_device *device = stage->device;
    for (int i = 1; i < s->base.params.replicas; i++) {
        const single_part *part = part_of(s, i, stage->stage);
        device->ops->release(device, part->activation);
        device->ops->release(device, part->buffer);
        device->ops->release(device, part->grad);
        device->ops->release(device, part->batch_bf16);
    }
}

void tdm__single_close_stretches(single *s) {
    const int stages = s->base.params.plan->stage_count;
    if (s->part == NULL) return;
    if (part_of(s, 0, stages - 1)->activation != NULL) enter_part(s, 0);
    for (int k = 0; k < stages; k++) close_stage(s, s->replica->stages[k]);
    tdm__delete(s->base.params.host, s->part);
}

/* ---- a micro-batch ---- */

typedef struct micro_batch {
    const single *single;
    int parts;
    int64_t index;
    tdm_rows rows[TDM_REPLICAS_MAX]; /* where the stage that runs sees them */
} micro_batch;

/* False: no part has rows. */
static bool find_rows(micro_batch *m, int stage) {
    const tdm_mode_params *params = &m->single->base.params;
    const tdm_rows *rows = tdm__pipeline_rows(m->single->pipeline, stage);
    for (int i = 0; i < m->parts; i++)
        if (!tdm__micro_batch(params, &rows[i], params->job->train.accumulate, m->index, &m->rows[i]))
            m->rows[i].rows = 0;
    tdm__exchange_mark(m->rows, m->parts);
    return tdm__exchange_first(m->rows, m->parts) >= 0;
}

/* Goes on with one part's forward or backward: to where it stops, or to its end. */
static tdm_status go_on(const micro_batch *m, tdm_replica *stage, int part, bool forward, int *plan_step) {
    enter_part(m->single, part);
    return forward ? tdm__exec_forward(stage, &m->rows[part], m->index, plan_step)
                   : tdm__exec_backward(stage, &m->rows[part], m->index, NULL, plan_step);
}

/* All parts stop at the same plan steps. */
static tdm_status in_stretches(const micro_batch *m, tdm_replica *stage, bool forward) {
    const tdm_plan_stage *of = &stage->plan->stages[stage->stage];
    int reached = forward ? of->forward : of->backward;
    size_t bytes;
    do {
        const int begin = reached;
        for (int i = 0; i < m->parts; i++) {
            int plan_step = begin;
            if (m->rows[i].rows == 0) continue;
            TDM_TRY(go_on(m, stage, i, forward, &plan_step));
            reached = plan_step;
        }
    } while (tdm__exec_statistics(stage, reached, &bytes) != NULL);
    return TDM_OK;
}

/* What the next stage reads goes there. */
static tdm_status send(const micro_batch *m, tdm_replica *stage) {
    for (int i = 0; i < m->parts; i++) {
        if (m->rows[i].rows == 0) continue;
        enter_part(m->single, i);
        TDM_TRY(tdm__exec_send(stage, &m->rows[i], m->index));
    }
    return TDM_OK;
}

static tdm_status losses(const micro_batch *m, tdm_replica *last) {
    const single *s = m->single;
    for (int i = 0; i < m->parts; i++) {
        enter_part(s, i);
        TDM_TRY(tdm__loss_of_output(&s->base.params, last, &m->rows[i], i));
    }
    return TDM_OK;
}

/* The host waits, because the next stage's work is queued on another device. */
static tdm_status finish_stage(const tdm_replica *stage) {
    if (stage->plan->stage_count == 1) return TDM_OK;
    return stage->device->ops->queues->finish(stage->device, NULL);
}

static tdm_status pass(micro_batch *m) {
    tdm_replica *first = m->single->replica;
    const int stages = first->plan->stage_count;
    for (int k = 0; k < stages; k++) {
        tdm_replica *stage = first->stages[k];
        (void)find_rows(m, k);
        TDM_TRY(in_stretches(m, stage, true));
        TDM_TRY(send(m, stage));
        if (k + 1 < stages) TDM_TRY(finish_stage(stage));
    }
    TDM_TRY(tdm__replica_lap(first, TDM_PHASE_FORWARD));
    TDM_TRY(losses(m, first->stages[stages - 1]));
    if (stages == 1) TDM_TRY(tdm__replica_lap(first, TDM_PHASE_LOSS));
    for (int k = stages - 1; k >= 0; k--) {
        (void)find_rows(m, k);
        TDM_TRY(in_stretches(m, first->stages[k], false));
        TDM_TRY(finish_stage(first->stages[k]));
    }
    return tdm__replica_lap(first, TDM_PHASE_BACKWARD);
}

/* ---- the step ---- */

/* Every part begins with the buffers of part 0, as replicas of dp do. */
static tdm_status copy_buffers(const single *s, int stage, int parts) {
    tdm_device *device = s->replica->stages[stage]->device;
    const size_t bytes = s->base.params.plan->stages[stage].buffer_bytes;
    for (int i = 1; i < parts; i++)
        TDM_TRY(
            device->ops->queues->copy(device, NULL, part_of(s, i, stage)->buffer, part_of(s, 0, stage)->buffer, bytes));
    return TDM_OK;
}

static tdm_status add_gradients(const single_step *step, int stage) {
    const single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    const tdm_replica *replica = s->replica->stages[stage];
    const tdm_dtype type = tdm__compressed_type(params->job, params->replicas);
    const size_t floats = tdm__replica_trained(replica);
    const float *source[TDM_REPLICAS_MAX];
    float *sum = part_of(s, 0, stage)->grad;
    int count = 0;
    for (int i = 0; i < step->parts; i++) {
        if (step->rows[i].rows == 0) continue;
        float *grad = part_of(s, i, stage)->grad;
        TDM_TRY(tdm__compress_round(replica, type, grad, floats));
        source[count++] = grad;
    }
    if (count > 1 || source[0] != sum)
        TDM_TRY(replica->device->ops->arenas->sum(replica->device, sum, source, count, floats));
    return tdm__compress_round(replica, type, sum, floats);
}

tdm_status tdm__single_stretches(const single_step *step) {
    const single *s = step->single;
    const int stages = s->base.params.plan->stage_count;
    micro_batch m; /* not zeroed: it is large */
    m.single = s;
    m.parts = step->parts;
    for (int k = 0; k < stages; k++) TDM_TRY(copy_buffers(s, k, step->parts));
    for (m.index = 0; m.index < s->base.params.job->train.accumulate && find_rows(&m, 0); m.index++) TDM_TRY(pass(&m));
    for (int i = 0; step->approximates && i < step->parts; i++) {
        enter_part(s, i);
        TDM_TRY(tdm__powersgd_take(s->base.powersgd, i, step->rows[i].rows > 0 ? s->replica : NULL));
    }
    enter_part(s, 0);
    if (step->approximates) return tdm__powersgd_sum_in_turn(s->base.powersgd, s->replica);
    for (int k = 0; k < stages; k++) TDM_TRY(add_gradients(step, k));
    return TDM_OK;
}
