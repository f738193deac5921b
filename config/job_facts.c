/* What programs ask of a job beside its values, and the job that only predicts. */
#include <string.h>

#include "config/table.h"
#include "runtime/graph/graph.h"

void tdm_job_predicts(tdm_job *job) {
    if (job == NULL || job->size != sizeof(*job)) return;
    if (job->train.per_device == TDM_INT_NULL) /* the default of eval.batch depends on it */
        job->train.per_device = job->train.global_batch / tdm__job_replicas(job);
    job->train.global_batch = TDM_INT_NULL;
    job->parallel.mode = TDM_MODE_SINGLE;
    job->parallel.device_ids = (tdm_ints){.count = 1};
    job->parallel.stages = 1; /* predictions need far less memory */
    job->parallel.dp.output_device = 0;
    job->data.drop_last = false;
    job->checkpoint.resume = "never";
    job->run.dir = NULL;
}

/* No memory is asked for: a lack of it would be taken for an answer. */
static const tdm_loss_def *loss_of(const tdm_job *job) {
    for (int i = 0; job != NULL && job->size == sizeof(*job) && tdm_builtin_losses[i] != NULL; i++)
        if (i == (int)job->loss.type) return tdm_builtin_losses[i];
    return NULL;
}

bool tdm_job_has_labels(const tdm_job *job) {
    const tdm_loss_def *loss = loss_of(job);
    return loss != NULL && loss->target == TDM_TARGET_CLASS;
}

bool tdm_job_has_logits(const tdm_job *job) {
    const tdm_loss_def *loss = loss_of(job);
    return loss != NULL && loss->is_logit;
}

unsigned tdm_job_key_flags(const char *key, size_t length) {
    int section, row;
    if (key == NULL || !tdm__table_find(key, length, &section, &row)) return 0;
    unsigned flags = tdm__sections[section].rows[row].flags;
    bool measures =
        strcmp(tdm__sections[section].path, "data.eval") == 0; /* evaluation data does not affect training */
    return measures ? flags & ~(unsigned)TDM_FIELD_KEPT : flags;
}
