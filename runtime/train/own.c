/* Parts that the program brings itself: whether they can be used here, and what checkpoints say of them. */
#include <ctype.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/mixing.h"
#include "runtime/graph/graph.h"
#include "runtime/train/run.h"

enum { NAME_MAX_LENGTH = 15 };

static bool is_name(const char *name) {
    size_t length = 0;
    if (name == NULL) return false;
    while (isalnum((unsigned char)name[length]) || name[length] == '_' || name[length] == '-') length++;
    return length > 0 && length <= NAME_MAX_LENGTH && name[length] == '\0';
}

/* ---- copies ---- */

/* `kept` is the run's copy of the program's struct options.member, NULL if there is none. */
#define KEEP(run, member, kept, init)                                                                                \
    do {                                                                                                             \
        if ((run)->options.member == NULL) break;                                                                    \
        TDM_TRY(tdm__zone_new(&(run)->zone, &(kept), 1, sizeof(*(kept))));                                           \
        *(kept) = (__typeof__(*(kept)))init;                                                                         \
        TDM_TRY(tdm__sized_take("options." #member, kept, sizeof(*(kept)), (run)->options.member, sizeof(*(kept)))); \
        TDM_TRY(tdm__zone_text(&(run)->zone, &(kept)->name, (kept)->name));                                          \
        (run)->options.member = (kept);                                                                              \
    } while (0)

tdm_status tdm__own_keep(tdm_run *run) {
    tdm_own_loss *loss = NULL;
    tdm_own_metric *metric = NULL;
    tdm_own_optimizer *optimizer = NULL;
    KEEP(run, loss, loss, TDM_OWN_LOSS_INIT);
    KEEP(run, metric, metric, TDM_OWN_METRIC_INIT);
    KEEP(run, optimizer, optimizer, TDM_OWN_OPTIMIZER_INIT);
    for (int i = 0; optimizer != NULL && i < TDM_OWN_STATES && optimizer->state[i] != NULL; i++)
        TDM_TRY(tdm__zone_text(&run->zone, &optimizer->state[i], optimizer->state[i]));
    return TDM_OK;
}

/* ---- checks ---- */

/* What all parts have: `what` is the member of tdm_run_options. */
static tdm_status check_part(const tdm_run *run, const char *what, const char *name, bool has_run) {
    if (!is_name(name))
        TDM_FAIL(TDM_E_USAGE, "options.%s: its name is to be 1 to %d letters, digits, '_' or '-'", what,
                 NAME_MAX_LENGTH);
    if (!has_run) TDM_FAIL(TDM_E_USAGE, "options.%s: '%s' has no function `run`", what, name);
    if (!tdm__device_on_host(run->compute.device))
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "options.%s: '%s' works in the host's memory, and the job runs on %s; write parallel.device: cpu",
                 what, name, run->compute.device->name);
    return TDM_OK;
}

static tdm_status check_loss(const tdm_run *run, const tdm_own_loss *own) {
    if (own == NULL) return TDM_OK;
    TDM_TRY(check_part(run, "loss", own->name, own->run != NULL));
    if (!run->options.predicts && tdm__transform_mixes(&run->job->data.transform))
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "options.loss: '%s' takes labels, and mixup and cutmix of data.transform mix them; leave them out",
                 own->name);
    return TDM_OK;
}

static bool is_builtin_optim(const char *name) {
    int i = 0;
    while (tdm_builtin_optims[i] != NULL && strcmp(tdm_builtin_optims[i]->name, name) != 0) i++;
    return tdm_builtin_optims[i] != NULL;
}

static tdm_status check_optimizer(const tdm_run *run, const tdm_own_optimizer *own) {
    if (own == NULL) return TDM_OK;
    TDM_TRY(check_part(run, "optimizer", own->name, own->run != NULL));
    if (is_builtin_optim(own->name))
        TDM_FAIL(TDM_E_USAGE, "options.optimizer: tandem has an optimizer '%s' already; take another name", own->name);
    for (int i = 0; i < TDM_OWN_STATES && own->state[i] != NULL; i++) {
        bool is_new = is_name(own->state[i]);
        for (int k = 0; k < i; k++) is_new = is_new && strcmp(own->state[k], own->state[i]) != 0;
        if (!is_new)
            TDM_FAIL(TDM_E_USAGE,
                     "options.optimizer: the names of the states of '%s' are to be different, each of 1 to %d letters, "
                     "digits, '_' or '-'",
                     own->name, NAME_MAX_LENGTH);
    }
    return TDM_OK;
}

tdm_status tdm__own_check(tdm_run *run) {
    const tdm_own_metric *metric = run->options.metric;
    const tdm_own_loss *loss = run->options.loss;
    TDM_TRY(check_loss(run, loss));
    if (metric != NULL) TDM_TRY(check_part(run, "metric", metric->name, metric->run != NULL));
    TDM_TRY(check_optimizer(run, run->options.optimizer));
    if (loss != NULL) run->note[TDM_NOTE_LOSS] = loss->name;
    return TDM_OK;
}

/* The numbers of a step go to the program with the call. */
static void prepare_nothing(const tdm_optim_settings *settings, void *values) {
    (void)settings, (void)values;
}

tdm_status tdm__own_optim_def(tdm_run *run, const tdm_optim_def **out) {
    const tdm_own_optimizer *own = run->options.optimizer;
    tdm_optim_def *def = NULL;
    _Static_assert((int)TDM_OWN_STATES == (int)TDM_MAX_STATES, "a program's optimizer has as many states");
    TDM_TRY(tdm__zone_new(&run->zone, &def, 1, sizeof(*def)));
    def->name = own->name;
    def->doc = "the program's own";
    def->prepare = prepare_nothing;
    for (int i = 0; i < TDM_OWN_STATES && own->state[i] != NULL; i++) def->state[i] = own->state[i];
    *out = def;
    return TDM_OK;
}

void tdm__own_lines(const tdm_run *run, tdm_text *text) {
    const tdm_run_options *options = &run->options;
    tdm__text_printf(text, "the program's own loss: %s\n", options->loss != NULL ? options->loss->name : "none");
    tdm__text_printf(text, "the program's own metric: %s\n", options->metric != NULL ? options->metric->name : "none");
    tdm__text_printf(text, "the program's own optimizer: %s\n", run->optim->name);
}

/* ---- checkpoints ---- */

tdm_status tdm__own_check_optimizer(const tdm_run *run, const char *saved, const char *path) {
    if (is_builtin_optim(saved) || strcmp(saved, run->optim->name) == 0) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT,
             "%s was trained by a program's own optimizer '%s', which this run lacks: a program passes it in "
             "tdm_run_options.optimizer; or start a new run from its weights: model.weights, and another run.dir",
             path, saved);
}

/* A run that only predicts does without the loss, until it evaluates. */
tdm_status tdm__own_check_saved_loss(tdm_run *run, const tdm_ckpt *ckpt) {
    const char *saved = tdm__tensor_file_note(tdm__ckpt_model(ckpt), TDM_NOTE_LOSS);
    const tdm_own_loss *own = run->options.loss;
    run->missing_loss = NULL;
    if (saved == NULL && own != NULL && !run->options.predicts && tdm__ckpt_state(ckpt) != NULL)
        TDM_WARN(run->host, "checkpoint", "changed since then: the loss was the job's, is the program's own '%s'",
                 own->name);
    if (saved == NULL || (own != NULL && strcmp(saved, own->name) == 0)) return TDM_OK;
    if (run->options.predicts) return tdm__zone_text(&run->zone, &run->missing_loss, saved);
    if (tdm__ckpt_state(ckpt) == NULL) return TDM_OK; /* weights to start from */
    TDM_FAIL(TDM_E_CHECKPOINT,
             "%s was trained with a program's own loss '%.40s', which this run lacks: a program passes it in "
             "tdm_run_options.loss; or start a new run from its weights: model.weights, and another run.dir",
             tdm__ckpt_path(ckpt), saved);
}

tdm_status tdm__own_check_evaluation(const tdm_run *run) {
    if (run->missing_loss == NULL) return TDM_OK;
    TDM_FAIL(TDM_E_UNSUPPORTED,
             "the weights were trained with a program's own loss '%.40s', which this run lacks, so it can predict but "
             "not evaluate: a program passes it in tdm_run_options.loss",
             run->missing_loss);
}
