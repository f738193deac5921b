/* cmd_burnin.c - `tandem burnin`: a model on every device for a while, with a verdict for each. */
#include <math.h>
#include <stdlib.h>

#include <tandem/burnin.h>

#include "tools/inference/inference.h"
#include "tools/launch/stop.h"
#include "tools/report/runs.h"
#include "tools/terminal/json.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/table.h"
#include "tools/terminal/term.h"

enum { BAR = 30 };
static const double line_seconds = 30;

/* What the calls about progress share. */
typedef struct watching {
    tdm_burnin *burnin;
    bool bar, silent, has_said_stopping;
    double shown; /* when a line was printed last */
} watching;

static void burnin_freed(tdm_burnin **burnin) {
    tdm_burnin_close(*burnin);
}

/* ---- while it runs ---- */

static char *progress_text(const tdm_burnin_progress *p) {
    char spent[32], left[32], rate[32];
    const double rest = p->fraction > 0 ? p->seconds / p->fraction - p->seconds : 0;
    return text_format("%s<%s, %s samples/s, %lld wrong", text_time(spent, p->seconds), text_time(left, rest),
                       text_number(rate, p->seconds > 0 ? (double)p->samples / p->seconds : 0), (long long)p->wrong);
}

static void show_bar(const tdm_burnin_progress *p) {
    char blocks[BAR + 1] = "";
    FREED char *text = progress_text(p);
    for (int i = 0; i < BAR; i++) blocks[i] = i < (int)(p->fraction * BAR) ? '#' : ' ';
    FREED char *whole = text_format("burn-in %3d%%|%s| [%s]", (int)(100 * p->fraction), blocks, text);
    term_bar(whole);
}

/* A stop signal ends the run, and the report says what was seen until then. */
static void on_progress(const tdm_burnin_progress *p, void *user) {
    watching *w = user;
    if (stop_signal() != 0) tdm_burnin_request_stop(w->burnin);
    if (stop_signal() != 0 && !w->has_said_stopping)
        term_line("tandem: stopping after this batch; a second signal exits at once");
    w->has_said_stopping = stop_signal() != 0;
    if (w->silent) return;
    if (w->bar) {
        show_bar(p);
    } else if (p->seconds - w->shown >= line_seconds) {
        FREED char *text = progress_text(p);
        term_line("burn-in %d%%  %s", (int)(100 * p->fraction), text);
        w->shown = p->seconds;
    }
}

static char *length_text(const tdm_job *job) {
    char time[32];
    const bool counts = job->burnin.iterations != TDM_INT_NULL, lasts = !isnan(job->burnin.duration);
    FREED char *batches = counts ? text_format("%lld batches", (long long)job->burnin.iterations) : text_copy("");
    if (counts && !lasts) return text_copy(batches);
    return text_format("%s%s%s", batches, counts ? " or " : "", text_time(time, lasts ? job->burnin.duration : 60));
}

static void print_banner(const tdm_job *job, const tdm_burnin_total *total) {
    FREED char *length = length_text(job);
    term_line("burn-in of %s: %d device%s, %lld samples in batches of %lld, for %s", job->name, total->devices,
              total->devices == 1 ? "" : "s", (long long)total->different_samples, (long long)total->batch, length);
}

/* ---- the report ---- */

static double rate_of(int64_t samples, double seconds) {
    return seconds > 0 ? (double)samples / seconds : 0;
}

static json_t *device_json(const tdm_burnin_device *d) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "device", d->name, "verdict",
                     tdm_burnin_verdict_name(d->verdict), "why", d->why, "samples", (json_int_t)d->samples, "batches",
                     (json_int_t)d->batches, "wrong_batches", (json_int_t)d->wrong_batches, "seconds",
                     json_number(d->seconds), "samples_per_s", json_number(rate_of(d->samples, d->seconds)), "ms",
                     "least", json_number(d->ms_least), "mean", json_number(d->ms_mean), "most",
                     json_number(d->ms_most), "difference", json_number(d->difference));
}

static void print_json(const tdm_burnin *burnin, const tdm_job *job, const tdm_burnin_total *total) {
    json_t *devices = json_array();
    for (int i = 0; i < total->devices; i++) {
        tdm_burnin_device d = TDM_BURNIN_DEVICE_INIT;
        if (tdm_burnin_get_device(burnin, i, &d) == TDM_OK) json_array_append_new(devices, device_json(&d));
    }
    json_print(json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:o}", "name", job->name, "good",
                         total->good == total->devices, "stopped", total->stopped, "samples",
                         (json_int_t)total->samples, "different_samples", (json_int_t)total->different_samples, "batch",
                         (json_int_t)total->batch, "seconds", json_number(total->seconds), "samples_per_s",
                         json_number(rate_of(total->samples, total->seconds)), "spread", json_number(total->spread),
                         "tolerance", json_number(total->tolerance), "equal_bits", total->equal_bits, "devices",
                         devices),
               stdout);
}

static void device_row(table *rows, const tdm_burnin_device *d) {
    char text[32];
    table_cell(rows, "%s", d->name);
    table_cell(rows, "%s", tdm_burnin_verdict_name(d->verdict));
    table_cell(rows, "%s", text_count(text, d->samples));
    table_cell(rows, "%s", text_number(text, rate_of(d->samples, d->seconds)));
    table_cell(rows, "%.2f", d->seconds);
    table_cell(rows, "%s", text_ms(text, d->ms_least));
    table_cell(rows, "%s", text_ms(text, d->ms_mean));
    table_cell(rows, "%s", text_ms(text, d->ms_most));
    table_cell(rows, "%.2g", d->difference);
}

static void print_table(const tdm_burnin *burnin, const tdm_burnin_total *total) {
    static const char *const heads[] = {"device",    "verdict", "samples", "samples/s", "seconds",
                                        "ms, least", "mean",    "most",    "difference"};
    FREED_BY(table_deinit) table rows = table_of(sizeof heads / sizeof *heads);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&rows, "%s", heads[i]);
    for (int i = 0; i < total->devices; i++) {
        tdm_burnin_device d = TDM_BURNIN_DEVICE_INIT;
        if (tdm_burnin_get_device(burnin, i, &d) == TDM_OK) device_row(&rows, &d);
    }
    table_print(&rows, stdout, true);
}

static void print_report(const tdm_burnin *burnin, const tdm_burnin_total *total) {
    char rate[32];
    print_table(burnin, total);
    putchar('\n');
    term_print(
        "  from the common start to the end of the last device %.2f s: %s samples/s of all devices, spread %.1f %%",
        total->seconds, text_number(rate, rate_of(total->samples, total->seconds)), 100 * total->spread);
    if (total->equal_bits)
        term_print("  outputs are the same bits on all devices");
    else if (total->devices > 1 && total->good == total->devices)
        term_print("  outputs of all devices are within the tolerance of %.2g", total->tolerance);
    for (int i = 0; i < total->devices; i++) {
        tdm_burnin_device d = TDM_BURNIN_DEVICE_INIT;
        if (tdm_burnin_get_device(burnin, i, &d) == TDM_OK && d.verdict != TDM_BURNIN_GOOD)
            term_print("  %s is bad: %s", d.name, d.why);
    }
    term_print("  %s: %d of %d device%s%s", total->good == total->devices ? "good" : "bad",
               total->good == total->devices ? total->good : total->devices - total->good, total->devices,
               total->devices == 1 ? "" : "s", total->stopped ? ", stopped early" : "");
}

/* ---- the verb ---- */

static int run_open(const tool *t, const inference *in, watching *w) {
    tdm_burnin_total total = TDM_BURNIN_TOTAL_INIT;
    (void)tdm_burnin_get_total(w->burnin, &total);
    if (!w->silent) print_banner(&in->job, &total);
    const tdm_status status = tdm_burnin_run(w->burnin);
    if (w->bar && !w->silent) term_bar_end(false);
    if (status != TDM_OK && status != TDM_E_CHECK && status != TDM_E_NUMERIC) {
        tell_error(status);
        return status == TDM_E_STOPPED && stop_signal() != 0 ? 128 + stop_signal() : (int)status;
    }
    (void)tdm_burnin_get_total(w->burnin, &total);
    if (args_flag(t, "--json"))
        print_json(w->burnin, &in->job, &total);
    else
        print_report(w->burnin, &total);
    if (status != TDM_OK) return tell_error(status);
    return total.stopped ? 128 + stop_signal() : TDM_OK;
}

static int run(tool *t) {
    FREED_BY(inference_close) inference in = {.config = NULL};
    const char *weights;
    const int code = inference_job(&in, t, &weights);
    if (code != TDM_OK) return code;
    FREED_BY(burnin_freed) tdm_burnin *burnin = NULL;
    watching w = {.bar = in.job.log.progress == TDM_PROGRESS_ALWAYS ||
                         (in.job.log.progress == TDM_PROGRESS_AUTO && term_is_terminal(stderr)),
                  .silent = t->quiet};
    tdm_burnin_options options = TDM_BURNIN_OPTIONS_INIT;
    options.host = &t->host;
    options.on_progress = on_progress;
    options.user = &w;
    stop_begin(false, true);
    const tdm_status status = tdm_burnin_open(&burnin, &in.job, tdm_config_graph(in.config), &options);
    if (status != TDM_OK) {
        tell_error(status);
        if (weights) runs_hint(weights);
        return (int)status;
    }
    w.burnin = burnin;
    return run_open(t, &in, &w);
}

const tool_verb verb_burnin = {
    "burnin",
    "CONFIG | RUN-DIR [key.path=value ...]",
    "runs a model over samples on each device for a while, with verdicts",
    "Every device of parallel.device_ids predicts the same samples again and again, with\n"
    "a copy of the model: those of data.eval, or of data.train; a flat folder of pictures\n"
    "will do, and so will `format: synthetic`. A device is bad if its outputs change from\n"
    "pass to pass, if they are not those of the other devices, or if it fails. Where there\n"
    "is no majority, the host's processor decides. Ctrl-C ends it with the report so far.\n"
    "Exits with code 12 if a device is bad.\n\n"
    "examples:\n"
    "  tandem init --task resnet50-burnin -o burnin.yaml\n"
    "  tandem burnin burnin.yaml --duration 30m\n"
    "  tandem burnin burnin.yaml --iterations 100 parallel.device_ids=[0,1] --json",
    {{"--duration", "TIME", "how long, as 90s, 30m or 2h (burnin.duration)"},
     {"--iterations", "N", "how many batches on each device (burnin.iterations)"},
     {"--weights", "PATH", "the weights (default: RUN-DIR, else model.weights of CONFIG)"},
     {"--checkpoint", "best|latest|STEP", "the checkpoint of the run directory (default: the newest good one)"},
     {"--json", NULL, "print the report as JSON"}},
    run,
    {1, 1, true}};
