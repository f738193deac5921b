/* report.h - reads run directories and writes report.html. */
#ifndef REPORT_H
#define REPORT_H

#include "tools/tool.h"

#include <stddef.h>

#include <jansson.h>

/* Points in file order; y may be NaN. */
typedef struct series {
    size_t count, x_room, y_room;
    double *x, *y;
} series;

#define PHASE_OF(member) (offsetof(tdm_phase_ms, member) / sizeof(double))
enum {
    PHASE_COMM = PHASE_OF(comm),
    PHASE_COMM_EXPOSED = PHASE_OF(comm_exposed),
    PHASE_OPTIMIZER = PHASE_OF(optimizer),
    PHASE_STEP = PHASE_OF(step),
    REPORT_PHASES = sizeof(tdm_phase_ms) / sizeof(double)
};
extern const char *const report_phases[REPORT_PHASES]; /* as in metrics.jsonl: "data" ... "step" */

enum { CURVE_LOSS, CURVE_EVAL_LOSS, CURVE_ACCURACY, CURVE_TOP5, CURVE_LR, CURVE_SPEED, REPORT_CURVES };

/* One line of the configuration: "train.batch.per_device" and "32". */
typedef struct report_setting {
    char *key, *value;
} report_setting;

typedef struct report_run {
    char *dir, *label; /* label: the mode, or the folder's name */
    json_t *summary;   /* an object, empty if the file is missing */
    json_t *environment;
    char *config;            /* config.resolved.yaml, "" if it is missing */
    report_setting *setting; /* the same, key by key */
    size_t setting_count, setting_room;
    series curve[REPORT_CURVES]; /* by step */
    series loss_mean;            /* of CURVE_LOSS: see report_data.c */
    double phase[REPORT_PHASES]; /* mean milliseconds per step; NaN: the mode does not have the phase */
} report_run;

/* A JSON file of a run directory; {} if it is missing. The caller releases it. */
json_t *report_object(const char *dir, const char *name);
/* TDM_OK, or an exit code after printing the error. */
int report_read(report_run *run, const char *dir);
bool report_try(report_run *run, const char *dir); /* the same without output; false with errno set */
void report_free(report_run *run);
/* A number of the summary, NaN if absent. `path` may go into objects: "ms.forward". */
double report_number(const report_run *run, const char *path);
const char *report_text(const report_run *run, const char *key); /* "" if absent */
/* True if at least one of the runs has this number, or this phase. */
bool report_any(const report_run *runs, int count, const char *path);
bool report_any_phase(const report_run *runs, int count, int phase);

/* Of evaluation.json. The caller frees them. */
char *report_class(const json_t *evaluation, json_int_t class); /* the name of a class, else its number */
char *report_sample(const json_t *item);                        /* its file, else its number */

/* One self-contained page about one or more runs. The caller frees it. `verdict`: the content of compare.json, or NULL.
 */
char *report_page(const report_run *runs, int count, const json_t *verdict, bool chinese, size_t *bytes);
/* The same, written to a file. */
int report_write(const char *path, const report_run *runs, int count, const json_t *verdict, bool chinese);

/* ---- report_config.c ---- */
void report_read_settings(report_run *run); /* from run->config */
void report_free_settings(report_run *run);
const char *report_setting_of(const report_run *run, const char *key); /* NULL if the run does not have the key */

/* ---- report_evaluation.c ---- */
/* The last evaluation of a run, and the best if that is another. Nothing without evaluation.json. */
void report_evaluations(FILE *to, const report_run *run, bool chinese);

/* ---- report_pictures.c ---- */
/* Pictures of the worst samples, if the run's data.eval has any. What cannot be read is said in their place. */
void report_pictures(FILE *to, const report_run *run, const json_t *evaluation, bool chinese);

/* ---- report_svg.c ---- */
typedef struct chart_line {
    const series *points;
    const char *label;
    int style;  /* colour and dashes */
    bool faint; /* behind a line of the same style, without a label */
} chart_line;
void svg_chart(FILE *to, const char *title, const chart_line *lines, int count, const char *x_label, double scale);
/* One stacked horizontal bar per row. values[row * part_count + part]; NaN: absent. */
void svg_stack(FILE *to, const char *title, const char *const *rows, int row_count, const char *const *parts,
               int part_count, const double *values, const char *unit);
void html_text(FILE *to, const char *text);                     /* escapes & < > " */
void html_element(FILE *to, const char *tag, const char *text); /* <tag>text</tag> */

#endif
