/* What a resumed run needs to go on with the same bits: what each rank has kept back, and the factors Q. Rank 0 holds
 * all of it in `all` while a checkpoint is written or read: the errors of rank 0, 1, ..., each as an arena, then Q of
 * each matrix in PyTorch's order of columns. */
#include <string.h>

#include "modes/compress/powersgd.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

static size_t error_floats(const tdm_powersgd *power) {
    return power->error != NULL ? power->params->plan->trained_floats : 0;
}

static float *q_in_all(const tdm_powersgd *power) {
    return power->all + error_floats(power) * (size_t)power->params->comm->world;
}

static tdm_status open_all(tdm_powersgd *power) {
    const tdm_plan *plan = power->params->plan;
    void *all = NULL;
    if (power->all != NULL || power->params->rank != 0) return TDM_OK;
    power->q_plain = 0;
    for (int i = 0; i < plan->trained_count; i++) power->q_plain += power->matrix[i].plain * power->matrix[i].rank;
    const size_t floats = error_floats(power) * (size_t)power->params->comm->world + power->q_plain;
    TDM_TRY(tdm__new_pages(power->params->host, &all, (floats > 0 ? floats : 1) * sizeof(float),
                           "what all ranks keep back"));
    power->all = all;
    return TDM_OK;
}

/* The errors in `all` as PyTorch would have them, or as they lie in the arena. */
static tdm_status change_forms(tdm_powersgd *power, bool to_plain) {
    const tdm_plan *plan = power->params->plan;
    void *copy = NULL;
    if (!plan->has_forms || power->error == NULL) return TDM_OK;
    TDM_TRY(tdm__new_pages(power->params->host, &copy, plan->trained_floats * sizeof(float), "an arena as it lies"));
    for (int r = 0; r < power->params->comm->world; r++) {
        float *error = power->all + plan->trained_floats * (size_t)r;
        memcpy(copy, error, plan->trained_floats * sizeof(float));
        memset(error, 0, plan->trained_floats * sizeof(float));
        for (int i = 0; i < plan->trained_count; i++)
            tdm__param_change_form(&plan->params[i], (float *)copy + plan->params[i].offset,
                                   error + plan->params[i].offset, to_plain);
    }
    tdm__delete_pages(power->params->host, copy);
    return TDM_OK;
}

/* Q between `wire` and `all`. */
static void copy_q(tdm_powersgd *power, bool to_plain) {
    const tdm_plan *plan = power->params->plan;
    float *plain = q_in_all(power);
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_power_matrix *m = &power->matrix[i];
        tdm_plan_param q = {.count = (int64_t)(m->plain * m->rank), .form = plan->params[i].form};
        q.form.outer = (int64_t)m->rank;
        if (m->rank == 0) continue;
        if (!to_plain) memset(power->wire + m->q, 0, m->columns * m->rank * sizeof(float));
        tdm__param_change_form(&q, to_plain ? power->wire + m->q : plain, to_plain ? plain : power->wire + m->q,
                               to_plain);
        plain += m->plain * m->rank;
    }
}

static tdm_status list_one(tdm_zone *zone, tdm_mode_tensor *out, const char *what, const tdm_plan_param *param,
                           const tdm_shape *shape, float *data) {
    *out = (tdm_mode_tensor){.shape = *shape, .data = data};
    return tdm__zone_printf(zone, &out->name, "%s.%s", what, param->name);
}

tdm_status tdm__powersgd_list(tdm_powersgd *power, tdm_zone *zone, tdm_mode_tensor **out, int *count) {
    const tdm_plan *plan = power->params->plan;
    const int world = power->error != NULL ? power->params->comm->world : 0;
    TDM_TRY(open_all(power));
    *count = 0;
    TDM_TRY(tdm__zone_new(zone, out, (size_t)plan->trained_count * (size_t)(world + 1), sizeof(**out)));
    float *q = q_in_all(power);
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_power_matrix *m = &power->matrix[i];
        const tdm_plan_param *param = &plan->params[i];
        const tdm_shape shape = {.ndim = 2, .dim = {(int64_t)m->rank, (int64_t)m->plain}};
        if (m->rank == 0) continue;
        for (int r = 0; r < world; r++) {
            char what[32];
            snprintf(what, sizeof(what), "error.rank%d", r);
            TDM_TRY(list_one(zone, &(*out)[(*count)++], what, param, &param->def.shape,
                             power->all + plan->trained_floats * (size_t)r + param->offset));
        }
        TDM_TRY(list_one(zone, &(*out)[(*count)++], "q", param, &shape, q));
        q += m->plain * m->rank;
    }
    return TDM_OK;
}

tdm_status tdm__powersgd_gather(tdm_powersgd *power) {
    const size_t floats = error_floats(power), world = (size_t)power->params->comm->world;
    TDM_TRY(open_all(power));
    if (floats > 0)
        TDM_TRY(tdm_comm_gather(power->params->comm, (tdm_span){power->error, floats, TDM_DTYPE_F32},
                                (tdm_span){power->all, floats * world, TDM_DTYPE_F32}, 0));
    if (power->params->rank != 0) return TDM_OK;
    copy_q(power, true);
    return change_forms(power, true);
}

tdm_status tdm__powersgd_share(tdm_powersgd *power, bool found) {
    const size_t floats = error_floats(power), world = (size_t)power->params->comm->world;
    const bool is_root = power->params->rank == 0;
    power->is_warm = found;
    if (!found && power->error != NULL) memset(power->error, 0, floats * sizeof(float));
    if (!found) return TDM_OK;
    if (is_root) TDM_TRY(change_forms(power, false));
    if (is_root) copy_q(power, false);
    if (floats > 0)
        TDM_TRY(tdm_comm_scatter(power->params->comm, (tdm_span){power->all, floats * world, TDM_DTYPE_F32},
                                 (tdm_span){power->error, floats, TDM_DTYPE_F32}, 0));
    return tdm_comm_broadcast(power->params->comm, (tdm_span){power->wire, power->wire_floats, TDM_DTYPE_F32}, 0);
}
