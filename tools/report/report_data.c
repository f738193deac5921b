/* report_data.c - reads a run directory: metrics.jsonl, summary.json, env.json, config.resolved.yaml. */
#include "tools/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/terminal/term.h"

enum { MOST_READ = 64 << 20 };

const char *const report_phases[REPORT_PHASES] = {"data",     "scatter", "replicate",    "forward",   "gather", "loss",
                                                  "backward", "comm",    "comm_exposed", "optimizer", "step"};

static void add_point(series *s, double x, double y) {
    s->x = memory_grow(s->x, &s->x_room, s->count + 1, sizeof *s->x);
    s->y = memory_grow(s->y, &s->y_room, s->count + 1, sizeof *s->y);
    s->x[s->count] = x;
    s->y[s->count++] = y;
}

/* The running mean: an EMA with decay 0.98 per step, as the progress bar's, and bias correction, so that it begins with
 * the first loss. Points without a loss are passed over. */
static void add_mean(series *mean, const series *loss) {
    double sum = 0, weight = 0, last = 0;
    for (size_t k = 0; k < loss->count; k++) {
        if (!isfinite(loss->y[k])) continue;
        double decay = pow(0.98, fmax(1, loss->x[k] - last));
        last = loss->x[k];
        sum = decay * sum + (1 - decay) * loss->y[k];
        weight = decay * weight + (1 - decay);
        add_point(mean, loss->x[k], sum / weight);
    }
}

typedef struct phase_sums {
    double sum[REPORT_PHASES];
    int64_t count[REPORT_PHASES];
} phase_sums;

static void read_metric(report_run *run, const json_t *row, phase_sums *sums) {
    static const struct {
        const char *kind, *key;
    } sources[REPORT_CURVES] = {[CURVE_LOSS] = {"train", "loss"},           [CURVE_LR] = {"train", "lr"},
                                [CURVE_SPEED] = {"train", "samples_per_s"}, [CURVE_EVAL_LOSS] = {"eval", "loss"},
                                [CURVE_ACCURACY] = {"eval", "accuracy"},    [CURVE_TOP5] = {"eval", "top5"}};
    const char *kind = json_string_value(json_object_get(row, "kind"));
    double step = json_number_value(json_object_get(row, "step"));
    for (int i = 0; i < REPORT_CURVES; i++) {
        if (!kind || strcmp(kind, sources[i].kind) != 0) continue;
        const json_t *value = json_object_get(row, sources[i].key);
        if (value) add_point(&run->curve[i], step, json_is_number(value) ? json_number_value(value) : NAN);
    }
    if (!kind || strcmp(kind, "train") != 0) return;
    const json_t *ms = json_object_get(row, "ms");
    for (int i = 0; i < REPORT_PHASES; i++) {
        const json_t *value = json_object_get(ms, report_phases[i]);
        if (!json_is_number(value)) continue;
        sums->sum[i] += json_number_value(value);
        sums->count[i]++;
    }
}

/* Of a very large file only every n-th step is read: returns n. */
static int64_t stride_of(FILE *metrics) {
    struct stat found;
    return fstat(fileno(metrics), &found) == 0 ? 1 + (int64_t)found.st_size / MOST_READ : 1;
}

static void read_metrics(report_run *run, FILE *metrics) {
    static const char step_line[] = "{\"kind\":\"train\"";
    phase_sums sums = {{0}, {0}};
    int64_t stride = stride_of(metrics), steps = 0;
    FREED char *line = NULL;
    size_t room = 0;
    ssize_t length;
    errno = 0;
    while ((length = getline(&line, &room, metrics)) > 0) {
        if (strncmp(line, step_line, sizeof step_line - 1) == 0 && steps++ % stride != 0) continue;
        json_auto_t *row = json_loadb(line, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
        if (row) read_metric(run, row, &sums); /* a line cut off by a crash is skipped */
    }
    if (errno == ENOMEM) memory_missing();
    for (int i = 0; i < REPORT_PHASES; i++) run->phase[i] = sums.count[i] ? sums.sum[i] / (double)sums.count[i] : NAN;
}

json_t *report_object(const char *dir, const char *name) {
    FREED char *text = files_text(dir, name);
    json_t *out = text ? json_loads(text, 0, NULL) : NULL;
    return json_is_object(out) ? out : (json_decref(out), json_object());
}

/* The summary's means are better: they exclude the warm-up, and steps that an earlier process ran in another mode. */
static void prefer_summary_phases(report_run *run) {
    const json_t *ms = json_object_get(run->summary, "ms");
    if (json_object_size(ms) == 0) return;
    for (int i = 0; i < REPORT_PHASES; i++) {
        const json_t *value = json_object_get(ms, report_phases[i]);
        run->phase[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
}

bool report_try(report_run *run, const char *dir) {
    FILE *metrics = files_stream(dir, "metrics.jsonl");
    if (!metrics) return false;
    *run = (report_run){.dir = text_copy(dir)};
    read_metrics(run, metrics);
    add_mean(&run->loss_mean, &run->curve[CURVE_LOSS]);
    bool failed = ferror(metrics) != 0;
    fclose(metrics);
    if (failed) {
        report_free(run);
        errno = EIO;
        return false;
    }
    run->summary = report_object(dir, "summary.json");
    run->environment = report_object(dir, "env.json");
    run->config = files_text(dir, "config.resolved.yaml");
    if (!run->config) run->config = text_copy("");
    report_read_settings(run);
    prefer_summary_phases(run);
    const char *mode = report_text(run, "mode"), *name = files_name(dir);
    run->label = text_copy(mode[0] ? mode : name[0] ? name : dir);
    return true;
}

int report_read(report_run *run, const char *dir) {
    if (report_try(run, dir)) return TDM_OK;
    int reason = errno;
    FREED char *path = text_format("%s/metrics.jsonl", dir);
    term_error("%s cannot be read: %s; give a run directory", path,
               reason == ENOTDIR ? "not a folder" : files_refusal(path, reason));
    return TDM_E_DATA;
}

void report_free(report_run *run) {
    free(run->dir);
    free(run->label);
    free(run->config);
    report_free_settings(run);
    json_decref(run->summary);
    json_decref(run->environment);
    for (int i = 0; i < REPORT_CURVES; i++) {
        free(run->curve[i].x);
        free(run->curve[i].y);
    }
    free(run->loss_mean.x);
    free(run->loss_mean.y);
    *run = (report_run){0};
}

double report_number(const report_run *run, const char *path) {
    const json_t *at = run->summary;
    char key[64];
    while (at && *path) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        at = json_object_get(at, key);
        path += length + (path[length] == '.');
    }
    return json_is_number(at) ? json_number_value(at) : NAN;
}

const char *report_text(const report_run *run, const char *key) {
    const char *text = json_string_value(json_object_get(run->summary, key));
    return text ? text : "";
}

bool report_any(const report_run *runs, int count, const char *path) {
    for (int i = 0; i < count; i++) {
        if (isfinite(report_number(&runs[i], path))) return true;
    }
    return false;
}

bool report_any_phase(const report_run *runs, int count, int phase) {
    for (int i = 0; i < count; i++) {
        if (isfinite(runs[i].phase[phase])) return true;
    }
    return false;
}

char *report_class(const json_t *evaluation, json_int_t class) {
    const json_t *names = json_object_get(evaluation, "class_names");
    const char *name = class >= 0 ? json_string_value(json_array_get(names, (size_t) class)) : NULL;
    return name ? text_printable(name, false) : text_format("%lld", (long long)class);
}

char *report_sample(const json_t *item) {
    const char *file = json_string_value(json_object_get(item, "file"));
    return file ? text_printable(file, false)
                : text_format("%lld", (long long)json_integer_value(json_object_get(item, "index")));
}
