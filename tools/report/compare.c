/* compare.c - see compare.h. */
#include "tools/report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/json.h"
#include "tools/terminal/table.h"
#include "tools/terminal/term.h"

/* Both series have every step from the first on. If one is shorter, the runs differ at the step after its end. */
static void compare_losses(comparison *c, const series *a, const series *b) {
    size_t count = a->count < b->count ? a->count : b->count;
    int64_t first = 0;
    for (size_t i = 0; i < count; i++) {
        bool equal = a->y[i] == b->y[i] || (isnan(a->y[i]) && isnan(b->y[i]));
        double difference = equal ? 0 : fabs(a->y[i] - b->y[i]);
        if (isnan(difference)) difference = (double)INFINITY;
        if (!equal && !first) first = (int64_t)a->x[i];
        if (difference > c->max_loss_diff) {
            c->max_loss_diff = difference;
            c->max_loss_step = (int64_t)a->x[i];
        }
    }
    if (!first && a->count != b->count) first = (int64_t)count + 1;
    if (first && (!c->first_differing_step || first < c->first_differing_step)) c->first_differing_step = first;
}

static int compare_weights(comparison *c, const report_run *a, const report_run *b) {
    tdm_checkpoint_difference d = {.size = sizeof d};
    tdm_status status = tdm_checkpoint_compare(&c->t->host, a->dir, b->dir, 0, 0, &d);
    if (status != TDM_OK) return tell_error(status);
    if (!d.equal_bits) c->equal_bits = false;
    if (d.only_in_a || d.only_in_b) d.largest_model = (double)INFINITY;
    if (d.largest_model > c->max_param_diff) {
        c->max_param_diff = d.largest_model;
        snprintf(c->max_param_name, sizeof c->max_param_name, "%s",
                 d.largest_model_name[0] ? d.largest_model_name : d.first);
    }
    return TDM_OK;
}

bool compare_is_without(const comparison *c, int i) {
    return c->only_ddp && strcmp(c->mode[i], "ddp") != 0;
}

int compare_measure(comparison *c) {
    c->equal_bits = true;
    for (int i = 1; i < c->runs; i++) {
        compare_losses(c, &c->run[0].curve[CURVE_LOSS], &c->run[i].curve[CURVE_LOSS]);
        int code = compare_weights(c, &c->run[0], &c->run[i]);
        if (code != TDM_OK) return code;
    }
    c->within = c->tolerance_given ? c->max_loss_diff <= c->loss_tolerance && c->max_param_diff <= c->param_tolerance
                                   : c->equal_bits && !c->first_differing_step;
    return TDM_OK;
}

/* JSON has no NaN and no infinity: they become null. */
static json_t *part(const report_run *run, const char *key) {
    json_t *value = json_object_get(run->summary, key);
    return value ? json_incref(value) : json_null();
}

static double first_loss(const report_run *run) {
    const series *loss = &run->curve[CURVE_LOSS];
    return loss->count ? loss->y[0] : NAN;
}

static double last_loss(const report_run *run) {
    const series *loss = &run->curve[CURVE_LOSS];
    return loss->count ? loss->y[loss->count - 1] : NAN;
}

/* Devices with a replica. In single mode one device processes the batches of all device_ids. */
static size_t device_count(const report_run *run) {
    return json_array_size(json_object_get(run->summary, "peak_memory_bytes"));
}

static json_t *mode_json(const comparison *c, int i) {
    const report_run *run = &c->run[i];
    json_t *without = compare_is_without(c, i) ? json_string(c->only_ddp) : NULL;
    return json_pack("{s:s, s:I, s:o*, s:o, s:o, s:o, s:o, s:o*, s:o, s:o, s:o, s:o, s:o, s:o*}", "mode", c->mode[i],
                     "devices", (json_int_t)device_count(run), "without", without, "params_xxh3",
                     part(run, "params_xxh3"), "first_loss", json_number(first_loss(run)), "final_loss",
                     json_number(last_loss(run)), "accuracy", part(run, "accuracy"), "top5",
                     json_incref(json_object_get(run->summary, "top5")), "samples_per_s", part(run, "samples_per_s"),
                     "speedup_over_one_device", json_number(report_number(run, "samples_per_s") / c->one_device), "ms",
                     part(run, "ms"), "bytes_moved_per_step", part(run, "bytes_moved_per_step"), "peak_memory_bytes",
                     part(run, "peak_memory_bytes"), "run_dir", json_string(run->dir));
}

/* Steps count from 1. */
static json_t *step_json(int64_t step) {
    return step ? json_integer(step) : json_null();
}

json_t *compare_json(const comparison *c) {
    json_t *modes = json_array();
    for (int i = 0; i < c->runs; i++) json_array_append_new(modes, mode_json(c, i));
    return json_pack("{s:o, s:o, s:o, s:o, s:o*, s:o, s:b, s:b, s:o}", "modes", modes, "max_loss_diff",
                     json_number(c->max_loss_diff), "max_loss_diff_step", step_json(c->max_loss_step), "max_param_diff",
                     json_number(c->max_param_diff), "max_param_diff_name", json_string(c->max_param_name),
                     "first_differing_step", step_json(c->first_differing_step), "equal_bits", c->equal_bits,
                     "within_tolerance", c->within, "one_device_samples_per_s", json_number(c->one_device));
}

/* ---- the table ---- */

static void number_row(table *rows, const comparison *c, const char *name, const char *key, double scale) {
    char text[32];
    table_cell(rows, "%s", name);
    for (int i = 0; i < c->runs; i++) {
        table_cell(rows, "%s", text_number(text, report_number(&c->run[i], key) * scale));
    }
}

static void speed_rows(table *rows, const comparison *c) {
    char text[32];
    number_row(rows, c, "samples/s", "samples_per_s", 1);
    table_cell(rows, "speed-up over one device");
    for (int i = 0; i < c->runs; i++) {
        table_cell(rows, "%s", text_number(text, report_number(&c->run[i], "samples_per_s") / c->one_device));
    }
    for (int k = 0; k < REPORT_PHASES; k++) {
        if (!report_any_phase(c->run, c->runs, k)) continue;
        table_cell(rows, "%s, ms", report_phases[k]);
        for (int i = 0; i < c->runs; i++) table_cell(rows, "%s", text_ms(text, c->run[i].phase[k]));
    }
    number_row(rows, c, "MiB moved per step, each process", "bytes_moved_per_step", 1.0 / (1024 * 1024));
}

static void memory_rows(table *rows, const comparison *c) {
    size_t most = 0;
    char text[32];
    for (int i = 0; i < c->runs; i++) {
        if (device_count(&c->run[i]) > most) most = device_count(&c->run[i]);
    }
    for (size_t d = 0; d < most; d++) {
        table_cell(rows, "peak memory, device %zu", d);
        for (int i = 0; i < c->runs; i++) {
            const json_t *bytes = json_array_get(json_object_get(c->run[i].summary, "peak_memory_bytes"), d);
            table_cell(rows, "%s", bytes ? text_bytes(text, json_number_value(bytes)) : "-");
        }
    }
}

static void loss_rows(table *rows, const comparison *c) {
    table_cell(rows, "loss, first step");
    for (int i = 0; i < c->runs; i++) table_cell(rows, "%.9g", first_loss(&c->run[i]));
    table_cell(rows, "loss, last step");
    for (int i = 0; i < c->runs; i++) table_cell(rows, "%.9g", last_loss(&c->run[i]));
    if (report_any(c->run, c->runs, "accuracy")) number_row(rows, c, "accuracy, %", "accuracy", 100);
    if (report_any(c->run, c->runs, "top5")) number_row(rows, c, "top-5 accuracy, %", "top5", 100);
}

/* Why bits may differ, and which mode is not there. */
static void print_left_out(const comparison *c) {
    if (c->is_without_dp) term_print("  dp is left out, which has no parallel.stages");
    for (int i = 0; i < c->runs; i++) {
        if (compare_is_without(c, i))
            term_print("  %s is without %s, which only ddp computes", c->run[i].label, c->only_ddp);
    }
}

static void print_verdict(const comparison *c) {
    term_style style = c->within ? TERM_GREEN : TERM_RED;
    printf("\n  largest difference of the loss       %.3g", c->max_loss_diff);
    if (c->max_loss_step) printf(" (step %lld)", (long long)c->max_loss_step);
    if (c->first_differing_step) printf("; first differing step %lld", (long long)c->first_differing_step);
    const char *name = c->max_param_name;
    putchar('\n');
    term_print("  largest difference of a parameter    %.3g%s%s%s", c->max_param_diff, name[0] ? " (" : "", name,
               name[0] ? ")" : "");
    if (c->equal_bits) {
        printf("  %sequal bits: parameters, buffers and optimizer state%s\n", term_on(stdout, style), term_off(stdout));
    } else {
        printf("  %sdifferent bits%s%s\n", term_on(stdout, style),
               !c->tolerance_given ? ""
               : c->within         ? "; within the tolerance"
                                   : "; outside the tolerance",
               term_off(stdout));
    }
}

void compare_print(const comparison *c) {
    FREED_BY(table_deinit) table rows = table_of(c->runs + 1);
    table_cell(&rows, "%s", c->job->name);
    for (int i = 0; i < c->runs; i++) table_cell(&rows, "%s", c->run[i].label);
    table_cell(&rows, "devices");
    for (int i = 0; i < c->runs; i++) table_cell(&rows, "%zu", device_count(&c->run[i]));
    number_row(&rows, c, "samples per step", "global_batch", 1);
    number_row(&rows, c, "steps", "step", 1);
    loss_rows(&rows, c);
    speed_rows(&rows, c);
    memory_rows(&rows, c);
    table_cell(&rows, "params_xxh3");
    for (int i = 0; i < c->runs; i++) table_cell(&rows, "%.16s", report_text(&c->run[i], "params_xxh3"));
    table_print(&rows, stdout, true);
    print_verdict(c);
    print_left_out(c);
    putchar('\n');
    term_print("  %s/compare.json", c->folder);
    term_print("  %s/report.html", c->folder);
}
