/* The table of settings that contradict each other. What also depends on how many ranks a program starts is refused
 * where that is known: runtime/train/run_open.c. */
#include "config/checks/job_conflicts.h"

#include "runtime/data/transforms/mixing.h"
#include "runtime/graph/graph.h"

/* ---- parallel ---- */

static bool output_is_elsewhere(const tdm_job *job, tdm_text *sentence) {
    const tdm_ints *ids = &job->parallel.device_ids;
    const int64_t output = job->parallel.dp.output_device;
    int at = 0;
    while (at < ids->count && ids->item[at] != output) at++;
    if (at < ids->count) return false;
    tdm__text_puts(sentence, "parallel.dp.output_device must be one of device_ids [");
    for (int i = 0; i < ids->count; i++)
        tdm__text_printf(sentence, "%s%lld", i > 0 ? ", " : "", (long long)ids->item[i]);
    tdm__text_printf(sentence, "], got %lld", (long long)output);
    return true;
}

static bool dp_has_stages(const tdm_job *job, tdm_text *sentence) {
    if (job->parallel.stages == 1 || job->parallel.mode != TDM_MODE_DP) return false;
    tdm__text_puts(sentence,
                   "parallel.stages above 1 needs mode single or ddp: dp keeps a whole replica on each device, "
                   "as DataParallel does");
    return true;
}

static bool ranks_average_in_one(const tdm_job *job, tdm_text *sentence) {
    if (job->parallel.ddp.average != TDM_AVERAGE_RANKS || job->parallel.mode == TDM_MODE_DDP ||
        tdm__job_replicas(job) <= 1)
        return false;
    tdm__text_puts(sentence,
                   "parallel.ddp.average: ranks needs mode ddp or a single device; single and dp average over "
                   "samples");
    return true;
}

/* The last batch of an epoch may leave ranks without samples. */
static bool join_lacks_means(const tdm_job *job, tdm_text *sentence) {
    if (!job->parallel.ddp.join || job->parallel.ddp.average != TDM_AVERAGE_RANKS) return false;
    tdm__text_puts(sentence,
                   "parallel.ddp.join averages over the samples that are there, and a rank may have none; write "
                   "average: samples");
    return true;
}

static bool cpu_lacks_tf32(const tdm_job *job, tdm_text *sentence) {
    if (job->train.precision != TDM_TF32 || job->parallel.device != TDM_DEVICE_CPU) return false;
    tdm__text_puts(sentence, "train.precision tf32 needs a CUDA device, and parallel.device is cpu; write f32");
    return true;
}

/* ---- data ---- */

bool tdm__normalize_is_uneven(const tdm_normalize *step, tdm_text *sentence) {
    if (step->mean.count == step->stdev.count) return false;
    tdm__text_printf(sentence, "normalize must have as many values in std as in mean, got %d and %d", step->stdev.count,
                     step->mean.count);
    return true;
}

static bool loss_lacks_mixed(const tdm_job *job, tdm_text *sentence) {
    const tdm_loss_def *loss = tdm_builtin_losses[job->loss.type];
    if (loss->takes_mixed || !tdm__transform_mixes(&job->data.transform)) return false;
    tdm__text_printf(sentence,
                     "data.transform mixes labels, and loss %s has none; remove mixup and cutmix, or write a loss over "
                     "classes",
                     loss->name);
    return true;
}

/* ---- what evaluations are judged by ---- */

static bool lacks_labels(const tdm_job *job, int metric, const char *key, tdm_text *sentence) {
    if ((metric != TDM_METRIC_ACCURACY && metric != TDM_METRIC_TOP5) || tdm_job_has_labels(job)) return false;
    tdm__text_printf(sentence, "%s needs samples with labels, and the loss compares with numbers; write loss", key);
    return true;
}

static bool lacks_evaluations(const tdm_job *job, const char *name, tdm_text *sentence) {
    if (job->eval.every.kind != TDM_INTERVAL_NEVER) return false;
    tdm__text_printf(sentence,
                     "%s judges the evaluations of eval.every, and there are none; write eval.every: 1 epoch, or leave "
                     "%s out",
                     name, name);
    return true;
}

static bool lacks_metric(int metric, const char *name, tdm_text *sentence) {
    if (metric != TDM_METRIC_NONE) return false;
    tdm__text_printf(sentence, "%s needs a metric, got none; write accuracy, top5 or loss", name);
    return true;
}

static bool best_lacks_labels(const tdm_job *job, tdm_text *sentence) {
    return lacks_labels(job, job->checkpoint.keep_best, "checkpoint.keep_best", sentence);
}

static bool best_lacks_evaluations(const tdm_job *job, tdm_text *sentence) {
    return job->checkpoint.keep_best != TDM_METRIC_NONE && lacks_evaluations(job, "checkpoint.keep_best", sentence);
}

static bool has_plateau(const tdm_job *job) {
    return job->schedule.type == TDM_SCHEDULE_PLATEAU;
}

static bool plateau_lacks_metric(const tdm_job *job, tdm_text *sentence) {
    return has_plateau(job) && lacks_metric(job->schedule.metric, "schedule.type plateau", sentence);
}

static bool plateau_lacks_labels(const tdm_job *job, tdm_text *sentence) {
    return has_plateau(job) && lacks_labels(job, job->schedule.metric, "schedule.metric", sentence);
}

static bool plateau_lacks_evaluations(const tdm_job *job, tdm_text *sentence) {
    return has_plateau(job) && lacks_evaluations(job, "schedule: plateau", sentence);
}

static bool stops_early(const tdm_job *job) {
    return job->train.stop_after != TDM_INT_NULL;
}

static bool stop_lacks_metric(const tdm_job *job, tdm_text *sentence) {
    return stops_early(job) && lacks_metric(job->train.stop_metric, "train.stop_early", sentence);
}

static bool stop_lacks_labels(const tdm_job *job, tdm_text *sentence) {
    return stops_early(job) && lacks_labels(job, job->train.stop_metric, "train.stop_early.metric", sentence);
}

static bool stop_lacks_evaluations(const tdm_job *job, tdm_text *sentence) {
    return stops_early(job) && lacks_evaluations(job, "train.stop_early", sentence);
}

const tdm_job_conflict tdm__job_conflicts[] = {
    {"parallel.dp.output_device", "parallel.device_ids", output_is_elsewhere},
    {"parallel.stages", "parallel.mode", dp_has_stages},
    {"parallel.ddp.average", "parallel.mode", ranks_average_in_one},
    {"parallel.ddp.join", "parallel.ddp.average", join_lacks_means},
    {"train.precision", "parallel.device", cpu_lacks_tf32},
    {"data.transform", "loss.type", loss_lacks_mixed},
    {"checkpoint.keep_best", "loss.type", best_lacks_labels},
    {"checkpoint.keep_best", "eval.every", best_lacks_evaluations},
    {"schedule.metric", "schedule.type", plateau_lacks_metric},
    {"schedule.metric", "loss.type", plateau_lacks_labels},
    {"schedule.type", "eval.every", plateau_lacks_evaluations},
    {"train.stop_early.metric", "train.stop_early.after", stop_lacks_metric},
    {"train.stop_early.metric", "loss.type", stop_lacks_labels},
    {"train.stop_early.after", "eval.every", stop_lacks_evaluations},
    {.key = NULL},
};
