/* cmd_compare.c - `tandem compare`: runs the same job in several modes, with the same initial weights and samples, and
 * compares the runs. Each mode runs in a `tandem train` process of its own, so that its peak memory can be measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/report/compare.h"
#include "tools/launch/hosts.h"
#include "tools/launch/launch.h"
#include "tools/terminal/outlet.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

enum { ONE_DEVICE_STEPS = 30 }; /* of the single-device run, the baseline of the speed-up */

static int parse_modes(comparison *c, const char *text) {
    while (*text) {
        size_t length = strcspn(text, ",");
        const char *found = NULL, *name;
        for (int i = 0; (name = job_mode_name(i)) != NULL; i++) {
            if (strlen(name) == length && strncmp(name, text, length) == 0) found = name;
        }
        if (!found || c->count == COMPARE_MODES_MAX) {
            return args_wrong(c->t, "`--modes` must be two to %d of single, dp, ddp, separated by commas, got `%s`",
                              COMPARE_MODES_MAX, args_flag(c->t, "--modes"));
        }
        c->mode[c->count++] = found;
        text += length + (text[length] == ',');
    }
    if (c->count >= 2) return TDM_OK;
    return args_wrong(c->t, "`--modes` needs at least two modes, as in --modes dp,ddp");
}

/* "loss=1e-5,params=1e-4". A part that is not given must be equal. */
static int parse_tolerance(comparison *c, const char *text) {
    c->tolerance_given = true;
    while (*text) {
        double *to = strncmp(text, "loss=", 5) == 0     ? &c->loss_tolerance
                     : strncmp(text, "params=", 7) == 0 ? &c->param_tolerance
                                                        : NULL;
        char *end = NULL;
        double value = to ? strtod(strchr(text, '=') + 1, &end) : -1;
        if (!to || end == strchr(text, '=') + 1 || !(value >= 0) || (*end && *end != ',')) {
            return args_wrong(c->t, "`--tolerance` must be loss=F,params=F, got `%s`", args_flag(c->t, "--tolerance"));
        }
        *to = value;
        text = end + (*end == ',');
    }
    return TDM_OK;
}

/* ---- ddp on several hosts ---- */

static const char *const of_hosts[] = {"--ssh", "--remote-tandem", "--master-addr", "--master-port", NULL};

static bool compares_ddp(const comparison *c) {
    int at = 0;
    while (at < c->count && strcmp(c->mode[at], "ddp") != 0) at++;
    return at < c->count;
}

/* The runs are read where they are written, by rank 0. */
static int check_hosts(const comparison *c, const launch_hosts *hosts, int *ranks) {
    *ranks = 0;
    if (!compares_ddp(c)) return args_wrong(c->t, "`--hosts` says where ddp runs, which is not one of `--modes`");
    if (!hosts->host[0].is_here)
        return args_wrong(c->t, "`--hosts` must begin with this machine, which reads the runs, got `%s`",
                          hosts->host[0].name);
    for (int i = 0; i < hosts->count; i++) {
        const launch_host *host = &hosts->host[i];
        if (host->ranks == 0)
            return args_wrong(c->t, "`--hosts` must say the number of ranks of each host; write `%s:2` for two",
                              host->name);
        *ranks += host->ranks;
    }
    if (*ranks > LAUNCH_RANKS_MAX)
        return args_wrong(c->t, "the other modes have at most %d devices, and `--hosts` has %d ranks", LAUNCH_RANKS_MAX,
                          *ranks);
    return TDM_OK;
}

static int read_hosts(comparison *c) {
    FREED_BY(hosts_free) launch_hosts hosts = {0};
    int ranks;
    c->hosts = args_flag(c->t, "--hosts");
    const char *alone = args_any(c->t, of_hosts);
    if (!c->hosts) return alone ? args_wrong(c->t, "`%s` is for `--hosts`, which is missing", alone) : TDM_OK;
    if (hosts_read(c->t, c->hosts, &hosts) != TDM_OK) return TDM_E_USAGE;
    const int code = check_hosts(c, &hosts, &ranks);
    c->devices = text_copy("parallel.device_ids=[0");
    for (int i = 1; i < ranks; i++) {
        FREED char *before = c->devices;
        c->devices = text_format("%s, %d", before, i);
    }
    FREED char *open = c->devices;
    c->devices = text_format("%s]", open);
    return code;
}

/* The verb with its own flags. */
static void add_verb(const comparison *c, const char *mode, text_list *argv) {
    const bool is_launched = c->hosts && strcmp(mode, "ddp") == 0;
    text_add(argv, "tandem");
    text_add(argv, is_launched ? "launch" : "train");
    if (is_launched) text_add(argv, "--hosts=%s", c->hosts);
    for (int i = 0; is_launched && of_hosts[i]; i++) {
        const char *value = args_flag(c->t, of_hosts[i]);
        if (value) text_add(argv, "%s=%s", of_hosts[i], value);
    }
}

/* ---- the runs ---- */

/* The output folder: --out, or compare-<time> beside the job's own run directories. */
static char *choose_folder(const comparison *c) {
    const char *out = args_flag(c->t, "--out"), *dir = c->job->run.dir;
    if (out) return text_copy(out);
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    const char *slash = dir ? strrchr(dir, '/') : NULL;
    FREED char *folder = slash ? text_format("%.*s/compare-%s", (int)(slash - dir), dir, stamp)
                               : text_format("runs/%s/compare-%s", c->job->name, stamp);
    return files_unused(folder);
}

/* Runs this job in the given mode and folder, with every step in metrics.jsonl. */
static int train(const comparison *c, const char *mode, const char *dir, int64_t steps) {
    const tool *t = c->t;
    FREED_BY(text_list_free) text_list argv = {0};
    add_verb(c, mode, &argv);
    text_add(&argv, "%s", t->word[0]);
    for (int i = 0; i < t->override_count; i++) text_add(&argv, "%s", t->override[i]);
    if (c->devices) text_add(&argv, "%s", c->devices);
    text_add(&argv, "parallel.dp.scatter=strided");
    if (c->only_ddp && strcmp(mode, "ddp") != 0) text_add(&argv, "parallel.ddp.average=samples");
    text_add(&argv, "log.every=1 steps");
    text_add(&argv, "--mode=%s", mode);
    text_add(&argv, "--resume=never");
    text_add(&argv, "--run-dir=%s", dir);
    text_add(&argv, t->quiet || !term_is_terminal(stderr) ? "--quiet" : "--brief");
    if (steps > 0) text_add(&argv, "--steps=%lld", (long long)steps);
    int code = launch_command(argv.text);
    bool is_stopped = stop_signal() != 0 && (code == TDM_OK || c->runs > 0); /* the finished runs are kept */
    return is_stopped ? TDM_E_STOPPED : code;
}

/* `why` is printed after the name. */
static int train_and_read(comparison *c, const char *mode, const char *name, const char *why, int64_t steps,
                          report_run *run) {
    FREED char *dir = text_format("%s/%s", c->folder, name);
    FREED char *metrics = text_format("%s/metrics.jsonl", dir);
    int code = TDM_OK;
    if (files_is_link(dir)) {
        code = args_wrong(c->t, "%s is a symbolic link, which is not followed; give a new folder with --out", dir);
    } else if (files_exists(metrics)) {
        code = args_wrong(c->t, "%s already holds a run; give a new folder with --out", dir);
    } else {
        if (!c->t->quiet) term_line("tandem: training %s%s", name, why);
        code = train(c, mode, dir, steps);
    }
    if (code == TDM_OK) {
        code = report_read(run, dir);
    } else if (code != TDM_E_USAGE) {
        term_line("tandem: the %s run ended with code %d; its files are in %s", name, code, dir);
    }
    return code;
}

static int train_all(comparison *c, int64_t steps) {
    for (int i = 0; i < c->count; i++) {
        int same = 1;
        for (int k = 0; k < i; k++) same += c->mode[k] == c->mode[i];
        FREED char *name = same > 1 ? text_format("%s-%d", c->mode[i], same) : text_copy(c->mode[i]);
        const bool is_launched = c->hosts && strcmp(c->mode[i], "ddp") == 0;
        FREED char *why = compare_is_without(c, i) ? text_format(" without %s", c->only_ddp)
                          : is_launched            ? text_format(" on %s", c->hosts)
                                                   : text_copy("");
        int code = train_and_read(c, c->mode[i], name, why, steps, &c->run[i]);
        if (code == TDM_OK) {
            c->runs++;
            free(c->run[i].label);
            c->run[i].label = text_copy(name);
            if (strcmp(c->mode[i], "single") == 0) c->one_device = report_number(&c->run[i], "samples_per_s");
        }
        if (code != TDM_OK) return code;
    }
    return TDM_OK;
}

/* A short run on one device, for the speed-up alone. */
static int train_one_device(comparison *c, int64_t steps) {
    report_run run;
    if (isfinite(c->one_device)) return TDM_OK;
    int64_t done = (int64_t)report_number(&c->run[0], "step");
    if (steps <= 0 || steps > done) steps = done;
    if (steps > ONE_DEVICE_STEPS) steps = ONE_DEVICE_STEPS;
    FREED char *why = text_format(": %lld steps in single mode, as the baseline of the speed-up", (long long)steps);
    int code = train_and_read(c, "single", "one-device", why, steps, &run);
    if (code != TDM_OK) return code;
    c->one_device = report_number(&run, "samples_per_s");
    report_free(&run);
    return TDM_OK;
}

static int write_all(const comparison *c) {
    FREED char *path = text_format("%s/compare.json", c->folder), *page = text_format("%s/report.html", c->folder);
    json_auto_t *json = compare_json(c);
    FREED char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    int code = text ? files_write(path, text, strlen(text)) : TDM_E_MEMORY;
    return code == TDM_OK ? report_write(page, c->run, c->runs, json, false) : code;
}

static int parse(comparison *c) {
    if (!args_int(c->t, "--steps", 1, &c->steps)) return TDM_E_USAGE;
    const char *modes = args_flag(c->t, "--modes"), *tolerance = args_flag(c->t, "--tolerance");
    int code = parse_modes(c, modes ? modes : "dp,ddp");
    if (code == TDM_OK && tolerance) code = parse_tolerance(c, tolerance);
    return code == TDM_OK ? read_hosts(c) : code;
}

/* Sums over several GPUs have no fixed order. */
static void default_tolerance(comparison *c) {
    const char *device = json_string_value(json_object_get(c->run[0].summary, "device"));
    if (c->tolerance_given || !device || strcmp(device, "cuda") != 0) return;
    c->tolerance_given = true;
    c->loss_tolerance = 1e-5;
    c->param_tolerance = 1e-4;
}

static int compare(comparison *c) {
    c->folder = choose_folder(c);
    int code = train_all(c, c->steps);
    if (code == TDM_OK) default_tolerance(c);
    if (code == TDM_OK) code = train_one_device(c, c->steps);
    if (code == TDM_OK) code = compare_measure(c);
    if (code == TDM_OK) code = write_all(c);
    if (code != TDM_OK) return code;
    c->t->is_kept = true;
    compare_print(c);
    return c->within ? TDM_OK : TDM_E_CHECK;
}

/* Of the two modes that are compared by default, dp has no replicas over several devices. */
static void leave_out_dp(comparison *c) {
    c->mode[0] = "single";
    c->is_without_dp = true;
    if (!c->t->quiet) term_line("tandem: dp is left out, which has no parallel.stages; single is compared with ddp");
}

/* The modes that are compared count, not that of the file: what needs ddp is no fault if ddp is one of them. */
static int open_job(comparison *c, tdm_config **config) {
    FREED char *override = text_format("parallel.mode=%s", compares_ddp(c) ? "ddp" : c->mode[0]);
    const char *const extra[] = {override, c->devices, NULL};
    int code = job_open_training(c->t, extra, config);
    if (code != TDM_OK) return code;
    c->job = tdm_config_job(*config);
    if (c->job->parallel.stages > 1 && !args_flag(c->t, "--modes")) leave_out_dp(c);
    const tdm_parallel_section *parallel = &c->job->parallel;
    if (parallel->device_ids.count > 1 && parallel->ddp.average == TDM_AVERAGE_RANKS)
        c->only_ddp = "parallel.ddp.average: ranks";
    return TDM_OK;
}

static int run(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    comparison c = {.t = t, .one_device = NAN};
    stop_begin(false, t->quiet);
    outlet_hold(stop_signal);
    int code = parse(&c);
    if (code == TDM_OK) code = open_job(&c, &config);
    if (code == TDM_OK) code = compare(&c);
    for (int i = 0; i < c.runs; i++) report_free(&c.run[i]);
    free(c.folder);
    free(c.devices);
    return code;
}

const tool_verb verb_compare = {
    "compare",
    "CONFIG [key.path=value ...]",
    "the same job in two or more modes, side by side, with a verdict",
    "Trains the job once per mode, with the same initial weights and the same global\n"
    "batches (strided scatter). Reports how much losses and parameters differ, how\n"
    "fast each mode was, and how long each phase of a step took. Unless single is\n"
    "one of the modes, it also trains up to 30 steps on one device, as the baseline\n"
    "of the speed-up. Writes compare.json and report.html. Exits with code 12 if the\n"
    "modes differ by more than the tolerance. Without a tolerance every bit must be\n"
    "equal.\n\n"
    "Compression is the same in all modes. parallel.ddp.average: ranks, which only\n"
    "ddp computes, is left out of the others, and they differ by its effect on\n"
    "losses and parameters. dp has no parallel.stages: without --modes, such a job\n"
    "is compared in single and ddp.\n\n"
    "examples:\n"
    "  tandem compare job.yaml --steps 50\n"
    "  tandem compare job.yaml --modes single,dp,ddp parallel.device_ids='[0, 1]'\n"
    "  tandem compare job.yaml --modes single,ddp --hosts node-0:2,node-1:2\n"
    "  tandem compare job.yaml --tolerance loss=1e-5,params=1e-4 --out runs/compare",
    {{"--modes", "LIST",
      "two or more of single, dp, ddp, separated by commas (dp,ddp; with parallel.stages single,ddp)"},
     {"--steps", "N", "steps of each run (default: as in CONFIG)"},
     {"--tolerance", "T", "loss=F,params=F: the largest differences allowed; a part not given must be equal"},
     {"--hosts", "HOST:N,...", "run ddp with N ranks on each host, this one first"},
     {"--ssh", "COMMAND", "as of `tandem launch`"},
     {"--remote-tandem", "PATH", "as of `tandem launch`"},
     {"--master-addr", "HOST", "as of `tandem launch`"},
     {"--master-port", "PORT", "as of `tandem launch`"},
     {"--out", "DIR", "a new folder for the runs, compare.json and report.html (-o)"}},
    run,
    {1, 1, true}};
