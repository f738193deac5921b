/* cmd_plan.c - `tandem plan`: what a run will do, without devices or other processes; --memory opens the data. */
#include "tools/tool.h"

static tdm_status print(const tool *t, const tdm_config *config, char **text) {
    tdm_plan_print_options options = TDM_PLAN_PRINT_OPTIONS_INIT;
    if (args_flag(t, "--graph")) return tdm_graph_print(tdm_config_graph(config), text);
    options.json = args_flag(t, "--json") != NULL;
    options.predicts = args_flag(t, "--predict") != NULL;
    options.after = args_flag(t, "--after");
    options.process = args_flag(t, "--memory") != NULL;
    return tdm_plan_print_with(tdm_config_job(config), tdm_config_graph(config), &options, text);
}

static int check_flags(const tool *t) {
    static const char *const pairs[][2] = {{"--graph", "--after"},    {"--graph", "--predict"}, {"--graph", "--json"},
                                           {"--after", "--json"},     {"--memory", "--graph"},  {"--memory", "--after"},
                                           {"--memory", "--predict"}, {"--memory", "--json"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (args_flag(t, pairs[i][0]) && args_flag(t, pairs[i][1]))
            return args_wrong(t, "`%s` and `%s` cannot be used together", pairs[i][0], pairs[i][1]);
    }
    return TDM_OK;
}

static int run(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    int code = check_flags(t);
    if (code == TDM_OK)
        code = args_flag(t, "--predict") ? job_open_predicting(t, &config) : job_open_training(t, NULL, &config);
    if (code != TDM_OK) return code;
    char *text = NULL;
    tdm_status status = print(t, config, &text);
    return tell_text(status, text);
}

const tool_verb verb_plan = {"plan",
                             "CONFIG [key.path=value ...]",
                             "graph, steps, memory per device, buckets, bytes on the wire",
                             "Prints what one replica does in one step, and what it needs. Uses no device.\n\n"
                             "examples:\n"
                             "  tandem plan job.yaml\n"
                             "  tandem plan job.yaml --graph            layers, shapes, parameters\n"
                             "  tandem plan job.yaml --memory           memory of the process, with the data\n"
                             "  tandem plan job.yaml --after rewrite    the nodes after that pass\n"
                             "  tandem plan job.yaml parallel.mode=ddp --json",
                             {{"--graph", NULL, "the model's layers instead of the steps"},
                              {"--after", "PASS", "the plan after one of its passes: lower, layout, rewrite, ..."},
                              {"--predict", NULL, "the plan of eval and predict, which has no backward"},
                              {"--memory", NULL, "also what the whole process will need on the CPU; opens the data"},
                              {"--json", NULL, "print JSON"}},
                             run,
                             {1, 1, true}};
