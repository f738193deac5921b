/* cmd_plan.c - `tandem plan`: what a run will do, without data, devices or other processes. */
#include "tools/term.h"

static int run(tool *t) {
    tdm_config *config;
    int code = job_open(t, NULL, &config);
    if (code != TDM_OK) return code;
    char *text = NULL;
    tdm_status status = args_flag(t, "--graph") ? tdm_graph_print(tdm_config_graph(config), &text)
                                                : tdm_plan_print(tdm_config_job(config), tdm_config_graph(config),
                                                                 args_flag(t, "--json") != NULL, &text);
    if (status == TDM_OK) {
        fputs(text, stdout);
        tdm_free(text);
    } else {
        code = tell_error(status);
    }
    tdm_config_free(config);
    return code;
}

const tool_verb verb_plan = {
    "plan",
    "CONFIG [key.path=value ...]",
    "graph, steps, memory per device, buckets, bytes on the wire",
    "Prints what one replica does in one step, and what it needs. Touches no device.\n\n"
    "examples:\n"
    "  tandem plan job.yaml\n"
    "  tandem plan job.yaml --graph            layers, shapes, parameters\n"
    "  tandem plan job.yaml parallel.mode=ddp --json",
    {{"--graph", NULL, "the model's layers instead of the steps"}, {"--json", NULL, "as JSON"}},
    1,
    1,
    true,
    run};
