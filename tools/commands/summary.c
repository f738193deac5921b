/* summary.c - see banner.h. With a run directory the table shows summary.json, otherwise the state of the run. */
#include "tools/commands/banner.h"

#include <math.h>
#include <stdlib.h>

#include "tools/report/report.h"
#include "tools/terminal/table.h"
#include "tools/terminal/term.h"

static void row(table *rows, const char *name, char *value) {
    table_cell(rows, "%s", name);
    table_cell(rows, "%s", value);
    free(value);
}

static void number_row(table *rows, const char *name, double value, const char *format_end) {
    char text[32];
    if (isfinite(value)) row(rows, name, text_format("%s%s", text_number(text, value), format_end));
}

static void percent_row(table *rows, const char *name, double fraction) {
    if (isfinite(fraction)) row(rows, name, text_format("%.2f %%", 100 * fraction));
}

/* The step first, then the phases that are parts of it. */
static void phase_rows(table *rows, const report_run *run) {
    char number[32];
    for (int i = -1; i + 1 < REPORT_PHASES; i++) {
        int phase = i < 0 ? REPORT_PHASES - 1 : i;
        if (!isfinite(run->phase[phase])) continue;
        table_cell(rows, i < 0 ? "ms per %s" : "  %s", report_phases[phase]);
        table_cell(rows, "%s", text_ms(number, run->phase[phase]));
    }
}

static char *memory_text(const report_run *run) {
    const json_t *peaks = json_object_get(run->summary, "peak_memory_bytes");
    char *out = NULL, one[32];
    size_t bytes = 0;
    FILE *to = text_open(&out, &bytes);
    for (size_t i = 0; i < json_array_size(peaks); i++) {
        fprintf(to, "%s%s", i ? ", " : "", text_bytes(one, json_number_value(json_array_get(peaks, i))));
    }
    if (json_array_size(peaks) > 1) fputs(" (each device)", to);
    text_close(to);
    return out;
}

static char *speed_text(const report_run *run) {
    char number[32];
    double rate = report_number(run, "samples_per_s");
    if (!isfinite(rate)) return text_copy("- (too few steps)");
    return text_format("%s (without the first %.0f steps)", text_number(number, rate),
                       report_number(run, "warmup_steps"));
}

static void print_table(const report_run *run) {
    FREED_BY(table_deinit) table rows = table_of(2);
    char time[32];
    rows.left_all = true;
    number_row(&rows, "steps", report_number(run, "step"), "");
    number_row(&rows, "loss, last step", report_number(run, "loss"), "");
    number_row(&rows, "loss, eval", report_number(run, "eval_loss"), "");
    percent_row(&rows, "accuracy, eval", report_number(run, "accuracy"));
    percent_row(&rows, "top-5 accuracy, eval", report_number(run, "top5"));
    number_row(&rows, "best checkpoint, step", report_number(run, "best_step"), "");
    const char *early = report_text(run, "stopped_early");
    if (early[0]) row(&rows, "stopped early", text_copy(early));
    double seconds = report_number(run, "seconds");
    row(&rows, "training time",
        seconds < 60 ? text_format("%.2f s", seconds) : text_format("%s", text_time(time, seconds)));
    row(&rows, "samples/s", speed_text(run));
    phase_rows(&rows, run);
    row(&rows, "peak memory", memory_text(run));
    row(&rows, "params_xxh3", text_copy(report_text(run, "params_xxh3")));
    row(&rows, "run dir", text_copy(run->dir));
    table_print(&rows, stdout, false);
}

static void print_state(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    if (tdm_run_get_state(run, &state) != TDM_OK) return;
    FREED_BY(table_deinit) table rows = table_of(2);
    rows.left_all = true;
    row(&rows, "steps", text_format("%lld", (long long)state.step));
    number_row(&rows, "loss, last step", state.loss, "");
    row(&rows, "params_xxh3", text_copy(state.params_xxh3));
    table_print(&rows, stdout, false);
}

static void print_next(const tool *t, const tdm_job *job, bool stopped) {
    const char *dir = job->run.dir;
    if (stopped) {
        FREED char *command = banner_resume_command(t, dir);
        puts("to continue:");
        term_print("  %s", command);
        return;
    }
    FREED char *run = text_quoted(dir), *page = text_format("%s/report.html", dir);
    const bool evaluates = job->data.eval.format != TDM_DATA_NONE, has_page = files_exists(page);
    const bool has_pictures = job->data.train.format == TDM_DATA_IMAGE_FOLDER;
    if (evaluates || has_page || has_pictures) puts("next:");
    if (has_page) term_print("  look at %s", page);
    if (has_pictures) term_print("  tandem predict %s PICTURE_OR_FOLDER...", run);
    if (evaluates) term_print("  tandem eval %s", run);
}

void summary_print(const tool *t, const tdm_job *job, tdm_run *run, bool stopped, bool brief) {
    if (brief || t->quiet) return;
    const char *dir = job->run.dir;
    report_run report;
    if (dir && report_try(&report, dir)) {
        print_table(&report);
        report_free(&report);
    } else {
        print_state(run);
    }
    if (dir) print_next(t, job, stopped);
}
