/* bench_step.c - `tandem bench step`: measures whole steps in the job's mode. */
#include <math.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/launch/launch.h"
#include "tools/launch/session.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/table.h"
#include "tools/terminal/term.h"

typedef struct measured {
    int64_t warmup, rows;
    double began, wall_ms; /* when the warm-up ended; the time from then to the end */
    int64_t memory_bytes;  /* of one device */
    samples phase[REPORT_PHASES];
    tdm_run_state state;
    json_t *kernels; /* of each layer, from the run's description */
} measured;

static int on_event(const tdm_event *event, void *user) {
    measured *m = user;
    double ms[REPORT_PHASES];
    if (event->kind == TDM_EVENT_STEP && event->step == m->warmup) m->began = progress_now();
    if (event->kind != TDM_EVENT_STEP || event->step <= m->warmup) return 0;
    bench_phases(event, ms);
    for (int i = 0; i < REPORT_PHASES; i++) {
        if (isfinite(ms[i])) samples_add(&m->phase[i], ms[i]);
    }
    m->rows += event->samples;
    return 0;
}

static double samples_per_second(const measured *m) {
    const samples *steps = &m->phase[REPORT_PHASES - 1];
    return (double)m->rows * 1000 / (samples_mean(steps) * (double)steps->count);
}

/* In single mode one replica processes the batches of all device_ids. */
static int devices(const measured *m, const tdm_job *job) {
    return (job->parallel.mode == TDM_MODE_SINGLE ? 1 : m->state.replicas) * (int)job->parallel.stages;
}

static void print_json(const measured *m, const tdm_job *job) {
    json_t *ms = json_object();
    samples steps = m->phase[REPORT_PHASES - 1];
    const double mean = samples_mean(&steps), rate = samples_per_second(m); /* before quantiles sort the steps */
    for (int i = 0; i < REPORT_PHASES; i++) {
        if (m->phase[i].count) json_object_set_new(ms, report_phases[i], json_real(samples_mean(&m->phase[i])));
    }
    json_auto_t *out =
        json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:o, s:O*}", "mode",
                  job_mode_name(job->parallel.mode), "devices", devices(m, job), "global_batch",
                  (json_int_t)m->state.global_batch, "parameters", (json_int_t)m->state.params, "warmup_steps",
                  (json_int_t)m->warmup, "steps", (json_int_t)steps.count, "ms_per_step", mean, "ms_per_step_median",
                  samples_quantile(&steps, 0.5), "ms_per_step_min", samples_quantile(&steps, 0), "ms_per_step_wall",
                  m->wall_ms / (double)steps.count, "memory_bytes", (json_int_t)m->memory_bytes, "samples_per_s", rate,
                  "ms", ms, "kernels", m->kernels);
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    putchar('\n');
}

static void print_table(const measured *m, const tdm_job *job) {
    char number[32];
    const samples *steps = &m->phase[REPORT_PHASES - 1];
    term_print("%s on %d device%s, %lld samples per step, %s parameters; %zu steps after %lld of warm-up",
               job_mode_name(job->parallel.mode), devices(m, job), devices(m, job) == 1 ? "" : "s",
               (long long)m->state.global_batch, text_count(number, m->state.params), steps->count,
               (long long)m->warmup);
    putchar('\n');
    FREED_BY(table_deinit) table rows = table_of(5);
    static const char *const heads[] = {"phase", "mean ms", "median", "min", "% of step"};
    for (int i = 0; i < 5; i++) table_cell(&rows, "%s", heads[i]);
    double step = samples_mean(steps);
    for (int i = 0; i < REPORT_PHASES; i++) {
        const samples *s = &m->phase[i];
        if (!s->count) continue;
        table_cell(&rows, "%s", report_phases[i]);
        table_cell(&rows, "%s", text_ms(number, samples_mean(s)));
        table_cell(&rows, "%s", text_ms(number, samples_quantile(s, 0.5)));
        table_cell(&rows, "%s", text_ms(number, samples_quantile(s, 0)));
        table_cell(&rows, "%.1f", 100 * samples_mean(s) / step);
    }
    table_print(&rows, stdout, true);
    printf("\n  %s samples/s\n", text_number(number, samples_per_second(m)));
}

static int64_t device_memory(tdm_run *run) {
    TDM_FREED char *text = NULL;
    if (tdm_run_print(run, "summary", &text) != TDM_OK) return 0;
    const char *bytes = text_fact(text, "memory_bytes");
    return bytes ? atoll(bytes) : 0;
}

static json_t *kernels(tdm_run *run) {
    TDM_FREED char *text = NULL;
    return tdm_run_print(run, "kernels.json", &text) == TDM_OK ? json_loads(text, 0, NULL) : NULL;
}

static int measure(session *s, int64_t iterations, int64_t warmup) {
    bool json = args_flag(s->t, "--json") != NULL;
    measured m = {.warmup = warmup, .state = TDM_RUN_STATE_INIT};
    int code = session_open(s, on_event, &m);
    if (code != TDM_OK) return code;
    m.began = progress_now();
    tdm_status status = tdm_run_step(s->run, warmup + iterations);
    m.wall_ms = (progress_now() - m.began) * 1e3;
    if (status == TDM_OK) status = tdm_run_get_state(s->run, &m.state);
    if (status == TDM_OK) m.memory_bytes = device_memory(s->run);
    if (status == TDM_OK && json) m.kernels = kernels(s->run);
    if (status != TDM_OK) {
        code = session_failed(s, status);
    } else if (s->shows && json) {
        print_json(&m, s->job);
    } else if (s->shows) {
        print_table(&m, s->job);
    }
    for (int i = 0; i < REPORT_PHASES; i++) samples_free(&m.phase[i]);
    json_decref(m.kernels);
    return code;
}

int bench_step(tool *t) {
    int64_t iterations = 20, warmup = 5;
    if (t->word_count < 2) return args_wrong(t, "`bench step` needs CONFIG");
    if (!bench_counts(t, &iterations, &warmup)) return TDM_E_USAGE;
    FREED char *steps = text_format("train.steps=%lld", (long long)(iterations + warmup));
    const char *const extra[] = {"run.dir=null", "checkpoint.resume=never", "train.epochs=null", steps, NULL};
    FREED_BY(session_close) session s = {.fd = -1};
    t->word[0] = t->word[1];
    int code = session_configure(&s, t, extra);
    if (code != TDM_OK) return code;
    int world = session_ranks_to_start(&s, false);
    return world > 0 ? launch_ranks(t, world) : measure(&s, iterations, warmup);
}
