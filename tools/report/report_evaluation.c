/* report_evaluation.c - what evaluation.json holds, for the page of one run: the confusion matrix as a heat map, the
 * accuracy of each class, and the samples with the highest losses. */
#include "tools/report/report.h"

#include <math.h>
#include <string.h>

#include "tools/report/report_words.h"

enum { CLASSES_MAX = 100, MAP = 560, MARGIN = 40, TICKS = 10, LETTER = 7 /* width of one, at most */ };

static json_int_t cell_of(const json_t *rows, size_t row, size_t column) {
    return json_integer_value(json_array_get(json_array_get(rows, row), column));
}

static json_int_t number_at(const json_t *array, size_t index) {
    return json_integer_value(json_array_get(array, index));
}

static void class_cell(FILE *to, const json_t *evaluation, json_int_t class) {
    FREED char *text = report_class(evaluation, class);
    html_element(to, "td", text);
}

/* The shade is the cell's part of its row, so that rare classes are as visible as frequent ones. */
static void map_row(FILE *to, const json_t *evaluation, const json_t *rows, size_t row, double size) {
    size_t classes = json_array_size(rows);
    FREED char *label = report_class(evaluation, (json_int_t)row);
    double total = 0;
    for (size_t k = 0; k < classes; k++) total += (double)cell_of(rows, row, k);
    for (size_t k = 0; k < classes; k++) {
        json_int_t count = cell_of(rows, row, k);
        if (count <= 0) continue;
        fprintf(to, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" opacity=\"%.2f\"><title>",
                k == row ? "p5" : "p4", MARGIN + (double)k * size, MARGIN + (double)row * size, size, size,
                0.1 + 0.5 * (double)count / total);
        FREED char *predicted = report_class(evaluation, (json_int_t)k);
        FREED char *title = text_format("%s \xe2\x86\x92 %s: %lld", label, predicted, (long long)count);
        html_text(to, title);
        fputs("</title></rect>\n", to);
        if (classes > 20) continue;
        fprintf(to, "<text class=\"small\" x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">%lld</text>\n",
                MARGIN + ((double)k + 0.5) * size, MARGIN + ((double)row + 0.5) * size + 4, (long long)count);
    }
}

/* Do the names of all classes fit beside their cells? */
static bool names_fit(const json_t *evaluation, size_t classes, double size) {
    for (size_t k = 0; k < classes; k++) {
        FREED char *name = report_class(evaluation, (json_int_t)k);
        if ((double)strlen(name) * LETTER > size) return false;
    }
    return true;
}

static void name_axes(FILE *to, const json_t *evaluation, size_t classes, double size) {
    for (size_t k = 0; k < classes; k++) {
        FREED char *name = report_class(evaluation, (json_int_t)k);
        const double at = MARGIN + ((double)k + 0.5) * size;
        fprintf(to, "<text class=\"small\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", at, MARGIN - 6);
        html_text(to, name);
        fprintf(to, "</text><text class=\"small\" x=\"%d\" y=\"%.1f\" text-anchor=\"middle\"", MARGIN - 6, at);
        fprintf(to, " transform=\"rotate(-90 %d %.1f)\">", MARGIN - 6, at);
        html_text(to, name);
        fputs("</text>\n", to);
    }
}

static void number_axes(FILE *to, size_t classes, double size) {
    size_t stride = (classes + TICKS * 2 - 1) / (TICKS * 2);
    for (size_t k = 0; k < classes; k += stride) {
        double at = MARGIN + ((double)k + 0.5) * size;
        fprintf(to,
                "<text class=\"small\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>"
                "<text class=\"small\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%zu</text>\n",
                at, MARGIN - 6, k, MARGIN - 6, at + 4, k);
    }
}

static void map_axes(FILE *to, const json_t *evaluation, size_t classes, double size, bool chinese) {
    const char *rows = report_words[WORD_LABEL][chinese], *columns = report_words[WORD_PREDICTED][chinese];
    fprintf(to, "<rect class=\"axis\" fill=\"none\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", MARGIN, MARGIN,
            MAP, MAP);
    if (names_fit(evaluation, classes, size))
        name_axes(to, evaluation, classes, size);
    else
        number_axes(to, classes, size);
    fprintf(to, "<text x=\"%d\" y=\"14\">", MARGIN);
    html_text(to, columns);
    fputs("</text><text x=\"12\" y=\"320\" transform=\"rotate(-90 12 320)\">", to);
    html_text(to, rows);
    fputs("</text>\n", to);
}

static void heat_map(FILE *to, const json_t *evaluation, bool chinese) {
    const json_t *rows = json_object_get(evaluation, "confusion");
    size_t classes = json_array_size(rows);
    if (classes == 0 || classes > CLASSES_MAX) return;
    double size = (double)MAP / (double)classes;
    fprintf(to, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\">", MARGIN + MAP + 10, MARGIN + MAP + 10);
    html_element(to, "title", report_words[WORD_CONFUSION][chinese]);
    for (size_t row = 0; row < classes; row++) map_row(to, evaluation, rows, row, size);
    map_axes(to, evaluation, classes, size, chinese);
    fputs("</svg></figure>\n", to);
}

static void class_table(FILE *to, const json_t *evaluation, bool chinese) {
    const json_t *samples = json_object_get(evaluation, "class_samples");
    const json_t *correct = json_object_get(evaluation, "class_correct");
    size_t classes = json_array_size(samples);
    if (classes == 0) return;
    fprintf(to, "<details%s><summary>%s</summary><table><tr><th>%s</th><th>%s</th><th>%s</th></tr>\n",
            classes <= 20 ? " open" : "", report_words[WORD_CLASSES][chinese], report_words[WORD_LABEL][chinese],
            report_words[WORD_SAMPLES][chinese], report_words[WORD_ACCURACY_PERCENT][chinese]);
    for (size_t k = 0; k < classes; k++) {
        json_int_t count = number_at(samples, k);
        fputs("<tr>", to);
        class_cell(to, evaluation, (json_int_t)k);
        fprintf(to, "<td>%lld</td><td>", (long long)count);
        if (count > 0) fprintf(to, "%.2f", 100.0 * (double)number_at(correct, k) / (double)count);
        fputs("</td></tr>\n", to);
    }
    fputs("</table></details>\n", to);
}

static void worst_table(FILE *to, const json_t *evaluation, bool chinese) {
    const json_t *worst = json_object_get(evaluation, "worst"), *item;
    bool labels = json_object_get(evaluation, "class_samples") != NULL;
    size_t i;
    if (json_array_size(worst) == 0) return;
    fprintf(to, "<details><summary>%s</summary><table><tr><th>%s</th><th>%s</th>", report_words[WORD_WORST][chinese],
            report_words[WORD_SAMPLE][chinese], report_words[WORD_EVAL_LOSS][chinese]);
    if (labels)
        fprintf(to, "<th>%s</th><th>%s</th>", report_words[WORD_LABEL][chinese], report_words[WORD_PREDICTED][chinese]);
    fputs("</tr>\n", to);
    json_array_foreach(worst, i, item) {
        const json_t *loss = json_object_get(item, "loss");
        char text[32];
        FREED char *sample = report_sample(item);
        fputs("<tr>", to);
        html_element(to, "td", sample);
        fprintf(to, "<td>%s</td>", text_number(text, json_is_number(loss) ? json_number_value(loss) : NAN));
        if (labels) {
            class_cell(to, evaluation, json_integer_value(json_object_get(item, "label")));
            class_cell(to, evaluation, json_integer_value(json_object_get(item, "predicted")));
        }
        fputs("</tr>\n", to);
    }
    fputs("</table></details>\n", to);
}

/* One evaluation under its heading: "Last evaluation, step 391". */
static void one(FILE *to, const report_run *run, const json_t *evaluation, int heading, bool chinese) {
    fprintf(to, "<h2>%s, %s %lld</h2>\n<div class=\"charts\">\n", report_words[heading][chinese],
            report_words[WORD_STEP][chinese], (long long)json_integer_value(json_object_get(evaluation, "step")));
    heat_map(to, evaluation, chinese);
    fputs("<div>\n", to);
    class_table(to, evaluation, chinese);
    worst_table(to, evaluation, chinese);
    fputs("</div></div>\n", to);
    report_pictures(to, run, evaluation, chinese);
}

void report_evaluations(FILE *to, const report_run *run, bool chinese) {
    json_auto_t *last = report_object(run->dir, "evaluation.json");
    json_auto_t *best = report_object(run->dir, "evaluation.best.json");
    double last_step = json_number_value(json_object_get(last, "step"));
    double best_step = json_number_value(json_object_get(best, "step"));
    if (json_object_size(last) > 0) one(to, run, last, WORD_LAST_EVALUATION, chinese);
    /* A file of another best is from before the run went back. */
    if (json_object_size(best) > 0 && best_step != last_step && best_step == report_number(run, "best_step"))
        one(to, run, best, WORD_BEST_EVALUATION, chinese);
}
