/* Compares a run with the checkpoint that it continues from. Each changed setting is reported with both values before
 * the first step; a change that a run cannot continue with is refused. The settings' tables say which keys these are
 * (TDM_FIELD_KEPT, TDM_FIELD_OF_START). */
#include "runtime/train/resume.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/lines.h"

static const char way_out[] =
    "resume with the same, or start a new run from its weights: model.weights, and another run.dir";

/* Also left out: initial weights, which no later step uses. */
static tdm_status add_lines(const tdm_job *job, const tdm_graph *graph, tdm_text *out) {
    TDM_TRY(tdm__lines_of(job, graph, TDM_FIELD_OF_START, out));
    tdm__text_printf(out, "model.weights (which a run that goes on does not load): %s\n",
                     job->weights != NULL ? job->weights : "null");
    return TDM_OK;
}

/* A configuration as text, read again. */
static tdm_status add_yaml(const tdm_run *run, const char *yaml, const char *folder, tdm_text *out) {
    tdm_config *config = NULL;
    tdm_status status = tdm_config_parse(&config, run->host, yaml, strlen(yaml), "config.resolved.yaml", folder);
    if (status == TDM_OK) status = tdm_config_check(config);
    if (status == TDM_OK) status = add_lines(tdm_config_job(config), tdm_config_graph(config), out);
    tdm_config_free(config);
    return status;
}

/* A program may have changed the job after reading its configuration, now or when it was saved. So configurations are
 * compared with configurations, and jobs with jobs. */
static tdm_status add_both(const tdm_run *run, const char *saved, const char *folder, tdm_changes *out) {
    const char *now = run->options.config_yaml;
    TDM_TRY(add_yaml(run, saved, folder, &out->saved));
    if (now != NULL) return add_yaml(run, now, NULL, &out->now);
    return add_lines(run->job, run->graph, &out->now);
}

/* ---- refusing ---- */

typedef struct refusal {
    bool any;
    tdm_line saved, now;
} refusal;

static void keep_first(void *user, const tdm_line *saved, const tdm_line *now) {
    refusal *first = user;
    if (first->any || (tdm_job_key_flags(now->key, (size_t)now->key_length) & TDM_FIELD_KEPT) == 0) return;
    *first = (refusal){true, *saved, *now};
}

static tdm_status check_kept(const tdm_changes *changes, const char *path) {
    refusal first = {.any = false};
    tdm__lines_compare(changes->saved.data, changes->now.data, keep_first, &first);
    if (!first.any) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "%.*s was %.*s in %s and is %.*s now: it cannot change when a run continues; %s",
             first.now.key_length, first.now.key, first.saved.length, first.saved.value, path, first.now.length,
             first.now.value, way_out);
}

/* Every checkpoint has these, also one of a program without a configuration file. */
static tdm_status check_state(const tdm_run *run, const tdm_ckpt_state *state, const char *path) {
    const char *optimizer = run->optim->name;
    TDM_TRY(tdm__own_check_optimizer(run, state->optimizer, path));
    if (strcmp(state->optimizer, optimizer) == 0) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT, "optimizer.type was %s in %s and is %s now: it cannot change when a run continues; %s",
             state->optimizer, path, optimizer, way_out);
}

/* A program that names its samples is told of others before it goes on with them. */
static tdm_status check_identity(const tdm_run *run, const tdm_ckpt_state *state, const char *path) {
    const char *now = run->train->identity;
    if (state->identity[0] == '\0' || strcmp(state->identity, now) == 0) return TDM_OK;
    if (now[0] != '\0')
        TDM_FAIL(
            TDM_E_CHECKPOINT,
            "tdm_source.identity of the samples was '%s' in %s and is '%s' now: a run goes on with the samples that it "
            "began with; %s",
            state->identity, path, now, way_out);
    TDM_WARN(
        run->host, "checkpoint",
        "%s was trained on samples that were called '%s'; those of this run have no tdm_source.identity, so nobody "
        "knows whether they are the same",
        path, state->identity);
    return TDM_OK;
}

/* The data found, in words like the settings'. */
static void add_data(const tdm_run *run, const tdm_ckpt_state *state, tdm_changes *out) {
    if (state->data[0] == '\0' || run->data[0] == '\0') return;
    tdm__text_printf(&out->saved, "data.train (samples found): %s\n", state->data);
    tdm__text_printf(&out->now, "data.train (samples found): %s\n", run->data);
}

tdm_status tdm__changes_read(tdm_changes *out, const tdm_run *run, tdm_ckpt *ckpt) {
    const char *yaml = NULL, *path = tdm__ckpt_path(ckpt);
    tdm_error before;
    tdm__text_init(&out->saved, run->host);
    tdm__text_init(&out->now, run->host);
    TDM_TRY(check_state(run, tdm__ckpt_state(ckpt), path));
    TDM_TRY(check_identity(run, tdm__ckpt_state(ckpt), path));
    TDM_TRY(tdm__ckpt_config(ckpt, &yaml));
    tdm__error_save(&before);
    tdm_status status = yaml != NULL ? add_both(run, yaml, path, out) : TDM_OK;
    if (status == TDM_E_MEMORY) return status;
    if (status != TDM_OK) {
        TDM_WARN(run->host, "checkpoint", "the changes since %s could not be found: %s", path, tdm_error_message());
        (void)tdm__error_restore(&before, NULL);
        tdm__changes_forget(out);
        return TDM_OK;
    }
    add_data(run, tdm__ckpt_state(ckpt), out);
    if (out->saved.failed || out->now.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while comparing configurations");
    return yaml != NULL ? check_kept(out, path) : TDM_OK;
}

/* ---- telling ---- */

static void tell_one(void *user, const tdm_line *saved, const tdm_line *now) {
    TDM_WARN((const tdm_host *)user, "checkpoint", "changed since then: %.*s was %.*s, is %.*s", now->key_length,
             now->key, saved->length, saved->value, now->length, now->value);
}

void tdm__changes_report(const tdm_changes *changes, const tdm_run *run) {
    if (changes->saved.data == NULL || changes->now.data == NULL) return;
    tdm__lines_compare(changes->saved.data, changes->now.data, tell_one, (void *)(uintptr_t)run->host);
}

void tdm__changes_forget(tdm_changes *changes) {
    tdm__text_deinit(&changes->saved);
    tdm__text_deinit(&changes->now);
}
