/* report_html.c - one page about one run, or several runs side by side. Needs no scripts and no network. Has styles for
 * light, dark and print. */
#include "tools/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report_words.h"

static const char style[] =
    ":root{--bg:#fff;--fg:#1c2128;--dim:#656d76;--rule:#d8dee4;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;"
    "--p0:#8c959f;--p1:#d4a72c;--p2:#bf8700;--p3:#0969da;--p4:#bc4c00;--p5:#1a7f37;--p6:#54aeff;--p7:#cf222e;"
    "--p8:#8250df;--p9:#afb8c1}"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#8d96a0;--rule:#30363d;--c0:#58a6ff;--c1:#f0883e;"
    "--c2:#3fb950;--c3:#bc8cff;--p6:#1f6feb}}"
    "*{box-sizing:border-box}body{background:var(--bg);color:var(--fg);margin:2rem auto;max-width:1360px;padding:0 1rem;"
    "font:15px/1.5 system-ui,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif}"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--rule)}"
    ".dim{color:var(--dim)}.good{color:var(--c2)}.bad{color:#cf222e}.charts{display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr))}figure{margin:0}svg{width:100%;height:auto}"
    "svg text{fill:var(--dim);font-size:12px}svg .title{fill:var(--fg);font-size:13px;font-weight:600}svg .small{font-size:11px}"
    ".grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--dim)}.line{fill:none;stroke-width:1.6}.faint{opacity:.35;stroke-width:1}"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1);stroke-dasharray:6 3}.s2{stroke:var(--c2);stroke-dasharray:2 3}"
    ".s3{stroke:var(--c3);stroke-dasharray:8 3 2 3}.dot{stroke:none}circle.s0{fill:var(--c0)}circle.s1{fill:var(--c1)}"
    "circle.s2{fill:var(--c2)}circle.s3{fill:var(--c3)}.p0{fill:var(--p0)}.p1{fill:var(--p1)}.p2{fill:var(--p2)}"
    ".p3{fill:var(--p3)}.p4{fill:var(--p4)}.p5{fill:var(--p5)}.p6{fill:var(--p6)}.p7{fill:var(--p7)}.p8{fill:var(--p8)}"
    ".p9{fill:var(--p9)}rect.axis{fill:none}summary{cursor:pointer}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.2rem .9rem .2rem 0;"
    "text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}th{font-weight:600}"
    "pre{overflow:auto;font:13px/1.45 ui-monospace,Menlo,Consolas,monospace;border:1px solid var(--rule);padding:.7rem}"
    "h3{font-size:1rem;margin:1rem 0 0}h3+p{margin:0 0 .6rem}.shots{display:grid;gap:.9rem;"
    "grid-template-columns:repeat(auto-fill,minmax(112px,1fr))}.shots figure{font-size:12.5px;line-height:1.35;text-align:center}"
    ".shots img,.none{width:96px;height:96px;object-fit:contain;border-radius:6px;background:var(--rule)}"
    ".shots .tiny{image-rendering:pixelated}.none{display:inline-block;overflow:hidden;padding:.3rem;font-size:10px}"
    ".shots figcaption{margin-top:.25rem;overflow-wrap:anywhere}"
    "@media print{body{margin:0;max-width:none}details>*{display:block}h2{break-after:avoid}figure,table{break-inside:avoid}}";

typedef struct page {
    FILE *to;
    const report_run *runs;
    int count;
    bool chinese;
} page;

static const char *word(const page *p, report_word which) {
    return report_words[which][p->chinese];
}

static void heading(const page *p, report_word which) {
    fprintf(p->to, "<h2>%s</h2>\n", word(p, which));
}

static void row_start(const page *p, report_word which) {
    fprintf(p->to, "<tr><th>%s</th>", word(p, which));
}

static void number_row(const page *p, report_word which, const char *key, double scale, const char *unit) {
    char text[32];
    if (!report_any(p->runs, p->count, key)) return;
    row_start(p, which);
    for (int i = 0; i < p->count; i++) {
        fprintf(p->to, "<td>%s%s</td>", text_number(text, report_number(&p->runs[i], key) * scale), unit);
    }
    fputs("</tr>\n", p->to);
}

static void text_row(const page *p, report_word which, const char *key) {
    row_start(p, which);
    for (int i = 0; i < p->count; i++) html_element(p->to, "td", report_text(&p->runs[i], key));
    fputs("</tr>\n", p->to);
}

static void memory_row(const page *p) {
    char text[32];
    row_start(p, WORD_MEMORY);
    for (int i = 0; i < p->count; i++) {
        const json_t *peaks = json_object_get(p->runs[i].summary, "peak_memory_bytes");
        fputs("<td>", p->to);
        for (size_t k = 0; k < json_array_size(peaks); k++) {
            fprintf(p->to, "%s%s", k ? ", " : "", text_bytes(text, json_number_value(json_array_get(peaks, k))));
        }
        fputs("</td>", p->to);
    }
    fputs("</tr>\n", p->to);
}

static void run_heads(const page *p) {
    fputs("<table><tr><th></th>", p->to);
    for (int i = 0; i < p->count; i++) html_element(p->to, "th", p->runs[i].label);
    fputs("</tr>\n", p->to);
}

static void summary(const page *p) {
    heading(p, WORD_SUMMARY);
    run_heads(p);
    text_row(p, WORD_MODE, "mode");
    number_row(p, WORD_DEVICES, "devices", 1, "");
    number_row(p, WORD_PER_DEVICE, "per_device", 1, "");
    number_row(p, WORD_GLOBAL, "global_batch", 1, "");
    number_row(p, WORD_PARAMETERS, "parameters", 1, "");
    number_row(p, WORD_STEPS, "step", 1, "");
    number_row(p, WORD_LOSS, "loss", 1, "");
    number_row(p, WORD_EVAL_LOSS, "eval_loss", 1, "");
    number_row(p, WORD_ACCURACY, "accuracy", 100, " %");
    number_row(p, WORD_TOP5, "top5", 100, " %");
    number_row(p, WORD_SPEED, "samples_per_s", 1, "");
    number_row(p, WORD_SECONDS, "seconds", 1, " s");
    number_row(p, WORD_MOVED, "bytes_moved_per_step", 1.0 / (1024 * 1024), " MiB");
    memory_row(p);
    text_row(p, WORD_HASH, "params_xxh3");
    text_row(p, WORD_REASON, "exit_reason");
    fputs("</table>\n", p->to);
}

static void chart(const page *p, report_word title, int curve, double scale) {
    chart_line lines[8];
    int count = 0;
    for (int i = 0; i < p->count && i < 8; i++) {
        const series *points = &p->runs[i].curve[curve];
        if (points->count) lines[count++] = (chart_line){points, p->runs[i].label, i % 4, false};
    }
    if (count) svg_chart(p->to, word(p, title), lines, count, word(p, WORD_STEP), scale);
}

/* The loss of single steps jumps, so it is drawn faintly behind its running mean. */
static void loss_chart(const page *p) {
    chart_line lines[16];
    int count = 0;
    for (int i = 0; i < p->count && i < 8; i++) {
        const report_run *run = &p->runs[i];
        if (run->loss_mean.count == 0) continue;
        lines[count++] = (chart_line){&run->curve[CURVE_LOSS], run->label, i % 4, true};
        lines[count++] = (chart_line){&run->loss_mean, run->label, i % 4, false};
    }
    if (count) svg_chart(p->to, word(p, WORD_LOSS_CURVE), lines, count, word(p, WORD_STEP), 1);
}

static void charts(const page *p) {
    heading(p, WORD_CURVES);
    fputs("<div class=\"charts\">\n", p->to);
    loss_chart(p);
    chart(p, WORD_EVAL_LOSS, CURVE_EVAL_LOSS, 1);
    chart(p, WORD_ACCURACY_PERCENT, CURVE_ACCURACY, 100);
    chart(p, WORD_TOP5_PERCENT, CURVE_TOP5, 100);
    chart(p, WORD_LR, CURVE_LR, 1);
    chart(p, WORD_SPEED, CURVE_SPEED, 1);
    fputs("</div>\n", p->to);
}

/* The parts of a stacked bar: the phases up to the optimizer, where communication counts only as far as it is exposed,
 * then the time that no phase measured. So a bar is as long as its step. */
enum { PART_COMM = PHASE_COMM, PART_OPTIMIZER, PART_OTHER, PARTS };

static void stack_parts(const report_run *run, double parts[PARTS]) {
    double total = run->phase[PHASE_COMM], exposed = run->phase[PHASE_COMM_EXPOSED], sum = 0;
    memcpy(parts, run->phase, PART_COMM * sizeof *parts);
    parts[PART_COMM] = isfinite(exposed) ? exposed : total; /* a mode that measures only `comm` hides none of it */
    parts[PART_OPTIMIZER] = run->phase[PHASE_OPTIMIZER];
    for (int k = 0; k < PART_OTHER; k++) sum += isfinite(parts[k]) ? parts[k] : 0;
    parts[PART_OTHER] = fmax(0, run->phase[PHASE_STEP] - sum);
}

static void phases(const page *p) {
    const char *names[PARTS];
    FREED const char **rows = memory_new((size_t)p->count, sizeof *rows);
    FREED double *values = memory_new((size_t)p->count * PARTS, sizeof *values);
    char text[32];
    memcpy(names, report_phases, PART_OPTIMIZER * sizeof *names);
    names[PART_OPTIMIZER] = report_phases[PHASE_OPTIMIZER];
    names[PART_OTHER] = word(p, WORD_OTHER);
    for (int i = 0; i < p->count; i++) {
        rows[i] = p->runs[i].label;
        stack_parts(&p->runs[i], values + (ptrdiff_t)i * PARTS);
    }
    heading(p, WORD_PHASES);
    fputs("<div class=\"charts\">\n", p->to);
    svg_stack(p->to, word(p, WORD_STEP_MS), rows, p->count, names, PARTS, values, "ms");
    run_heads(p);
    for (int k = 0; k < REPORT_PHASES; k++) {
        if (!report_any_phase(p->runs, p->count, k)) continue;
        fprintf(p->to, "<tr><th>%s</th>", report_phases[k]);
        for (int i = 0; i < p->count; i++) fprintf(p->to, "<td>%s</td>", text_ms(text, p->runs[i].phase[k]));
        fputs("</tr>\n", p->to);
    }
    fputs("</table></div>\n", p->to);
}

/* Samples that the run left out: on_bad_sample: skip. */
static void bad_samples(const page *p) {
    const json_t *bad = json_object_get(p->runs[0].summary, "bad_samples"), *item;
    size_t i;
    if (p->count > 1 || json_array_size(bad) == 0) return;
    heading(p, WORD_BAD_SAMPLES);
    fputs("<table>", p->to);
    json_array_foreach(bad, i, item) {
        const char *data = json_string_value(json_object_get(item, "data"));
        const char *why = json_string_value(json_object_get(item, "why"));
        FREED char *sample =
            text_format("%s %lld", data ? data : "", (long long)json_integer_value(json_object_get(item, "sample")));
        fputs("<tr>", p->to);
        html_element(p->to, "th", sample);
        html_element(p->to, "td", why ? why : "");
        fputs("</tr>\n", p->to);
    }
    fputs("</table>\n", p->to);
}

static void verdict(const page *p, const json_t *compare) {
    if (!compare) return;
    bool within = json_is_true(json_object_get(compare, "within_tolerance"));
    bool equal = json_is_true(json_object_get(compare, "equal_bits"));
    const json_t *step = json_object_get(compare, "first_differing_step");
    const char *name = json_string_value(json_object_get(compare, "max_param_diff_name"));
    char number[32];
    heading(p, WORD_VERDICT);
    fprintf(p->to, "<p class=\"%s\">%s</p>\n", within ? "good" : "bad",
            word(p, equal    ? WORD_EQUAL_BITS
                    : within ? WORD_WITHIN
                             : WORD_NOT_WITHIN));
    fprintf(p->to, "<table><tr><th>%s</th><td>%s</td></tr>\n", word(p, WORD_MAX_LOSS),
            text_number(number, json_number_value(json_object_get(compare, "max_loss_diff"))));
    fprintf(p->to, "<tr><th>%s</th><td>%s ", word(p, WORD_MAX_PARAM),
            text_number(number, json_number_value(json_object_get(compare, "max_param_diff"))));
    html_text(p->to, name ? name : "");
    fputs("</td></tr>\n", p->to);
    if (json_is_integer(step)) {
        fprintf(p->to, "<tr><th>%s</th><td>%lld</td></tr>\n", word(p, WORD_FIRST_STEP),
                (long long)json_integer_value(step));
    }
    fputs("</table>\n", p->to);
}

/* ---- configuration: whole for one run, only what differs for several ---- */

/* True if an earlier run has this key: then its row is printed already. */
static bool is_printed(const page *p, int run, const char *key) {
    for (int i = 0; i < run; i++) {
        if (report_setting_of(&p->runs[i], key)) return true;
    }
    return false;
}

static bool differs(const page *p, const report_setting *setting) {
    for (int i = 0; i < p->count; i++) {
        const char *value = report_setting_of(&p->runs[i], setting->key);
        if (!value || strcmp(value, setting->value) != 0) return true;
    }
    return false;
}

static void code_cell(const page *p, const char *tag, const char *text) {
    fprintf(p->to, "<%s>", tag);
    html_element(p->to, "code", text);
    fprintf(p->to, "</%s>", tag);
}

static void difference_row(const page *p, const char *key) {
    fputs("<tr>", p->to);
    code_cell(p, "th", key);
    for (int i = 0; i < p->count; i++) {
        const char *value = report_setting_of(&p->runs[i], key);
        code_cell(p, "td", value ? value : "-");
    }
    fputs("</tr>\n", p->to);
}

static void config_differences(const page *p) {
    bool any = false;
    for (int i = 0; i < p->count; i++) {
        for (size_t k = 0; k < p->runs[i].setting_count; k++) {
            const report_setting *setting = &p->runs[i].setting[k];
            if (is_printed(p, i, setting->key) || !differs(p, setting)) continue;
            if (!any) run_heads(p);
            any = true;
            difference_row(p, setting->key);
        }
    }
    if (any) fputs("</table>\n", p->to);
    if (!any) fprintf(p->to, "<p class=\"dim\">%s</p>\n", word(p, WORD_NO_DIFFERENCE));
}

static void config(const page *p) {
    if (p->count > 1) {
        heading(p, WORD_CONFIG_DIFF);
        config_differences(p);
    }
    heading(p, WORD_CONFIG);
    fputs("<details><summary class=\"dim\">config.resolved.yaml</summary>", p->to);
    html_element(p->to, "pre", p->runs[0].config);
    fputs("</details>\n", p->to);
}

static void environment_row(const page *p, const char *section, const char *key, const json_t *value, bool first) {
    char number[32] = "";
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        bool bytes = strcmp(section, "memory") == 0;
        text = bytes ? text_bytes(number, json_number_value(value)) : text_number(number, json_number_value(value));
    }
    fputs("<tr>", p->to);
    html_element(p->to, "th", first ? section : "");
    html_element(p->to, "td", key);
    html_element(p->to, "td", text ? text : "");
    fputs("</tr>\n", p->to);
}

static void environment(const page *p) {
    const char *section, *key;
    json_t *part, *value;
    if (json_object_size(p->runs[0].environment) == 0) return;
    heading(p, WORD_ENVIRONMENT);
    fputs("<table>", p->to);
    json_object_foreach(p->runs[0].environment, section, part) {
        bool first = true;
        json_object_foreach(part, key, value) {
            environment_row(p, section, key, value, first);
            first = false;
        }
    }
    fputs("</table>\n", p->to);
}

static void head(const page *p) {
    fprintf(p->to,
            "<!doctype html>\n<html lang=\"%s\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width\"><title>",
            p->chinese ? "zh-CN" : "en");
    html_text(p->to, report_text(&p->runs[0], "name"));
    fprintf(p->to, " - tandem</title><style>%s</style></head><body>\n<h1>", style);
    html_text(p->to, report_text(&p->runs[0], "name"));
    fprintf(p->to, "</h1><p class=\"dim\">tandem %s", tdm_version());
    for (int i = 0; i < p->count; i++) {
        fputs("<br>", p->to);
        html_text(p->to, p->runs[i].label);
        fputs(": ", p->to);
        html_text(p->to, p->runs[i].dir);
    }
    fputs("</p>\n", p->to);
}

char *report_page(const report_run *runs, int count, const json_t *compare, bool chinese, size_t *bytes) {
    char *text = NULL;
    page p = {text_open(&text, bytes), runs, count, chinese};
    head(&p);
    verdict(&p, compare);
    summary(&p);
    charts(&p);
    if (count == 1) report_evaluations(p.to, &runs[0], chinese);
    bad_samples(&p);
    phases(&p);
    config(&p);
    environment(&p);
    fputs("</body></html>\n", p.to);
    text_close(p.to);
    return text;
}

int report_write(const char *path, const report_run *runs, int count, const json_t *compare, bool chinese) {
    size_t bytes = 0;
    FREED char *text = report_page(runs, count, compare, chinese, &bytes);
    return files_write(path, text, bytes);
}
