/* cmd_check.c - `tandem check`: reports every fault of the file in one pass. Needs no data and no device. */
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/term.h"

/* One line about a file without faults. */
static void describe(const tool *t, const tdm_config *config) {
    const tdm_job *job = tdm_config_job(config);
    char params[32];
    int devices = job->parallel.mode == TDM_MODE_SINGLE ? 1 : job->parallel.device_ids.count;
    term_print("%s: no faults. %s: %s parameters, %s on %d device%s", t->word[0], job->name,
               text_count(params, tdm_graph_param_count(tdm_config_graph(config))), job_mode_name(job->parallel.mode),
               devices, devices == 1 ? "" : "s");
}

/* A missing module is only a warning: the machine where the job runs may have it. */
static tdm_status warn_of_modules(const tool *t, const tdm_config *config) {
    char *text;
    tdm_status status = tdm_config_lacking(config, &text);
    if (status != TDM_OK) return status;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) && *line) term_mark(TERM_YELLOW, t->word[0], ": warning:", "%s", line);
    tdm_free(text);
    return TDM_OK;
}

/* A setting that this build lacks is not a fault of the file: another build may accept it. */
static void print_lacking(const tool *t, const tdm_config *config) {
    int count = tdm_config_fault_count(config);
    for (int i = 0; i < count; i++) {
        const tdm_fault *fault = tdm_config_fault(config, i);
        char *place = fault->line > 0 ? text_format("%s:%d:%d: ", fault->file, fault->line, fault->column)
                                      : text_format("%s: ", fault->file);
        char *mark = text_format("warning[%s]:", fault->id);
        term_mark(TERM_YELLOW, place, mark, "%s", fault->message);
        free(mark);
        free(place);
        if (fault->excerpt[0]) fprintf(stderr, "%s\n", fault->excerpt);
        if (fault->hint[0]) term_line("  hint: %s", fault->hint);
    }
    term_print("%s: no faults, but it asks for something that this build lacks: `tandem train` would exit with code %d",
               t->word[0], TDM_E_UNSUPPORTED);
}

static int run(tool *t) {
    const char *format = args_flag(t, "--format");
    bool json = format && strcmp(format, "json") == 0;
    if (format && !json && strcmp(format, "text") != 0) {
        return args_wrong(t, "`--format` must be text or json, got `%s`", format);
    }
    tdm_config *config;
    tdm_status status = tdm_config_open(&config, &t->host, t->word[0]);
    if (status != TDM_OK) return tell_error(status);
    for (int i = 0; i < t->override_count && status == TDM_OK; i++) {
        status = tdm_config_override(config, t->override[i]);
    }
    if (status != TDM_OK) {
        int code = tell_error(status);
        tdm_config_free(config);
        return code;
    }
    status = tdm_config_check(config);
    int faults = tdm_config_fault_count(config);
    if (status != TDM_OK && faults == 0) {
        tell_error(status);
    } else if (status == TDM_E_UNSUPPORTED && !json) {
        print_lacking(t, config);
        status = TDM_OK;
    } else if (json || faults > 0) {
        char *text;
        tdm_status printed = tdm_config_faults(config, json, &text);
        if (status == TDM_E_UNSUPPORTED) status = TDM_OK;
        if (printed == TDM_OK) {
            fputs(text, stdout);
            tdm_free(text);
            if (status == TDM_OK && faults == 0) printed = warn_of_modules(t, config);
        }
        if (printed != TDM_OK) {
            status = printed;
            tell_error(status);
        }
    } else {
        describe(t, config);
        status = warn_of_modules(t, config);
        if (status != TDM_OK) tell_error(status);
    }
    tdm_config_free(config);
    return (int)status;
}

const tool_verb verb_check = {"check",
                              "CONFIG [key.path=value ...]",
                              "every fault of the file in one pass; needs no data and no device",
                              "Reads the file as `train` would, including overrides, and reports everything\n"
                              "that is wrong with it: unknown keys, types, ranges, layer shapes. Exits with\n"
                              "code 0, or 3 if there are faults. A setting that this build lacks (C016) is a\n"
                              "warning; `train` would exit with code 11.\n\n"
                              "examples:\n"
                              "  tandem check job.yaml\n"
                              "  tandem check job.yaml parallel.mode=ddp parallel.device_ids='[0, 1, 2, 3]'\n"
                              "  tandem check job.yaml --format json",
                              {{"--format", "text|json", "how faults are printed (text)"}},
                              1,
                              1,
                              true,
                              run};
