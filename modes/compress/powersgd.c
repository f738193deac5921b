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
    const size_t error = settings->error_feedback ? plan->stages[stage].trained_floats : 0;
    return (error + tdm__plan_floats(tdm__powersgd_floats(plan, settings, stage))) * sizeof(float);
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

static tdm_status open_memory(tdm_powersgd *power) {
    const tdm_mode_params *params = power->params;
    const size_t bytes = tdm__plan_floats(power->wire_floats) * sizeof(float);
    void *wire = NULL, *error = NULL;
    power->owns_wire = params->comm->ops->allocate == NULL;
    if (power->owns_wire)
        TDM_TRY(tdm__new_pages(params->host, &wire, bytes, "factors of gradients"));
    else
        TDM_TRY(tdm__comm_allocate(params->comm, bytes, &wire));
    power->wire = wire;
    if (power->settings->error_feedback)
        TDM_TRY(tdm__new_pages(params->host, &error, params->plan->trained_floats * sizeof(float),
                               "what compressed gradients keep back"));
    power->error = error;
    return TDM_OK;
}

tdm_status tdm__powersgd_open(tdm_powersgd **out, const tdm_mode_params *params) {
    const tdm_plan *plan = params->plan;
    TDM_TRY(tdm__new(params->host, out, 1, sizeof(**out), "PowerSGD"));
    tdm_powersgd *power = *out;
    *power = (tdm_powersgd){.params = params, .settings = &params->job->parallel.ddp.compress};
    TDM_TRY(tdm__new(params->host, &power->matrix, (size_t)plan->trained_count, sizeof(*power->matrix), "matrices"));
    TDM_TRY(tdm__new(params->host, &power->bucket, (size_t)plan->bucket_count, sizeof(*power->bucket), "buckets"));
    for (int i = 0; i < plan->trained_count; i++) power->matrix[i] = tdm__power_matrix(plan, power->settings, i);
    lay_out(power);
    return open_memory(power);
}

void tdm__powersgd_close(tdm_powersgd *power) {
    if (power == NULL) return;
    const tdm_host *host = power->params->host;
    if (power->owns_wire) tdm__delete_pages(host, power->wire);
    tdm__delete_pages(host, power->error);
    tdm__delete_pages(host, power->all);
    tdm__delete(host, power->matrix);
    tdm__delete(host, power->bucket);
    tdm__delete(host, power);
}

/* ---- a step ---- */

/* Normal numbers, by a seed of the parameter's own; the same on every rank, and in the order of PyTorch's columns. */
static void draw(tdm_powersgd *power, const tdm_power_matrix *m, int64_t step) {
    const tdm_plan_param *param = &power->params->plan->params[m->param];
    const int64_t again = power->settings->warm_start ? 0 : step * 65536;
    const tdm_param_form *f = &param->form;
    float *q = power->wire + m->q;
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

/* P of a matrix, or the matrix itself. */
static void begin_one(tdm_powersgd *power, float *grad, const tdm_power_matrix *m, int64_t step) {
    const tdm_plan_param *param = &power->params->plan->params[m->param];
    float *g = grad + m->at, *q = power->wire + m->q;
    if (m->rank == 0) {
        memcpy(power->wire + m->sum, g, (size_t)param->stored * sizeof(*g));
        return;
    }
    if (power->error != NULL) {
        float *error = power->error + param->offset;
        for (int64_t i = 0; i < param->stored; i++) error[i] = g[i] += error[i];
    }
    if (!power->is_warm || !power->settings->warm_start) draw(power, m, step);
    tdm__power_orthogonalize(q, m->columns, m->rank);
    tdm__power_left(power->wire + m->p, g, q, m->rows, m->columns, m->rank);
}

static void approximate(tdm_powersgd *power, float *grad, const tdm_power_matrix *m) {
    float *p = power->wire + m->p;
    if (m->rank == 0) return;
    tdm__power_orthogonalize(p, m->rows, m->rank);
    tdm__power_right(power->wire + m->q, grad + m->at, p, m->rows, m->columns, m->rank);
}

static void end_one(tdm_powersgd *power, float *grad, const tdm_power_matrix *m) {
    const tdm_plan_param *param = &power->params->plan->params[m->param];
    const float share = 1.0f / (float)power->params->comm->world;
    float *g = grad + m->at;
    if (m->rank == 0) {
        memcpy(g, power->wire + m->sum, (size_t)param->stored * sizeof(*g));
        return;
    }
    tdm__power_product(g, power->wire + m->p, power->wire + m->q, m->rows, m->columns, m->rank);
    if (power->error == NULL) return;
    float *error = power->error + param->offset;
    for (int64_t i = 0; i < param->stored; i++) error[i] -= share * g[i];
}

static tdm_status sum(tdm_powersgd *power, size_t at, size_t count) {
    if (count == 0) return TDM_OK;
    return tdm_comm_all_reduce(power->params->comm, (tdm_span){power->wire + at, count, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
}

tdm_status tdm__powersgd_reduce(tdm_powersgd *power, float *grad, int index, int64_t step) {
    const tdm_plan *plan = power->params->plan;
    const tdm_plan_bucket *range = &plan->buckets[index];
    const tdm_power_bucket *bucket = &power->bucket[index];
    const tdm_power_matrix *first = &power->matrix[range->first_param], *end = first + range->param_count;
    if (step <= power->settings->start_step)
        return tdm_comm_all_reduce(power->params->comm, (tdm_span){grad, range->count, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
    for (const tdm_power_matrix *m = first; m < end; m++) begin_one(power, grad, m, step);
    TDM_TRY(sum(power, bucket->sum, bucket->sum_count + bucket->p_count));
    for (const tdm_power_matrix *m = first; m < end; m++) approximate(power, grad, m);
    TDM_TRY(sum(power, bucket->q, bucket->q_count));
    for (const tdm_power_matrix *m = first; m < end; m++) end_one(power, grad, m);
    if (index == plan->bucket_count - 1) power->is_warm = true; /* buckets come in the order of their numbers */
    return TDM_OK;
}
