/* inference.c - see inference.h. The chosen split is opened as train and as eval data: the files of the other split may
 * be missing. */
#include "tools/inference/inference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/model.h>

#include "tools/report/runs.h"
#include "tools/terminal/term.h"

bool inference_is_model(const char *path) {
    return text_ends(path, ".tandem") || text_ends(path, ".safetensors");
}

static int choose_split(inference *in, const tool *t) {
    int eval = 1; /* the index among the choices of --split */
    if (!args_choice(t, "--split", &eval)) return TDM_E_USAGE;
    if (inference_is_model(t->word[0]) && (!eval || in->job.data.eval.format == TDM_DATA_NONE))
        return args_wrong(t, "%s is a model and has no data; give %s'data.eval={format: ...}'", t->word[0],
                          strcmp(t->verb->name, "eval") == 0 ? "" : "pictures, a table or an array, or ");
    if (eval && in->job.data.eval.format == TDM_DATA_NONE) {
        return args_wrong(t, "%s has no data.eval section; use --split train for data.train", t->word[0]);
    }
    if (eval) in->job.data.train = in->job.data.eval;
    in->job.data.eval = in->job.data.train;
    return TDM_OK;
}

int inference_model(tool *t, tdm_config **out) {
    TDM_FREED char *text = NULL;
    tdm_config *config = NULL;
    tdm_status status = tdm_model_text(&t->host, t->word[0], &text);
    if (status == TDM_OK) status = tdm_config_parse(&config, &t->host, text, strlen(text), t->word[0], NULL);
    if (status != TDM_OK) return tell_error(status);
    (void)tdm_config_predicts(config);
    return job_take(t, NULL, config, out);
}

/* Opens the configuration: a file, the copy in a run directory or checkpoint, or what a model says. *from is where its
 * weights are; NULL for a file of YAML. */
static int open_config(inference *in, tool *t, const char **from) {
    static const char name[] = "config.resolved.yaml";
    if (inference_is_model(t->word[0])) {
        *from = t->word[0];
        return inference_model(t, &in->config);
    }
    in->file = text_format("%s/%s", t->word[0], name);
    *from = files_is_missing(in->file) ? NULL : t->word[0];
    if (!*from && runs_lacks(t->word[0], name)) return TDM_E_CONFIG;
    if (!*from) return job_open_predicting(t, &in->config);
    FREED char *text = files_text(*from, name);
    if (!text) {
        term_error("%s: cannot be read: %s", in->file, files_refusal(in->file, errno));
        return TDM_E_CONFIG;
    }
    tdm_config *config;
    tdm_status status = tdm_config_parse(&config, &t->host, text, strlen(text), in->file, *from);
    return status == TDM_OK ? job_take(t, NULL, config, &in->config) : tell_error(status);
}

static bool is_step(const char *name) {
    return name[0] && strspn(name, "0123456789") == strlen(name) && strlen(name) <= 16;
}

/* --checkpoint: best, latest or a step. */
static int check_checkpoint(const tool *t) {
    const char *name = args_flag(t, "--checkpoint");
    if (!name || is_step(name) || strcmp(name, "best") == 0 || strcmp(name, "latest") == 0) return TDM_OK;
    return args_wrong(t, "`--checkpoint` must be best, latest or a step, got `%s`; write --weights %s", name, name);
}

int inference_checkpoint(const tool *t, const char *run, char **out) {
    const char *name = args_flag(t, "--checkpoint");
    int code = check_checkpoint(t);
    if (!name || code != TDM_OK) return code;
    if (!run || files_is_missing(run) || inference_is_model(run))
        return args_wrong(t, "`--checkpoint` needs a run directory, as RUN-DIR or with --weights");
    *out = is_step(name) ? text_format("%s/checkpoints/step-%08lld", run, atoll(name))
                         : text_format("%s/checkpoints/%s", run, name);
    return TDM_OK;
}

int inference_job(inference *in, tool *t, const char **weights) {
    *in = (inference){.config = NULL};
    const char *folder;
    int code = check_checkpoint(t);
    if (code == TDM_OK) code = open_config(in, t, &folder);
    if (code != TDM_OK) return code;
    *weights = args_flag(t, "--weights");
    if (!*weights) *weights = folder;
    code = inference_checkpoint(t, *weights, &in->weights);
    if (code != TDM_OK) return code;
    if (in->weights) *weights = in->weights;
    in->job = *tdm_config_job(in->config);
    if (*weights) {
        in->job.weights = *weights;
        in->job.match = (tdm_weights_section){.strict = true}; /* a whole model, under its own names */
        in->job.weights_at = (tdm_origin){.file = NULL};
    }
    return TDM_OK;
}

/* All of the file that is the second word. */
static void choose_file(inference *in) {
    tdm_data_spec *spec = &in->job.data.train;
    spec->holdout = 0;
    spec->range.count = 0;
    spec->without_targets = true;
    spec->origin = spec->inputs_at = (tdm_origin){.file = NULL};
    in->job.data.eval = *spec;
}

static int choose_table(inference *in, const tool *t) {
    tdm_data_spec *spec = &in->job.data.train;
    if (spec->format != TDM_DATA_CSV)
        return args_wrong(t, "%s is a table, and the model was not trained on one (data.train.format: csv)",
                          t->word[1]);
    spec->path = t->word[1];
    choose_file(in);
    return TDM_OK;
}

/* image=a.npy facts=b.npy */
static int take_inputs(const tool *t, tdm_data_spec *spec, char *names[TDM_SHAPES_MAX]) {
    if (t->input_count > TDM_SHAPES_MAX) return args_wrong(t, "a model has at most %d inputs", TDM_SHAPES_MAX);
    for (int i = 0; i < t->input_count; i++) {
        const char *equals = strchr(t->input[i], '=');
        names[i] = text_format("%.*s", (int)(equals - t->input[i]), t->input[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0) return args_wrong(t, "two arrays for the input %s", names[i]);
        spec->inputs.item[spec->inputs.count++] = names[i];
        spec->inputs.item[spec->inputs.count++] = equals + 1;
    }
    return TDM_OK;
}

static bool is_of_model(const inference *in, const char *name) {
    tdm_input_info info = TDM_INPUT_INFO_INIT;
    const tdm_graph *graph = tdm_config_graph(in->config);
    for (int k = 0; k < tdm_graph_input_count(graph); k++)
        if (tdm_graph_get_input(graph, k, &info) == TDM_OK && info.name && strcmp(info.name, name) == 0) return true;
    return false;
}

/* What the command line gives as an input may be another file, or a key that is misspelled. */
static int check_inputs(const inference *in, const tool *t) {
    for (int i = 0; i < t->input_count; i++) {
        if (text_ends(t->input[i], ".npy")) continue;
        const char *equals = strchr(t->input[i], '=');
        FREED char *name = text_format("%.*s", (int)(equals - t->input[i]), t->input[i]);
        if (!is_of_model(in, name))
            return args_wrong(t, "unknown key '%s', and the model has no input '%s'", name, name);
        return args_wrong(t, "%s '%s': must be a .npy file", name, equals + 1);
    }
    return TDM_OK;
}

/* Numbers of a table have the scales and categories of its columns, which an array does not name. */
static int choose_array(inference *in, const tool *t) {
    tdm_data_spec *spec = &in->job.data.train;
    const char *word = t->input_count > 0 ? t->input[0] : t->word[1];
    int code = check_inputs(in, t);
    if (code != TDM_OK) return code;
    if (spec->format == TDM_DATA_CSV)
        return args_wrong(t, "%s is an array, and the model was trained on a table; give a .csv file", word);
    if (spec->format == TDM_DATA_IMAGE_FOLDER)
        return args_wrong(t, "%s is an array, and the model was trained on files of pictures; give such files", word);
    spec->format = TDM_DATA_NPY;
    spec->x = t->input_count > 0 ? NULL : t->word[1];
    spec->y = NULL;
    spec->inputs.count = 0;
    code = take_inputs(t, spec, in->names);
    if (code != TDM_OK) return code;
    choose_file(in);
    return TDM_OK;
}

static int choose_data(inference *in, const tool *t, inference_data data) {
    switch (data) {
    case INFERENCE_SPLIT:
        return choose_split(in, t);
    case INFERENCE_TABLE:
        return choose_table(in, t);
    case INFERENCE_ARRAY:
        return choose_array(in, t);
    case INFERENCE_NONE:
        in->job.data.train.format = in->job.data.eval.format = TDM_DATA_NONE;
    }
    return TDM_OK;
}

/* One array has failed: a model with several inputs takes one for each. */
static void tell_inputs(const inference *in) {
    tdm_input_info info = TDM_INPUT_INFO_INIT;
    const tdm_graph *graph = tdm_config_graph(in->config);
    const int count = tdm_graph_input_count(graph);
    FREED char *line = text_copy("");
    for (int k = 0; k < count && count > 1; k++) {
        FREED char *before = line;
        line = NULL;
        if (tdm_graph_get_input(graph, k, &info) != TDM_OK || !info.name) return;
        line = text_format("%s %s=FILE", before, info.name);
    }
    if (count > 1) term_line("       write%s, an array for each input", line);
}

int inference_open(inference *in, tool *t, inference_data data) {
    const char *weights;
    int code = inference_job(in, t, &weights);
    if (code != TDM_OK) return code;
    if (!in->job.weights)
        return args_wrong(t, "no weights given; give a run directory, a checkpoint or a file with --weights");
    code = choose_data(in, t, data);
    if (code != TDM_OK) return code;
    tdm_job_predicts(&in->job);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = &t->host;
    options.predicts = 1;
    tdm_status status = tdm_run_open(&in->run, &in->job, tdm_config_graph(in->config), &options);
    if (status == TDM_OK) return TDM_OK;
    tell_error(status);
    if (status == TDM_E_DATA && data == INFERENCE_ARRAY && t->input_count == 0) tell_inputs(in);
    if (weights) runs_hint(weights);
    return (int)status;
}

void inference_close(inference *in) {
    tdm_run_close(in->run);
    tdm_config_free(in->config);
    free(in->file);
    free(in->weights);
    for (int i = 0; i < TDM_SHAPES_MAX; i++) free(in->names[i]);
    *in = (inference){.config = NULL};
}
