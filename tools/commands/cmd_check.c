/* cmd_check.c - `tandem check`: reports every fault of the file in one pass. Needs no data and no device. */
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/term.h"

/* One line about a file without faults. */
static void describe(const tool *t, const tdm_config *config) {
    const tdm_job *job = tdm_config_job(config);
    const int all = job->parallel.device_ids.count, stages = (int)job->parallel.stages;
    const bool in_turn = job->parallel.mode == TDM_MODE_SINGLE && all > stages;
    const int devices = job->parallel.mode == TDM_MODE_SINGLE ? stages : all;
    char params[32];
    FREED char *parts = in_turn ? text_format(", %d parts of a batch in turn", all / stages) : text_copy("");
    term_print("%s: no faults. %s: %s parameters, %s on %d device%s%s", t->word[0], job->name,
               text_count(params, tdm_graph_param_count(tdm_config_graph(config))), job_mode_name(job->parallel.mode),
               devices, devices == 1 ? "" : "s", parts);
}

/* A missing module is only a warning: the machine where the job runs may have it. */
static tdm_status warn(const tool *t, const tdm_config *config) {
    tdm_status (*const lists[])(const tdm_config *, char **) = {tdm_config_lacking, tdm_config_remarks};
    for (int i = 0; i < 2; i++) {
        TDM_FREED char *text = NULL;
        tdm_status status = lists[i](config, &text);
        if (status != TDM_OK) return status;
        char *rest = text, *line;
        while ((line = strsep(&rest, "\n")) && *line) term_mark(TERM_YELLOW, t->word[0], ": warning:", "%s", line);
    }
    return TDM_OK;
}

static tdm_status print_faults(const tdm_config *config, bool json) {
    TDM_FREED char *text = NULL;
    tdm_status status = tdm_config_faults(config, json, &text);
    if (status == TDM_OK) fputs(text, stdout);
    return status;
}

/* Prints what the check found. Fails if that cannot be printed. */
static tdm_status report(const tool *t, const tdm_config *config, bool json) {
    bool has_faults = tdm_config_fault_count(config) > 0;
    tdm_status status = TDM_OK;
    if (json || has_faults) {
        status = print_faults(config, json);
    } else {
        describe(t, config);
    }
    return status == TDM_OK && !has_faults ? warn(t, config) : status;
}

/* What the job needs of host.memory_limit only its plan says. */
static tdm_status check_memory(tdm_config *config, tdm_status *found) {
    const tdm_status status = tdm_plan_check_memory(tdm_config_job(config), tdm_config_graph(config));
    if (status != TDM_E_CONFIG) return status;
    *found = status;
    return tdm_config_add_fault(config, tdm_error_message());
}

static int run(tool *t) {
    int json = 0;
    FREED_BY(job_freed) tdm_config *config = NULL;
    if (!args_choice(t, "--format", &json)) return TDM_E_USAGE;
    tdm_status status = tdm_config_open(&config, &t->host, t->word[0]);
    if (status != TDM_OK) return tell_error(status);
    status = job_override(t, NULL, config);
    tdm_status found = status == TDM_OK ? tdm_config_check(config) : TDM_OK;
    if (found != TDM_OK && tdm_config_fault_count(config) == 0) status = found;
    if (status == TDM_OK && found == TDM_OK) status = check_memory(config, &found);
    if (status == TDM_OK) status = report(t, config, json != 0);
    return status != TDM_OK ? tell_error(status) : (int)found;
}

const tool_verb verb_check = {"check",
                              "CONFIG [key.path=value ...]",
                              "every fault of the file in one pass; needs no data and no device",
                              "Reads the file as `train` would, including overrides, and reports everything\n"
                              "that is wrong with it: unknown keys, types, ranges, layer shapes. Exits with\n"
                              "code 0, or 3 if there are faults. A setting whose module this build lacks is\n"
                              "a warning: the machine where the job runs may have it. So is what `train`\n"
                              "warns of, where the file alone says it.\n\n"
                              "examples:\n"
                              "  tandem check job.yaml\n"
                              "  tandem check job.yaml parallel.mode=ddp parallel.device_ids='[0, 1, 2, 3]'\n"
                              "  tandem check job.yaml --format json",
                              {{"--format", "text|json", "how faults are printed (text)"}},
                              run,
                              {1, 1, true}};
