/* One step for the matrices of a bucket, on every rank:
 *
 *   M += error                what the steps before have kept back (error_feedback)
 *   orthogonalize Q           that of the step before (warm_start), or a drawn one
 *   P = M Q                   summed over ranks, and orthogonalized
 *   Q = M' P                  summed over ranks
 *   gradient = P Q'           the approximation of the sum of all M
 *   error = M - gradient / W
 *
 * These are PyTorch's formulas for sums: its hook divides Q by W, because its gradients are to be averaged, and
 * tandem's are parts of a sum already. Each matrix is approximated by itself, so buckets change no bit. */
#include "modes/compress/powersgd.h"

#include <string.h>

#include "modes/compress/powersgd_matrix.h"
#include "runtime/base/memory.h"
#include "runtime/base/random/rng.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

/* ---- what is compressed ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

tdm_power_matrix tdm__power_matrix(const tdm_plan *plan, const tdm_compress_section *settings, int param) {
    const tdm_plan_param *of = &plan->params[param];
    tdm_power_matrix m = {.param = param, .rows = (size_t)of->def.shape.dim[0]};
    m.plain = (size_t)of->count / m.rows;
    m.columns = (size_t)of->stored / m.rows;
    const size_t rank = least((size_t)settings->rank, least(m.rows, m.plain));
    const double factors = (double)(m.rows + m.plain) * (double)rank;
    if (of->def.shape.ndim > 1 && factors * settings->min_rate < (double)m.rows * (double)m.plain) m.rank = rank;
    return m;
}

size_t tdm__powersgd_floats(const tdm_plan *plan, const tdm_compress_section *settings, int stage) {
    size_t floats = 0;
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_power_matrix m = tdm__power_matrix(plan, settings, i);
        if (plan->nodes[plan->params[i].node].stage != stage) continue;
        floats += m.rank > 0 ? (m.rows + m.columns) * m.rank : (size_t)plan->params[i].stored;
    }
    return floats;
}

size_t tdm__powersgd_bytes(const tdm_plan *plan, const tdm_compress_section *settings, int stage) {
    return (plan->stages[stage].trained_floats + tdm__plan_floats(tdm__powersgd_floats(plan, settings, stage))) *
           sizeof(float);
}

/* ---- opening ---- */

/* Lays out `wire`: of each bucket what is summed as it is, then its factors. */
static void lay_out(tdm_powersgd *power) {
    const tdm_plan *plan = power->params->plan;
    for (int b = 0; b < plan->bucket_count; b++) {
        const tdm_plan_bucket *range = &plan->buckets[b];
        tdm_power_bucket *bucket = &power->bucket[b];
        tdm_power_matrix *first = &power->matrix[range->first_param], *end = first + range->param_count;
        for (tdm_power_matrix *m = first; m < end; m++) {
            m->at = plan->params[m->param].offset - range->offset;
            m->sum = bucket->sum_count, m->p = bucket->p_count, m->q = bucket->q_count;
            bucket->sum_count += m->rank > 0 ? 0 : (size_t)plan->params[m->param].stored;
            bucket->p_count += m->rows * m->rank;
            bucket->q_count += m->columns * m->rank;
        }
        bucket->sum = power->wire_floats;
        bucket->p = bucket->sum + bucket->sum_count;
        bucket->q = bucket->p + bucket->p_count;
        power->wire_floats = bucket->q + bucket->q_count;
        for (tdm_power_matrix *m = first; m < end; m++) m->sum += bucket->sum, m->p += bucket->p, m->q += bucket->q;
    }
}

tdm_status tdm__power_new(tdm_powersgd **out, const tdm_mode_params *params, int count) {
    const tdm_plan *plan = params->plan;
    TDM_TRY(tdm__new(params->host, out, 1, sizeof(**out), "PowerSGD"));
    tdm_powersgd *power = *out;
    *power = (tdm_powersgd){.params = params, .settings = &params->job->parallel.ddp.compress, .count = count};
    TDM_TRY(tdm__new(params->host, &power->matrix, (size_t)plan->trained_count, sizeof(*power->matrix), "matrices"));
    TDM_TRY(tdm__new(params->host, &power->bucket, (size_t)plan->bucket_count, sizeof(*power->bucket), "buckets"));
    TDM_TRY(tdm__new(params->host, &power->member, (size_t)count, sizeof(*power->member), "members"));
    for (int i = 0; i < plan->trained_count; i++) power->matrix[i] = tdm__power_matrix(plan, power->settings, i);
    lay_out(power);
    return TDM_OK;
}

static size_t wire_bytes(const tdm_powersgd *power) {
    return tdm__plan_floats(power->wire_floats) * sizeof(float);
}

tdm_status tdm__power_open_member(tdm_powersgd *power, int index, float *wire) {
    const tdm_mode_params *params = power->params;
    tdm_power_member *member = &power->member[index];
    void *own = wire, *kept = NULL;
    if (wire == NULL) TDM_TRY(tdm__new_pages(params->host, &own, wire_bytes(power), "factors of gradients"));
    member->wire = own;
    TDM_TRY(tdm__new_pages(params->host, &kept, params->plan->trained_floats * sizeof(float),
                           "what compressed gradients keep back"));
    member->kept = kept;
    return TDM_OK;
}

tdm_status tdm__powersgd_open(tdm_powersgd **out, const tdm_mode_params *params) {
    void *wire = NULL;
    TDM_TRY(tdm__power_new(out, params, 1));
    if (params->comm->ops->allocate != NULL) TDM_TRY(tdm__comm_allocate(params->comm, wire_bytes(*out), &wire));
    (*out)->lends_wire = wire != NULL;
    return tdm__power_open_member(*out, 0, wire);
}

void tdm__powersgd_close(tdm_powersgd *power) {
    if (power == NULL) return;
    const tdm_host *host = power->params->host;
    for (int i = 0; power->member != NULL && i < power->count; i++) {
        if (!power->lends_wire) tdm__delete_pages(host, power->member[i].wire);
        tdm__delete_pages(host, power->member[i].kept);
        tdm__delete_pages(host, power->member[i].grad);
    }
    tdm__delete_pages(host, power->gathered);
    tdm__delete(host, power->member);
    tdm__delete(host, power->matrix);
    tdm__delete(host, power->bucket);
    tdm__delete(host, power);
}

/* ---- a step ---- */

bool tdm__powersgd_is_on(const tdm_powersgd *power, int64_t step) {
    return power != NULL && step > power->settings->start_step;
}

/* Normal numbers, by a seed of the parameter's own; the same on every rank, and in the order of PyTorch's columns. */
static void draw(tdm_powersgd *power, const tdm_power_matrix *m, int64_t step) {
    const tdm_plan_param *param = &power->params->plan->params[m->param];
    const int64_t again = power->settings->warm_start ? 0 : step * 65536;
    const tdm_param_form *f = &param->form;
    float *q = power->member->wire + m->q;
    tdm_rng rng;
    tdm__rng_seed(&rng, (uint64_t)(power->settings->seed + param->graph_param + again),
                  power->params->job->rng_profile);
    memset(q, 0, m->columns * m->rank * sizeof(*q));
    for (size_t j = 0; j < m->plain; j++) {
        size_t at = j;
        if (f->filled > 0) at = (j % (size_t)f->b) * (size_t)f->filled + j / (size_t)f->b;
        for (size_t k = 0; k < m->rank; k++) tdm__rng_normal(&rng, &q[k * m->columns + at], 1, 0, 1);
    }
}

typedef struct matrices {
    const tdm_power_matrix *first, *end;
} matrices;

static matrices matrices_of(const tdm_powersgd *power, int bucket) {
    const tdm_plan_bucket *range = &power->params->plan->buckets[bucket];
    const tdm_power_matrix *first = &power->matrix[range->first_param];
    return (matrices){first, first + range->param_count};
}

void tdm__power_draw(tdm_powersgd *power, int bucket, int64_t step) {
    const matrices all = matrices_of(power, bucket);
    for (const tdm_power_matrix *m = all.first; m < all.end; m++) {
        if (m->rank == 0) continue;
        if (!power->is_warm || !power->settings->warm_start) draw(power, m, step);
        tdm__power_orthogonalize(power->member->wire + m->q, m->columns, m->rank);
    }
}

/* x + -0 is x for every x. */
static void add_or_copy(float *to, const float *grad, size_t count, bool adds) {
    for (size_t i = 0; i < count; i++) {
        const float g = grad != NULL ? grad[i] : -0.0f;
        to[i] = adds ? to[i] + g : g;
    }
}

void tdm__power_take(tdm_powersgd *power, tdm_power_member *member, int bucket, const float *grad) {
    const matrices all = matrices_of(power, bucket);
    for (const tdm_power_matrix *m = all.first; m < all.end; m++) {
        const tdm_plan_param *param = &power->params->plan->params[m->param];
        const float *g = grad != NULL ? grad + m->at : NULL;
        float *kept = member->kept + param->offset;
        if (m->rank == 0) {
            add_or_copy(member->wire + m->sum, g, (size_t)param->stored, false);
            continue;
        }
        add_or_copy(kept, g, (size_t)param->stored, power->settings->error_feedback);
        tdm__power_left(member->wire + m->p, kept, power->member->wire + m->q, m->rows, m->columns, m->rank);
    }
}

void tdm__power_turn(tdm_powersgd *power, int bucket) {
    const matrices all = matrices_of(power, bucket);
    for (const tdm_power_matrix *m = all.first; m < all.end; m++)
        if (m->rank > 0) tdm__power_orthogonalize(power->member->wire + m->p, m->rows, m->rank);
}

void tdm__power_approximate(tdm_powersgd *power, tdm_power_member *member, int bucket) {
    const matrices all = matrices_of(power, bucket);
    for (const tdm_power_matrix *m = all.first; m < all.end; m++) {
        const float *kept = member->kept + power->params->plan->params[m->param].offset;
        if (m->rank == 0) continue;
        tdm__power_right(member->wire + m->q, kept, power->member->wire + m->p, m->rows, m->columns, m->rank);
    }
}

void tdm__power_give(tdm_powersgd *power, tdm_power_member *member, int bucket, float *grad) {
    const float share = 1.0f / (float)power->params->replicas, *wire = power->member->wire;
    const matrices all = matrices_of(power, bucket);
    for (const tdm_power_matrix *m = all.first; m < all.end; m++) {
        const tdm_plan_param *param = &power->params->plan->params[m->param];
        float *g = grad + m->at, *kept = member->kept + param->offset;
        if (m->rank == 0) {
            memcpy(g, wire + m->sum, (size_t)param->stored * sizeof(*g));
            continue;
        }
        tdm__power_product(g, wire + m->p, wire + m->q, m->rows, m->columns, m->rank);
        for (int64_t i = 0; power->settings->error_feedback && i < param->stored; i++) kept[i] -= share * g[i];
    }
}

/* ---- a rank ---- */

static tdm_status sum(const tdm_powersgd *power, float *at, size_t count) {
    if (count == 0) return TDM_OK;
    return tdm_comm_all_reduce(power->params->comm, (tdm_span){at, count, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
}

tdm_status tdm__powersgd_reduce(tdm_powersgd *power, float *grad, int index, int64_t step) {
    const tdm_power_bucket *bucket = &power->bucket[index];
    tdm_power_member *own = power->member;
    if (!tdm__powersgd_is_on(power, step)) return sum(power, grad, power->params->plan->buckets[index].count);
    tdm__power_draw(power, index, step);
    tdm__power_take(power, own, index, grad);
    TDM_TRY(sum(power, own->wire + bucket->sum, bucket->sum_count + bucket->p_count));
    tdm__power_turn(power, index);
    tdm__power_approximate(power, own, index);
    TDM_TRY(sum(power, own->wire + bucket->q, bucket->q_count));
    tdm__power_give(power, own, index, grad);
    /* Buckets come in the order of their numbers. */
    if (index == power->params->plan->bucket_count - 1) power->is_warm = true;
    return TDM_OK;
}
