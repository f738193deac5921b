/* What a run knows of the data trained on: the names of its classes, the features of its table. It comes from the data,
 * or, if the run only predicts, from its weights. Checkpoints keep it, so that other data is read in the same way where
 * that trained on is not at hand. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/data/classes.h"
#include "runtime/data/tables/features.h"
#include "runtime/train/run.h"

static tdm_status read_features(tdm_run *run, const char *text) {
    tdm_features *features;
    if (text == NULL) return TDM_OK;
    TDM_TRY(tdm__zone_new(&run->zone, &features, 1, sizeof(*features)));
    run->features = features;
    return tdm__features_parse(features, &run->zone, text);
}

tdm_status tdm__run_notes_of_weights(tdm_run *run) {
    tdm_ckpt *ckpt = NULL;
    const char *path = run->job->weights;
    if (!run->options.predicts || path == NULL) return TDM_OK;
    TDM_TRY(tdm__error_at(tdm__ckpt_open_any(&ckpt, run->host, path), &run->job->weights_at));
    const char *classes = tdm__tensor_file_note(tdm__ckpt_model(ckpt), TDM_NOTE_CLASSES);
    tdm_status status = classes != NULL ? tdm__classes_parse(&run->classes, &run->zone, classes) : TDM_OK;
    if (status == TDM_OK) status = read_features(run, tdm__tensor_file_note(tdm__ckpt_model(ckpt), TDM_NOTE_FEATURES));
    tdm__ckpt_close(ckpt);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL_AT(&run->job->weights_at, status, "%s: %s", path, tdm_error_message());
    return status;
}

static tdm_status store_note(tdm_run *run, tdm_note note, tdm_text *text) {
    const tdm_status status =
        text->failed ? tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for what is known of the data")
                     : tdm__zone_text(&run->zone, &run->note[note], text->data);
    tdm__text_deinit(text);
    return status;
}

tdm_status tdm__run_take_notes(tdm_run *run) {
    tdm_text text;
    if (run->train != NULL && run->classes.count == 0) run->classes = run->train->class_names;
    if (run->train != NULL && run->features == NULL) run->features = run->train->features;
    if (run->classes.count > 0) {
        tdm__text_init(&text, run->host);
        tdm__classes_print(&run->classes, &text);
        TDM_TRY(store_note(run, TDM_NOTE_CLASSES, &text));
    }
    if (run->features == NULL) return TDM_OK;
    tdm__text_init(&text, run->host);
    tdm__features_print(run->features, &text);
    return store_note(run, TDM_NOTE_FEATURES, &text);
}

/* The program's own samples have no names, so a model that goes on with them keeps those of its weights. */
tdm_status tdm__run_keep_notes(tdm_run *run, const tdm_ckpt *ckpt) {
    const tdm_tensor_file *model = tdm__ckpt_model(ckpt);
    const char *classes = tdm__tensor_file_note(model, TDM_NOTE_CLASSES);
    const char *features = tdm__tensor_file_note(model, TDM_NOTE_FEATURES);
    tdm_classes names = {0};
    if (run->options.predicts || run->options.train == NULL) return TDM_OK;
    if (classes != NULL && run->note[TDM_NOTE_CLASSES] == NULL) {
        TDM_TRY(tdm__classes_parse(&names, &run->zone, classes));
        if (names.count == run->plan->output_width) {
            run->classes = names;
            TDM_TRY(tdm__zone_text(&run->zone, &run->note[TDM_NOTE_CLASSES], classes));
        }
    }
    if (features == NULL || run->note[TDM_NOTE_FEATURES] != NULL) return TDM_OK;
    return tdm__zone_text(&run->zone, &run->note[TDM_NOTE_FEATURES], features);
}

/* The rows that the run predicts at once are the model's, too: products of many rows may round otherwise. What cannot
 * be said in YAML is left out: the checkpoint can do without. */
tdm_status tdm__run_note_model(tdm_run *run) {
    tdm_job job = *run->job;
    tdm_text text;
    job.eval.batch = run->eval_rows;
    if (run->options.predicts || run->rank != 0) return TDM_OK;
    tdm__text_init(&text, run->host);
    tdm_status status = tdm__model_print(&job, run->graph, &text);
    if (status == TDM_OK) status = tdm__zone_text(&run->zone, &run->note[TDM_NOTE_MODEL], text.data);
    tdm__text_deinit(&text);
    if (status != TDM_E_UNSUPPORTED) return status;
    TDM_WARN(run->host, "checkpoint", "checkpoints of this run do not carry their model: %s", tdm_error_message());
    return TDM_OK;
}

tdm_status tdm__run_check_notes(const tdm_run *run, const tdm_ckpt *ckpt) {
    static const char *const what[TDM_NOTES_OF_DATA] = {"classes", "columns of a table"};
    static const char *const changes[TDM_NOTES_OF_DATA] = {"an output", "an input"};
    for (int i = 0; i < TDM_NOTES_OF_DATA && !run->options.predicts; i++) {
        const char *saved = tdm__tensor_file_note(tdm__ckpt_model(ckpt), (tdm_note)i), *now = run->note[i];
        if (saved == NULL || now == NULL || strcmp(saved, now) == 0) continue;
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s was trained on the %s %.200s, and data.train has %.200s: %s would change its meaning; resume with "
                 "the same, or start a new run from its weights: model.weights, and another run.dir",
                 tdm__ckpt_path(ckpt), what[i], saved, now, changes[i]);
    }
    return TDM_OK;
}

const char *tdm_run_class_name(const tdm_run *run, int64_t index) {
    if (run == NULL || index < 0 || index >= run->classes.count) return NULL;
    return run->classes.name[index];
}

tdm_status tdm_run_target(const tdm_run *run, tdm_target *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_target: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_run_target: tdm_target", out, TDM_SIZED_ANY, sizeof(*out)));
    const tdm_target full = tdm__features_target(run->features);
    tdm__sized_give(out, &full);
    return TDM_OK;
}

/* Every evaluation counts them as unknown; the log says so once. */
void tdm__run_warn_of_unseen(const tdm_run *run) {
    const tdm_dataset *eval = run->eval;
    if (eval == NULL || eval->unseen_count == 0 || run->options.predicts || run->rank != 0) return;
    const tdm_unseen_cell *first = &eval->unseen[0];
    const char *column = eval->features->item[first->item].name;
    char name[80];
    int64_t rows = 1;
    for (int64_t i = 1; i < eval->unseen_count; i++) rows += eval->unseen[i].index != eval->unseen[i - 1].index;
    if (column != NULL)
        snprintf(name, sizeof(name), "'%.64s'", column);
    else
        snprintf(name, sizeof(name), "%lld of the input", (long long)first->item);
    TDM_WARN(
        run->host, "data",
        "data.eval has categories that data.train does not have, in %lld of %lld rows; the first is '%.64s' in column "
        "%s, sample %lld; evaluations count them as unknown: correct their spelling, or train with such rows",
        (long long)rows, (long long)eval->count, first->value, name, (long long)first->index);
}

int64_t tdm_run_unseen_count(const tdm_run *run) {
    return run != NULL && run->eval != NULL ? run->eval->unseen_count : 0;
}

tdm_status tdm_run_unseen(const tdm_run *run, int64_t which, tdm_unseen_category *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_unseen: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_run_unseen: tdm_unseen_category", out, TDM_SIZED_ANY, sizeof(*out)));
    if (which < 0 || which >= tdm_run_unseen_count(run))
        TDM_FAIL(TDM_E_USAGE, "tdm_run_unseen: %lld is not in [0, %lld)", (long long)which,
                 (long long)tdm_run_unseen_count(run));
    const tdm_unseen_cell *cell = &run->eval->unseen[which];
    const tdm_unseen_category full = {.sample = cell->index,
                                      .input = cell->item,
                                      .column = run->eval->features->item[cell->item].name,
                                      .value = cell->value};
    tdm__sized_give(out, &full);
    return TDM_OK;
}
