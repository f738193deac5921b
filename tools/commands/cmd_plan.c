/* cmd_plan.c - `tandem plan`: what a run will do, without devices or other processes; --memory opens the data, and
 * --scale does, if it measures. */
#include "tools/terminal/term.h"

#include <tandem/scale.h>

/* ---- --scale ---- */

/* Each of these flags implies --scale. */
static const char *const scale_flags[] = {"--scale",  "--hosts", "--devices", "--link",       "--local",
                                          "--device", "--times", "--cores",   "--all-reduce", "--loader"};

static const char *scale_flag(const tool *t) {
    for (size_t i = 0; i < sizeof scale_flags / sizeof scale_flags[0]; i++)
        if (args_flag(t, scale_flags[i])) return scale_flags[i];
    return NULL;
}

/* The link of a flag into *link, and where it is into *out; NULL without the flag. */
static tdm_status read_link(const tool *t, const char *flag, tdm_link *link, const tdm_link **out) {
    const char *text = args_flag(t, flag);
    if (!text) return TDM_OK;
    *out = link;
    return tdm_link_parse(text, link);
}

static tdm_status read_times(const tool *t, tdm_plan_scale_options *options) {
    double seconds[4] = {0, 0, 0, 0};
    const char *text = args_flag(t, "--times");
    tdm_status status = text ? tdm_scale_times_parse(text, seconds) : TDM_OK;
    options->forward = seconds[0];
    options->backward = seconds[1];
    options->update = seconds[2];
    options->jitter = seconds[3];
    return status;
}

static bool read_counts(const tool *t, tdm_plan_scale_options *options) {
    int64_t hosts = 0, devices = 0;
    int all_reduce = TDM_ALL_REDUCE_AUTO;
    if (!args_int(t, "--hosts", 1, &hosts) || !args_int(t, "--devices", 1, &devices)) return false;
    if (!args_number(t, "--cores", false, &options->cores) || !args_number(t, "--loader", false, &options->loader) ||
        !args_choice(t, "--all-reduce", &all_reduce))
        return false;
    options->hosts = hosts < TDM_SCALE_DEVICES_MAX ? (int)hosts : TDM_SCALE_DEVICES_MAX;
    options->devices = devices < TDM_SCALE_DEVICES_MAX ? (int)devices : TDM_SCALE_DEVICES_MAX;
    options->all_reduce = (tdm_all_reduce)all_reduce;
    return true;
}

static int scale(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    tdm_plan_scale_options options = TDM_PLAN_SCALE_OPTIONS_INIT;
    tdm_link local, between;
    char *text = NULL;
    options.json = args_flag(t, "--json") != NULL;
    options.device = args_flag(t, "--device");
    if (!read_counts(t, &options)) return TDM_E_USAGE;
    tdm_status status = read_link(t, "--local", &local, &options.local);
    if (status == TDM_OK) status = read_link(t, "--link", &between, &options.between);
    if (status == TDM_OK) status = read_times(t, &options);
    if (status != TDM_OK) return tell_error(status);
    int code = job_open_training(t, NULL, &config);
    if (code != TDM_OK) return code;
    status = tdm_plan_scale(tdm_config_job(config), tdm_config_graph(config), &options, &text);
    code = tell_text(status, text);
    if (status == TDM_E_DATA) /* only measuring reads it */
        term_line("       without the data, --device NAME or --times F,B,REST says how long a step takes");
    return code;
}

/* ---- the plan ---- */

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
    static const char *const others[] = {"--graph", "--after", "--memory"};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (args_flag(t, pairs[i][0]) && args_flag(t, pairs[i][1]))
            return args_wrong(t, "`%s` and `%s` cannot be used together", pairs[i][0], pairs[i][1]);
    }
    for (size_t i = 0; scale_flag(t) && i < sizeof others / sizeof others[0]; i++) {
        if (args_flag(t, others[i]))
            return args_wrong(t, "`%s` and `%s` cannot be used together", others[i], scale_flag(t));
    }
    return TDM_OK;
}

static int run(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    int code = check_flags(t);
    if (code != TDM_OK) return code;
    if (scale_flag(t)) return scale(t);
    code = args_flag(t, "--predict") ? job_open_predicting(t, &config) : job_open_training(t, NULL, &config);
    if (code != TDM_OK) return code;
    char *text = NULL;
    tdm_status status = print(t, config, &text);
    return tell_text(status, text);
}

const tool_verb verb_plan = {
    "plan",
    "CONFIG [key.path=value ...]",
    "graph, steps, memory per device, buckets, bytes on the wire; how it would scale",
    "Prints what one replica does in one step, and what it needs. Uses no device. With --scale, or any flag "
    "that describes a scale, it predicts the step in ddp on 1, 2, 4, ... devices: its time, the communication "
    "that it waits for, and the efficiency. The times of one device are measured here, unless --device or --times "
    "says them (runtime/docs/scale.md).\n\n"
    "examples:\n"
    "  tandem plan job.yaml\n"
    "  tandem plan job.yaml --graph            layers, shapes, parameters\n"
    "  tandem plan job.yaml --memory           memory of the process, with the data\n"
    "  tandem plan job.yaml --after rewrite    the nodes after that pass\n"
    "  tandem plan job.yaml parallel.mode=ddp --json\n"
    "  tandem plan job.yaml --scale --hosts 16 --devices 8 --link 25Gb,20us --device h100\n"
    "  tandem plan job.yaml --scale --link 10Gb,50us --times 46ms,107ms,6.6ms",
    {{"--graph", NULL, "the model's layers instead of the steps"},
     {"--after", "PASS", "the plan after one of its passes: lower, layout, rewrite, ..."},
     {"--predict", NULL, "the plan of eval and predict, which has no backward"},
     {"--memory", NULL, "also what the whole process will need on the CPU; opens the data"},
     {"--scale", NULL, "predict step time and efficiency on more devices"},
     {"--hosts", "H", "scale: hosts at most (as 1,024 devices need)"},
     {"--devices", "D", "scale: devices of each host (the job's)"},
     {"--link", "RATE,LATENCY[,COST]", "scale: between hosts; bits (25Gb) or bytes (3GB/s) a second (25Gb,20us)"},
     {"--local", "RATE,LATENCY[,COST]",
      "scale: between devices of a host (of the kind of device; of this machine's CPU: measured)"},
     {"--device", "NAME",
      "scale: the kind of device, cpu, p100, v100, a100, h100 or h200: its times, unless --times has them"},
     {"--times", "F,B,REST[,JITTER]", "scale: one device's times of forward, backward and the rest: 46ms,107ms,7ms"},
     {"--cores", "N", "scale: CPU cores of a host (as this machine; with --device one for each thread of its devices)"},
     {"--loader", "N", "scale: samples/s that a host reads at most, as `tandem bench data` prints (no limit)"},
     {"--all-reduce", "auto|segments|ring|tree|levels", "scale: how gradients are added (auto)"},
     {"--json", NULL, "print JSON"}},
    run,
    {1, 1, true}};
