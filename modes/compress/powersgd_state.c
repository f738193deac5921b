/* What a resumed run needs to go on with the same bits: what each rank has kept back, and the factors Q. Rank 0 holds
 * all of it in `gathered` while a checkpoint is written or read: the errors of rank 0, 1, ..., each as an arena, then Q
 * of each matrix in PyTorch's order of columns. Errors that are all in this process are read and written where they
 * are. */
#include <string.h>

#include "modes/compress/powersgd.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

static size_t error_floats(const tdm_powersgd *power) {
    return power->settings->error_feedback ? power->params->plan->trained_floats : 0;
}

/* Does this process hold the errors of all replicas, in the form that a checkpoint has? */
static bool are_here(const tdm_powersgd *power) {
    return power->count > 1 && !power->params->plan->has_forms;
}

static size_t gathered_error_floats(const tdm_powersgd *power) {
    return are_here(power) ? 0 : error_floats(power) * (size_t)power->params->replicas;
}

static float *error_of(const tdm_powersgd *power, int rank) {
    return are_here(power) ? power->member[rank].kept : power->gathered + error_floats(power) * (size_t)rank;
}

static float *gathered_q(const tdm_powersgd *power) {
    return power->gathered + gathered_error_floats(power);
}

static tdm_status open_gathered(tdm_powersgd *power) {
    const tdm_plan *plan = power->params->plan;
    void *gathered = NULL;
    if (power->gathered != NULL || power->params->rank != 0) return TDM_OK;
    power->q_floats = 0;
    for (int i = 0; i < plan->trained_count; i++) power->q_floats += power->matrix[i].plain * power->matrix[i].rank;
    const size_t floats = gathered_error_floats(power) + power->q_floats;
    TDM_TRY(tdm__new_pages(power->params->host, &gathered, (floats > 0 ? floats : 1) * sizeof(float),
                           "what all ranks keep back"));
    power->gathered = gathered;
    return TDM_OK;
}

/* The errors in `gathered` as PyTorch would have them, or as they lie in the arena. */
static tdm_status change_forms(tdm_powersgd *power, bool to_plain) {
    const tdm_plan *plan = power->params->plan;
    void *copy = NULL;
    if (!plan->has_forms || error_floats(power) == 0) return TDM_OK;
    TDM_TRY(tdm__new_pages(power->params->host, &copy, plan->trained_floats * sizeof(float), "an arena as it lies"));
    for (int r = 0; r < power->params->replicas; r++) {
        float *error = error_of(power, r);
        memcpy(copy, error, plan->trained_floats * sizeof(float));
        memset(error, 0, plan->trained_floats * sizeof(float));
        for (int i = 0; i < plan->trained_count; i++)
            tdm__param_change_form(&plan->params[i], (float *)copy + plan->params[i].offset,
                                   error + plan->params[i].offset, to_plain);
    }
    tdm__delete_pages(power->params->host, copy);
    return TDM_OK;
}

/* Q between `wire` and `gathered`. */
static void copy_q(tdm_powersgd *power, bool to_plain) {
    const tdm_plan *plan = power->params->plan;
    float *plain = gathered_q(power);
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_power_matrix *m = &power->matrix[i];
        tdm_plan_param q = {.count = (int64_t)(m->plain * m->rank), .form = plan->params[i].form};
        q.form.outer = (int64_t)m->rank;
        if (m->rank == 0) continue;
        if (!to_plain) memset(power->member->wire + m->q, 0, m->columns * m->rank * sizeof(float));
        tdm__param_change_form(&q, to_plain ? power->member->wire + m->q : plain,
                               to_plain ? plain : power->member->wire + m->q, to_plain);
        plain += m->plain * m->rank;
    }
}

static tdm_status list_one(tdm_zone *zone, tdm_mode_tensor *out, const char *what, const tdm_plan_param *param,
                           const tdm_shape *shape, float *data) {
    *out = (tdm_mode_tensor){.shape = *shape, .data = data};
    return tdm__zone_printf(zone, &out->name, "%s.%s", what, param->name);
}

tdm_status tdm__powersgd_list(tdm_mode *mode, tdm_zone *zone, bool saves, tdm_mode_tensor **out, int *count) {
    tdm_powersgd *power = mode->powersgd;
    *count = 0;
    if (power == NULL || (saves && !power->is_warm)) return TDM_OK;
    const tdm_plan *plan = power->params->plan;
    const int world = power->settings->error_feedback ? power->params->replicas : 0;
    TDM_TRY(open_gathered(power));
    TDM_TRY(tdm__zone_new(zone, out, (size_t)plan->trained_count * (size_t)(world + 1), sizeof(**out)));
    float *q = gathered_q(power);
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_power_matrix *m = &power->matrix[i];
        const tdm_plan_param *param = &plan->params[i];
        const tdm_shape shape = {.ndim = 2, .dim = {(int64_t)m->rank, (int64_t)m->plain}};
        if (m->rank == 0) continue;
        for (int r = 0; r < world; r++) {
            char what[32];
            snprintf(what, sizeof(what), "error.rank%d", r);
            TDM_TRY(list_one(zone, &(*out)[(*count)++], what, param, &param->def.shape,
                             error_of(power, r) + param->offset));
        }
        TDM_TRY(list_one(zone, &(*out)[(*count)++], "q", param, &shape, q));
        q += m->plain * m->rank;
    }
    return TDM_OK;
}

/* The errors of all ranks, or of all replicas here, into `gathered`, or from there. */
static tdm_status move_errors(tdm_powersgd *power, bool to_gathered) {
    const size_t floats = error_floats(power);
    const tdm_span own = {power->member->kept, floats, TDM_DTYPE_F32};
    const tdm_span gathered = {power->gathered, gathered_error_floats(power), TDM_DTYPE_F32};
    if (floats == 0 || are_here(power)) return TDM_OK;
    if (power->count == 1)
        return to_gathered ? tdm_comm_gather(power->params->comm, own, gathered, 0)
                           : tdm_comm_scatter(power->params->comm, gathered, own, 0);
    for (int i = 0; i < power->count; i++) {
        float *kept = power->member[i].kept, *in_all = error_of(power, i);
        memcpy(to_gathered ? in_all : kept, to_gathered ? kept : in_all, floats * sizeof(float));
    }
    return TDM_OK;
}

tdm_status tdm__powersgd_gather(tdm_mode *mode) {
    tdm_powersgd *power = mode->powersgd;
    if (power == NULL || !power->is_warm) return TDM_OK;
    TDM_TRY(open_gathered(power));
    TDM_TRY(move_errors(power, true));
    if (power->params->rank != 0) return TDM_OK;
    copy_q(power, true);
    return change_forms(power, true);
}

tdm_status tdm__powersgd_share(tdm_mode *mode, bool found) {
    tdm_powersgd *power = mode->powersgd;
    if (power == NULL) return TDM_OK;
    power->is_warm = found;
    for (int i = 0; !found && i < power->count; i++)
        memset(power->member[i].kept, 0, power->params->plan->trained_floats * sizeof(float));
    if (!found) return TDM_OK;
    if (power->params->rank == 0) TDM_TRY(change_forms(power, false));
    if (power->params->rank == 0) copy_q(power, false);
    TDM_TRY(move_errors(power, false));
    if (power->count > 1) return TDM_OK;
    return tdm_comm_broadcast(power->params->comm, (tdm_span){power->member->wire, power->wire_floats, TDM_DTYPE_F32},
                              0);
}
