/* cmd_train.c - `tandem train`: runs the job, shows its progress, and prints the next command to type. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/doctor.h>

#include "tools/commands/banner.h"
#include "tools/commands/train.h"
#include "tools/launch/launch.h"
#include "tools/launch/orders.h"
#include "tools/terminal/log.h"
#include "tools/terminal/outlet.h"
#include "tools/terminal/progress.h"
#include "tools/report/report.h"
#include "tools/report/saved.h"
#include "tools/launch/session.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

typedef struct training {
    session s;
    progress bar;
    bool brief; /* no banner, no summary */
    int64_t restarts;
    bool is_launch;     /* the verb is `tandem launch` */
    launch_nodes nodes; /* count 0: there is only this host */
    char *writes;       /* the run directory in which this process records how the job ended, or NULL */
    bool stands_in;     /* a rank of another launcher: it records the end only if rank 0, which does so, was killed */
    char *reason;       /* why the job ended */
} training;

static int on_event(const tdm_event *event, void *user) {
    training *tr = user;
    if (tr->s.shows) progress_event(&tr->bar, event);
    return 0;
}

/* Writes env.json: the machine that produced the run's numbers. */
static void write_environment(const session *s) {
    if (!s->shows || !s->job->run.dir) return;
    FREED char *path = text_format("%s/env.json", s->job->run.dir);
    TDM_FREED char *text = NULL;
    bool alone = s->job->parallel.kernels == TDM_KERNELS_REF;
    tdm_status status =
        tdm_environment(&s->t->host, alone ? TDM_ENVIRONMENT_JSON_ALONE : TDM_ENVIRONMENT_JSON_LOADED, &text);
    if (status == TDM_E_MEMORY) memory_missing();
    if (status == TDM_OK || status == TDM_E_CHECK) files_try(path, text, strlen(text));
}

static void before_first_step(training *tr, bool dry) {
    session *s = &tr->s;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    if (!s->shows || tdm_run_get_state(s->run, &state) != TDM_OK) return;
    launch_began(&s->facts, state.step);
    banner b = {s->t, s->job, tdm_config_graph(s->config), &s->facts, s->run, &state, dry};
    if (!s->t->quiet && !tr->brief && launch_restarts() == 0) banner_print(&b);
    progress_start(&tr->bar, s->job, &state, s->t->quiet);
}

static void write_report(const char *dir) {
    report_run run;
    if (!dir) return;
    if (!report_try(&run, dir)) {
        int reason = errno;
        FREED char *metrics = text_format("%s/metrics.jsonl", dir);
        term_line("tandem: warning: %s/report.html is not written: metrics.jsonl cannot be read: %s", dir,
                  files_refusal(metrics, reason));
        return;
    }
    FREED char *path = text_format("%s/report.html", dir);
    size_t bytes;
    FREED char *page = report_page(&run, 1, NULL, false, &bytes);
    files_try(path, page, bytes);
    report_free(&run);
}

/* Exit code 75 means that there is a checkpoint. */
static int stopped_code(const session *s) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    bool is_saved = s->job->run.dir && tdm_run_get_state(s->run, &state) == TDM_OK && state.step > 0;
    return is_saved ? TDM_E_STOPPED : 128 + (stop_signal() ? stop_signal() : SIGTERM);
}

static int train(training *tr) {
    session *s = &tr->s;
    tdm_status status = tdm_run_train(s->run);
    stop_run(NULL);
    progress_end(&tr->bar);
    if (status != TDM_OK && status != TDM_E_STOPPED) return session_failed(s, status);
    bool stopped = status == TDM_E_STOPPED;
    int code = stopped ? stopped_code(s) : TDM_OK;
    if (s->shows && code <= TDM_E_STOPPED) {
        write_report(s->job->run.dir);
        if (!s->t->quiet && !tr->brief) {
            term_mark(stopped ? TERM_YELLOW : TERM_GREEN, "", stopped ? "stopped on request" : "finished", "%s", "");
        }
        summary_print(s->t, s->job, s->run, stopped, tr->brief);
    } else if (s->shows && !s->t->quiet) {
        term_line("%s", tdm_error_message());
    }
    return code;
}

static bool says(const json_t *object, const char *key, const char *value) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, value) == 0;
}

/* True if every step is done, or the run has ended early, and the summary is written. Then nothing in the run directory
 * may be overwritten. */
static bool is_finished(const session *s) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    if (!s->job->run.dir || tdm_run_get_state(s->run, &state) != TDM_OK) return false;
    if (state.step < state.steps_total && !state.has_ended) return false;
    json_auto_t *summary = report_object(s->job->run.dir, "summary.json");
    return says(summary, "exit_reason", "finished") &&
           json_number_value(json_object_get(summary, "step")) == (double)state.step;
}

static void tell_done(const session *s) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    if (tdm_run_get_state(s->run, &state) == TDM_OK && state.step < state.steps_total)
        term_line("nothing to do: train.stop_early has ended %s after step %lld; raise train.stop_early.after to go on",
                  s->job->run.dir, (long long)state.step);
    else
        term_line("nothing to do: all steps of %s are done", s->job->run.dir);
}

/* Only the host of rank 0 need have the run directory. There rank 0 looks, and tells the others. */
static tdm_status learn_whether_finished(const session *s, bool *out) {
    unsigned char finished = s->comm == NULL || s->facts.rank == 0 ? is_finished(s) : 0;
    tdm_status status = TDM_OK;
    if (s->comm != NULL) status = tdm_comm_broadcast(s->comm, (tdm_span){&finished, 1, TDM_DTYPE_U8}, 0);
    *out = finished != 0;
    return status;
}

/* This process trains: alone or as one rank. */
static int run_here(training *tr, bool dry) {
    session *s = &tr->s;
    int code = session_open(s, on_event, tr);
    if (code != TDM_OK) return code;
    stop_run(s->run);
    if (s->job->run.dir) log_open(s->job->run.dir, s->facts.rank);
    if (!dry) write_environment(s);
    before_first_step(tr, dry);
    if (dry) return TDM_OK;
    s->t->is_kept = s->job->run.dir != NULL;
    bool finished;
    const tdm_status status = learn_whether_finished(s, &finished);
    if (status != TDM_OK) return session_failed(s, status);
    if (!finished) return train(tr);
    if (s->shows) {
        if (!s->t->quiet) tell_done(s);
        summary_print(s->t, s->job, s->run, false, tr->brief);
    }
    return TDM_OK;
}

/* A start time has a resolution of one second, so two runs may get the same name: the second gets a suffix. Ranks that
 * another launcher started cannot agree on a suffix and keep the name. */
static int choose_new_folder(session *s) {
    if (!s->job->run.has_its_time || s->facts.world > 1 || !files_exists(s->job->run.dir)) return TDM_OK;
    FREED char *unused = files_unused(s->job->run.dir);
    tdm_status status = tdm_config_override_text(s->config, "run.dir", unused);
    if (status == TDM_OK) status = tdm_config_check(s->config);
    if (status != TDM_OK) return tell_error(status);
    s->job = tdm_config_job(s->config);
    return TDM_OK;
}

/* Rank 0 shows the job, and it is on host 0. */
static void tell_of_host(const training *tr, int world, const char *what) {
    const launch_nodes *nodes = &tr->nodes;
    const int first = launch_ranks_before(nodes, nodes->rank, world), last = first + world - 1;
    if (nodes->rank == 0 || tr->s.t->quiet) return;
    FREED char *ranks = world == 1 ? text_format("rank %d", first) : text_format("ranks %d to %d", first, last);
    term_line("tandem: host %d of %d, %s of %d: %s", nodes->rank, nodes->count, ranks,
              launch_ranks_before(nodes, nodes->count, world), what);
}

/* Seconds without a word of the launching host, beyond the silence that ranks allow each other: they notice first. */
static const double orders_silence = 10;

/* The parent passes on the run directory that it chose: a start time in the name must be read only once. */
static int start_processes(training *tr, int world) {
    const session *s = &tr->s;
    const char *dir = s->job->run.dir, *resume = s->job->checkpoint.resume;
    FREED char *extra = dir && !args_flag(s->t, "--run-dir") ? job_path_override("run.dir", dir) : NULL;
    launch_job job = {.t = s->t,
                      .world = world,
                      .nodes = tr->nodes,
                      .extra = extra,
                      .grace = s->job->parallel.ddp.grace,
                      .heartbeat = s->job->parallel.ddp.heartbeat,
                      .goes_on = resume && strcmp(resume, "auto") == 0,
                      .stop_code = saved_code(s->job)};
    launch_end end;
    FREED char *joining = tr->nodes.rank == 0 ? NULL
                                              : text_format("joining at %s:%d; host 0 shows the progress",
                                                            tr->nodes.master, tr->nodes.port);
    tell_of_host(tr, world, joining);
    if (s->t->orders) orders_follow(isnan(job.heartbeat) ? 0 : orders_silence + 2 * job.heartbeat);
    if (tr->restarts > 0) {
        restart_run(&job, dir, tr->restarts, &end);
    } else {
        launch_run(&job, &end);
    }
    tr->restarts = job.restarts;
    tr->reason = end.left_at_once ? stop_reason(end.code) : text_copy(end.error.message);
    if (end.code == TDM_OK) tell_of_host(tr, world, "finished");
    return launch_tell(&end);
}

/* --restarts is for processes that tandem starts. Another launcher must restart its own processes. */
static int check_restarts(const training *tr) {
    const session *s = &tr->s;
    if (tr->restarts == 0 || launch_is_watched()) return TDM_OK;
    if (!s->job->run.dir) {
        return args_wrong(s->t, "`--restarts` needs checkpoints, but run.dir is null; give a folder with --run-dir");
    }
    if (s->facts.world <= 1) return TDM_OK;
    return args_wrong(s->t,
                      "`--restarts` works only for processes that tandem starts, but %s started these; use the "
                      "restarts of that launcher",
                      tdm_launch_source_name(s->facts.source));
}

int train_check_launched(const tool *t, const tdm_job *job) {
    if (job->parallel.mode == TDM_MODE_DDP) return TDM_OK;
    return args_wrong(t, "`tandem launch` starts the ranks of mode ddp, but the job has mode %s; add --mode ddp",
                      job_mode_name(job->parallel.mode));
}

/* Who records how the job ended: the parent if there is one, else rank 0. */
static int run_somewhere(training *tr, bool dry) {
    session *s = &tr->s;
    bool watched = launch_is_watched();
    const int refused = tr->is_launch ? train_check_launched(s->t, s->job) : TDM_OK;
    if (refused != TDM_OK) return refused;
    int world = session_ranks_to_start(s, tr->nodes.count > 0), code = choose_new_folder(s);
    if (code == TDM_OK) code = check_restarts(tr);
    if (code != TDM_OK) return code;
    bool starts = world > 0 || (tr->restarts > 0 && !watched && !dry);
    const bool records = !watched && tr->nodes.rank == 0; /* of several hosts the one of rank 0 */
    if (s->job->run.dir && records) tr->writes = text_copy(s->job->run.dir);
    tr->stands_in = !s->shows;
    if (starts) return start_processes(tr, world);
    tr->restarts = launch_restarts();
    stop_in(tr->stands_in ? NULL : tr->writes, (int)tr->restarts);
    return run_here(tr, dry);
}

static bool is_marked_running(const char *dir) {
    json_auto_t *status = report_object(dir, "status.json");
    return says(status, "state", "running");
}

/* Call after the run is closed: an open run locks its folder. */
static void write_end(const training *tr, int code) {
    const char *reason = tr->reason && tr->reason[0] ? tr->reason
                         : code == TDM_E_STOPPED     ? "stopped on request"
                         : code > TDM_E_STOPPED      ? "stopped on request, with nothing to save"
                                                     : "";
    if (tdm_launch_ended(tr->writes, code, (int)tr->restarts, reason) != TDM_OK) {
        term_line("tandem: warning: %s", tdm_error_message());
    }
}

static int print_config(const session *s) {
    char *text = NULL;
    tdm_status status = tdm_config_print(s->config, TDM_CONFIG_ORIGINS, &text);
    return tell_text(status, text);
}

int train_run(tool *t, const launch_nodes *nodes) {
    static const char *const dry_run[] = {"run.dir=null", NULL}, *const go_on[] = {"checkpoint.resume=auto", NULL};
    training tr = {.brief = args_flag(t, "--brief") != NULL, .is_launch = nodes != NULL};
    bool dry = args_flag(t, "--dry-run") != NULL;
    int64_t steps = 0;
    if (nodes) tr.nodes = *nodes;
    if (!args_int(t, "--steps", 1, &steps) || !args_int(t, "--restarts", 0, &tr.restarts)) return TDM_E_USAGE;
    if (dry) tr.restarts = 0;
    stop_begin(launch_is_watched(), t->quiet);
    outlet_hold(stop_signal);
    int code = session_configure(&tr.s, t, dry ? dry_run : launch_goes_on() ? go_on : NULL);
    if (code == TDM_OK) code = args_flag(t, "--print-config") ? print_config(&tr.s) : run_somewhere(&tr, dry);
    /* Before the run is closed, which may fail for another reason. */
    if (!tr.reason && code != TDM_OK && code < TDM_E_STOPPED) tr.reason = text_copy(tdm_error_message());
    session_close(&tr.s);
    if (tr.writes && (!tr.stands_in || (code != TDM_OK && is_marked_running(tr.writes)))) write_end(&tr, code);
    free(tr.writes);
    free(tr.reason);
    return code;
}

static int run(tool *t) {
    return train_run(t, NULL);
}

const tool_verb verb_train = {
    "train",
    "CONFIG [key.path=value ...]",
    "runs the job; starts the local ranks of a ddp job",
    "Trains the model of CONFIG and writes everything to the run directory:\n"
    "configuration, metrics.jsonl, checkpoints, logs, summary.json. On SIGTERM,\n"
    "SIGHUP, Ctrl-C, or a batch system's SIGUSR1, SIGUSR2 or SIGXCPU it finishes the\n"
    "step, saves a checkpoint and exits with code 75. A second signal ends it at\n"
    "once. A run directory that has a checkpoint is continued (checkpoint.resume:\n"
    "auto).\n\n"
    "In ddp mode it starts one process per device, unless torchrun, srun or mpirun\n"
    "already did. With --restarts it restarts a job whose processes die, from its\n"
    "last checkpoint. It gives up after two restarts in a row without a new\n"
    "checkpoint.\n\n"
    "examples:\n"
    "  tandem train job.yaml\n"
    "  tandem train job.yaml --mode ddp parallel.device_ids='[0, 1]'\n"
    "  tandem train job.yaml --steps 100 optimizer.lr=1e-4 --run-dir runs/try\n"
    "  tandem train job.yaml --run-dir runs/try --steps 200    continues from step 100\n"
    "  tandem train job.yaml --run-dir runs/try --restarts 5\n"
    "  torchrun --no-python --nproc_per_node=2 tandem train job.yaml",
    {{"--mode", "single|dp|ddp", "how devices share the work (parallel.mode)"},
     {"--steps", "N", "total steps, including those of an earlier run (train.steps)"},
     {"--resume", "auto|never|PATH",
      "the checkpoint to continue from: the newest of the run, none, or PATH (checkpoint.resume)"},
     {"--run-dir", "DIR", "the run directory (run.dir)"},
     {"--restarts", "N", "restart the job up to N times if one of its processes dies (0)"},
     {"--dry-run", NULL, "open the data, build the model, print what would run; write nothing"},
     {"--print-config", NULL, "print every value with its origin and exit"},
     {"--brief", NULL, "progress only: no banner, no summary"}},
    run,
    {1, 1, true}};
