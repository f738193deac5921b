/* single with sync_batchnorm: the parts of a batch go in stretches. Each in its turn runs until it has taken statistics
 * of its rows; when all have, each goes on with those of all. So each part needs activations, gradients and buffers of
 * its own. Statistics need no exchange: the parts share the replica's memory for them. */
#include "modes/compress/compress.h"
#include "modes/single.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- memory ---- */

static void enter_part(single *s, int part) {
    const single_part *p = &s->part[part];
    s->replica->activation = p->activation;
    s->replica->buffer = p->buffer;
    s->replica->grad = p->grad;
    s->replica->batch_bf16 = p->batch_bf16;
}

static tdm_status open_part(single *s, single_part *part) {
    const tdm_plan *plan = s->base.params.plan;
    tdm_replica *replica = s->replica;
    TDM_TRY(tdm__replica_allocate(replica, plan->activation_bytes, &part->activation, "activations of a part"));
    TDM_TRY(tdm__replica_allocate(replica, plan->buffer_bytes, &part->buffer, "buffers of a part"));
    TDM_TRY(tdm__replica_allocate(replica, plan->trained_floats * sizeof(float), &part->grad, "gradients of a part"));
    if (replica->batch_bf16 == NULL) return TDM_OK;
    return tdm__replica_allocate(replica, (size_t)plan->options.rows * plan->input_row_bytes, &part->batch_bf16,
                                 "the batch of a part in bf16");
}

tdm_status tdm__single_open_stretches(single *s) {
    const tdm_mode_params *params = &s->base.params;
    const tdm_replica *replica = s->replica;
    TDM_TRY(tdm__new(params->host, &s->part, (size_t)params->replicas, sizeof(*s->part), "parts"));
    s->part[0] = (single_part){replica->activation, replica->buffer, replica->grad, replica->batch_bf16};
    for (int i = 1; i < params->replicas; i++) TDM_TRY(open_part(s, &s->part[i]));
    return TDM_OK;
}

void tdm__single_close_stretches(single *s) {
    tdm_device *device = s->replica->device;
    if (s->part == NULL) return;
    enter_part(s, 0);
    for (int i = 1; i < s->base.params.replicas; i++) {
        device->ops->release(device, s->part[i].activation);
        device->ops->release(device, s->part[i].buffer);
        device->ops->release(device, s->part[i].grad);
        device->ops->release(device, s->part[i].batch_bf16);
    }
    tdm__delete(s->base.params.host, s->part);
}

/* ---- a micro-batch ---- */

typedef struct micro_batch {
    single *single;
    int parts;
    bool first;
    tdm_rows rows[TDM_REPLICAS_MAX];
} micro_batch;

/* Goes on with one part's forward or backward: to where it stops, or to its end. */
static tdm_status go_on(const micro_batch *m, int part, bool forward, int *plan_step) {
    tdm_replica *replica = m->single->replica;
    enter_part(m->single, part);
    return forward ? tdm__exec_forward(replica, &m->rows[part], plan_step)
                   : tdm__exec_backward(replica, &m->rows[part], m->first, NULL, plan_step);
}

/* All parts stop at the same places. */
static tdm_status in_stretches(const micro_batch *m, bool forward) {
    const tdm_replica *replica = m->single->replica;
    int reached = forward ? 0 : replica->plan->forward_steps;
    size_t bytes;
    do {
        const int begin = reached;
        for (int i = 0; i < m->parts; i++) {
            int plan_step = begin;
            if (m->rows[i].rows == 0) continue;
            TDM_TRY(go_on(m, i, forward, &plan_step));
            reached = plan_step;
        }
    } while (tdm__exec_statistics(replica, reached, &bytes) != NULL);
    return TDM_OK;
}

static tdm_status losses(const micro_batch *m) {
    single *s = m->single;
    for (int i = 0; i < m->parts; i++) {
        if (m->rows[i].rows == 0) continue;
        enter_part(s, i);
        TDM_TRY(tdm__loss(&s->base.params, s->replica, tdm__exec_output(s->replica), &m->rows[i],
                          tdm__exec_output_gradient(s->replica), i));
    }
    return TDM_OK;
}

static tdm_status pass(const micro_batch *m) {
    tdm_replica *replica = m->single->replica;
    TDM_TRY(in_stretches(m, true));
    TDM_TRY(tdm__replica_lap(replica, TDM_PHASE_FORWARD));
    TDM_TRY(losses(m));
    TDM_TRY(tdm__replica_lap(replica, TDM_PHASE_LOSS));
    TDM_TRY(in_stretches(m, false));
    return tdm__replica_lap(replica, TDM_PHASE_BACKWARD);
}

/* ---- the step ---- */

/* Every part begins with the buffers of part 0, as replicas of dp do. */
static tdm_status copy_buffers(single *s, int parts) {
    const tdm_queue_ops *queues = s->replica->device->ops->queues;
    for (int i = 1; i < parts; i++)
        TDM_TRY(queues->copy(s->replica->device, NULL, s->part[i].buffer, s->part[0].buffer,
                             s->base.params.plan->buffer_bytes));
    return TDM_OK;
}

static tdm_status add_gradients(const single_step *step) {
    const single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    const tdm_dtype type = tdm__compressed_type(params->job, params->replicas);
    const size_t floats = params->plan->trained_floats;
    const float *source[TDM_REPLICAS_MAX];
    int count = 0;
    for (int i = 0; i < step->parts; i++) {
        if (step->rows[i].rows == 0) continue;
        TDM_TRY(tdm__compress_round(s->replica, type, s->part[i].grad, floats));
        source[count++] = s->part[i].grad;
    }
    if (count > 1 || source[0] != s->part[0].grad)
        TDM_TRY(s->replica->device->ops->arenas->sum(s->replica->device, s->part[0].grad, source, count, floats));
    return tdm__compress_round(s->replica, type, s->part[0].grad, floats);
}

tdm_status tdm__single_stretches(const single_step *step) {
    single *s = step->single;
    const tdm_mode_params *params = &s->base.params;
    micro_batch m; /* not zeroed: it is large */
    m.single = s;
    m.parts = step->parts;
    TDM_TRY(copy_buffers(s, step->parts));
    for (int64_t k = 0; k < params->job->train.accumulate; k++) {
        m.first = k == 0;
        for (int i = 0; i < step->parts; i++) {
            if (!tdm__micro_batch(params, &step->rows[i], params->job->train.accumulate, k, &m.rows[i]))
                m.rows[i].rows = 0;
        }
        tdm__exchange_mark(m.rows, m.parts);
        if (tdm__exchange_first(m.rows, m.parts) < 0) break;
        TDM_TRY(pass(&m));
    }
    enter_part(s, 0);
    return add_gradients(step);
}
