/* job.c - how every verb opens the configuration: file, overrides, check, all faults at once. */
#include "tools/launch/orders.h"
#include "tools/terminal/term.h"

#include <stdlib.h>
#include <string.h>

static const char *const mode_names[] = {
#define TDM_MODE(name) #name,
#include "modes/modes.def"
#undef TDM_MODE
};

const char *job_mode_name(int mode) {
    const int count = sizeof mode_names / sizeof *mode_names;
    return mode >= 0 && mode < count ? mode_names[mode] : NULL;
}

static int print_faults(const tdm_config *config, tdm_status code) {
    TDM_FREED char *text = NULL;
    tdm_status status = tdm_config_faults(config, 0, &text);
    if (status != TDM_OK) return tell_error(status);
    term_text(text);
    return (int)code;
}

char *job_path_override(const char *key, const char *path) {
    char *out = memory_new(strlen(key) + 2 * strlen(path) + 4, 1);
    char *to = stpcpy(stpcpy(out, key), "=\"");
    for (; *path; path++) {
        if (*path == '"' || *path == '\\') *to++ = '\\';
        *to++ = *path;
    }
    *to = '"';
    return out;
}

void job_freed(tdm_config **config) {
    tdm_config_free(*config);
}

/* --mode, --steps, --resume, --run-dir and those of burnin are short forms of overrides. They win because they are
 * applied last. */
static tdm_status apply_flags(const tool *t, tdm_config *config) {
    static const char *const flags[][2] = {{"--mode", "parallel.mode"},
                                           {"--resume", "checkpoint.resume"},
                                           {"--run-dir", "run.dir"},
                                           {"--duration", "burnin.duration"},
                                           {"--iterations", "burnin.iterations"}};
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && status == TDM_OK; i++) {
        const char *value = args_flag(t, flags[i][0]);
        if (value) status = tdm_config_override_text(config, flags[i][1], value);
    }
    const char *steps = args_flag(t, "--steps");
    if (steps && status == TDM_OK) {
        FREED char *text = text_format("train.steps=%s", steps);
        status = tdm_config_override(config, text);
        if (status == TDM_OK) status = tdm_config_override(config, "train.epochs=null");
    }
    if (t->orders && t->orders->run_dir[0] && status == TDM_OK)
        status = tdm_config_override_text(config, "run.dir", t->orders->run_dir);
    return status;
}

/* `ranks` of the tool need this many devices, the first of the host. Only a checked file says how many stages there
 * are. */
static tdm_status set_devices(const tool *t, tdm_config *config) {
    const int count = t->ranks * (int)tdm_config_job(config)->parallel.stages;
    FREED char *list = text_copy("0");
    for (int i = 1; i < count; i++) {
        FREED char *before = list;
        list = text_format("%s, %d", before, i);
    }
    FREED char *assignment = text_format("parallel.device_ids=[%s]", list);
    tdm_status status = tdm_config_override(config, assignment);
    return status == TDM_OK ? tdm_config_check(config) : status;
}

/* CONFIG of the command line: another host may have sent its text. */
static int open_config(const tool *t, tdm_config **out) {
    const launch_orders *orders = t->orders;
    tdm_status status =
        orders ? tdm_config_parse(out, &t->host, orders->config, strlen(orders->config), t->word[0], orders->folder)
               : tdm_config_open(out, &t->host, t->word[0]);
    return status == TDM_OK ? TDM_OK : tell_error(status);
}

int job_open(tool *t, const char *const *extra, tdm_config **out) {
    tdm_config *config;
    *out = NULL;
    const int code = open_config(t, &config);
    return code == TDM_OK ? job_take(t, extra, config, out) : code;
}

int job_open_training(tool *t, const char *const *extra, tdm_config **out) {
    const int code = job_open(t, extra, out);
    if (code != TDM_OK) return code;
    const tdm_job *job = tdm_config_job(*out);
    if (job->train.epochs != TDM_INT_NULL || job->train.steps != TDM_INT_NULL) return TDM_OK;
    term_error("%s is a file for `tandem burnin`: to train, write `train: {epochs: 3}` or `{steps: 1000}` in it",
               t->word[0]);
    tdm_config_free(*out);
    *out = NULL;
    return TDM_E_CONFIG;
}

int job_open_predicting(tool *t, tdm_config **out) {
    tdm_config *config;
    *out = NULL;
    const int code = open_config(t, &config);
    if (code != TDM_OK) return code;
    (void)tdm_config_predicts(config);
    return job_take(t, NULL, config, out);
}

tdm_status job_override(const tool *t, const char *const *extra, tdm_config *config) {
    tdm_status status = TDM_OK;
    for (int i = 0; i < t->override_count && status == TDM_OK; i++) {
        status = tdm_config_override(config, t->override[i]);
    }
    if (status == TDM_OK) status = apply_flags(t, config);
    for (; extra && *extra && status == TDM_OK; extra++) status = tdm_config_override(config, *extra);
    return status;
}

int job_take(tool *t, const char *const *extra, tdm_config *config, tdm_config **out) {
    tdm_status status = job_override(t, extra, config);
    bool is_checked = status == TDM_OK;
    if (is_checked) status = tdm_config_check(config);
    if (status == TDM_OK && t->ranks > 0) status = set_devices(t, config);
    *out = status == TDM_OK ? config : NULL;
    if (*out) return TDM_OK;
    int code = is_checked && tdm_config_fault_count(config) > 0 ? print_faults(config, status) : tell_error(status);
    tdm_config_free(config);
    return code;
}

/* Of several inputs a sample is a row. */
static void take_inputs(const tdm_graph *graph, tdm_input_info *inputs, tdm_data_use *use) {
    const int count = tdm_graph_input_count(graph);
    for (int k = 0; k < count; k++) {
        inputs[k] = (tdm_input_info)TDM_INPUT_INFO_INIT;
        (void)tdm_graph_get_input(graph, k, &inputs[k]);
    }
    use->ndim = tdm_graph_shape(graph, 0, use->input);
    if (!inputs[0].name) return;
    use->inputs = inputs;
    use->input_count = count;
    if (count == 1) return;
    use->ndim = 1;
    use->input[0] = inputs[count - 1].first + inputs[count - 1].count;
}

tdm_data_use job_data_use(const tdm_config *config, tdm_input_info inputs[TDM_SHAPES_MAX]) {
    const tdm_job *job = tdm_config_job(config);
    const tdm_graph *graph = tdm_config_graph(config);
    tdm_data_use use = {.size = sizeof use, .seed = job->seed, .rng_profile = job->rng_profile};
    take_inputs(graph, inputs, &use);
    use.float_targets = !tdm_job_has_labels(job);
    *(use.float_targets ? &use.target_width : &use.classes) = tdm_graph_output_width(graph);
    use.has_ignore_index = !use.float_targets;
    use.ignore_index = job->loss.ignore_index;
    use.transform = &job->data.transform;
    return use;
}
