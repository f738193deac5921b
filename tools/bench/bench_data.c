/* bench_data.c - `tandem bench data`: measures the loader by training a model that costs almost nothing. */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/terminal/json.h"
#include "tools/terminal/progress.h"

/* The average of each channel, then a linear layer with the outputs of the real model, so that labels and targets fit.
 */
static tdm_status cheap_graph(tdm_graph **out, const tool *t, const tdm_graph *real, int64_t outputs) {
    int64_t shape[6];
    int ndim = tdm_graph_shape(real, 0, shape);
    char width[32];
    snprintf(width, sizeof width, "%lld", (long long)outputs);
    const tdm_attr one = {"out", "1", {NULL, 0, 0}}, linear = {"out", width, {NULL, 0, 0}};
    const bench_layer layers[] = {{ndim == 3 ? "adaptive_avgpool2d" : NULL, NULL, &one, 1},
                                  {ndim > 1 ? "flatten" : NULL, NULL, NULL, 0},
                                  {"linear", NULL, &linear, 1}};
    return bench_graph(out, t, ndim, shape, layers, 3);
}

typedef struct reading {
    int64_t warmup, rows;
    double waited_ms, started;
} reading;

static int on_event(const tdm_event *event, void *user) {
    reading *r = user;
    if (event->kind != TDM_EVENT_STEP) return 0;
    if (event->step == r->warmup) r->started = progress_now();
    if (event->step <= r->warmup) return 0;
    r->rows += event->samples;
    r->waited_ms += event->ms.data;
    return 0;
}

static tdm_status outputs_of(const tool *t, const tdm_job *job, const tdm_graph *graph, int64_t *outputs) {
    tdm_run *run;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = &t->host;
    tdm_status status = tdm_run_open(&run, job, graph, &options);
    if (status != TDM_OK) return status;
    *outputs = tdm_run_output_width(run);
    tdm_run_close(run);
    return TDM_OK;
}

static tdm_status read_steps(const tool *t, const tdm_job *job, const tdm_graph *real, reading *r, double *seconds) {
    tdm_graph *graph = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    int64_t outputs = 0;
    options.host = &t->host;
    options.on_event = on_event;
    options.user = r;
    tdm_status status = outputs_of(t, job, real, &outputs);
    if (status == TDM_OK) status = cheap_graph(&graph, t, real, outputs);
    if (status == TDM_OK) status = tdm_run_open(&run, job, graph, &options);
    r->started = progress_now();
    if (status == TDM_OK) status = tdm_run_step(run, job->train.steps);
    *seconds = progress_now() - r->started;
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

int bench_data(tool *t) {
    int64_t iterations = 200;
    reading r = {.warmup = 5};
    double seconds = 0;
    char number[32];
    FREED_BY(job_freed) tdm_config *config = NULL;
    if (t->word_count < 2) return args_wrong(t, "`bench data` needs CONFIG");
    if (!bench_counts(t, &iterations, &r.warmup)) return TDM_E_USAGE;
    t->word[0] = t->word[1];
    int code = job_open_training(t, NULL, &config);
    if (code != TDM_OK) return code;
    tdm_job job = *tdm_config_job(config);
    job.parallel.mode = TDM_MODE_SINGLE;
    job.run.dir = job.weights = NULL;
    job.checkpoint.resume = "never";
    job.data.eval.format = TDM_DATA_NONE;
    job.train.epochs = TDM_INT_NULL;
    job.train.steps = r.warmup + iterations;
    tdm_status status = read_steps(t, &job, tdm_config_graph(config), &r, &seconds);
    if (status != TDM_OK) return tell_error(status);
    if (args_flag(t, "--json")) {
        json_print(json_pack("{s:f, s:I, s:I, s:f}", "samples_per_s", (double)r.rows / seconds, "workers",
                             (json_int_t)job.data.workers, "steps", (json_int_t)iterations, "waited_ms_per_step",
                             r.waited_ms / (double)iterations),
                   stdout);
    } else {
        printf("%s samples/s with %lld loader threads; a step with almost no work waited %.3f ms for its batch\n",
               text_number(number, (double)r.rows / seconds), (long long)job.data.workers,
               r.waited_ms / (double)iterations);
    }
    return TDM_OK;
}
