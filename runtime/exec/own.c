#include "runtime/exec/own.h"

#include "runtime/base/largest.h"
#include "runtime/base/status.h"

/* A program's function may return a number that is no status. */
static tdm_status refuse(const char *what, const char *name, tdm_status status) {
    TDM_FAIL(status > TDM_OK && status <= TDM_E_CHECK ? status : TDM_E_USAGE,
             "the program's own %s '%s' failed with status %d (%s)", what, name, (int)status, tdm_status_name(status));
}

static tdm_outputs outputs_of(const tdm_loss_args *args) {
    return (tdm_outputs){
        .size = sizeof(tdm_outputs), .rows = args->rows, .width = args->width, .y = args->y, .target = args->target};
}

/* Rows whose highest output is the label. */
static int64_t hits(const tdm_loss_args *args) {
    const int64_t *label = args->target;
    int64_t count = 0;
    for (int64_t n = 0; n < args->rows; n++)
        count +=
            label[n] != args->section->ignore_index && tdm__largest(args->y + n * args->width, args->width) == label[n];
    return count;
}

tdm_status tdm__own_loss(const tdm_own_loss *own, tdm_target_kind target, const tdm_loss_args *args) {
    const tdm_outputs of = outputs_of(args);
    double sum = 0;
    const tdm_status status = own->run(own->user, &of, &sum, args->dy);
    if (status != TDM_OK) return refuse("loss", own->name, status);
    const float seed = args->values->loss_seed; /* 0: no row counts, whatever the program wrote */
    for (int64_t i = 0; args->dy != NULL && i < args->rows * args->width; i++)
        args->dy[i] = seed != 0 ? args->dy[i] * seed : 0;
    *args->loss_sum += sum;
    if (target == TDM_TARGET_CLASS) *args->correct += hits(args);
    return TDM_OK;
}

tdm_status tdm__own_metric(const tdm_own_metric *own, const tdm_loss_args *args, double *sum, double *weight) {
    const tdm_outputs of = outputs_of(args);
    *sum = *weight = 0;
    const tdm_status status = own->run(own->user, &of, sum, weight);
    return status == TDM_OK ? TDM_OK : refuse("metric", own->name, status);
}

tdm_status tdm__own_update(const tdm_own_optimizer *own, const tdm_own_update *update) {
    const tdm_status status = own->run(own->user, update);
    return status == TDM_OK ? TDM_OK : refuse("optimizer", own->name, status);
}
