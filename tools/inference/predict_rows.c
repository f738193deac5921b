/* predict_rows.c - predictions for the rows of a table or of an array: the class with the probability of each, or the
 * value, of a table in the unit of the column trained on. */
#include <math.h>
#include <stdlib.h>

#include "tools/inference/predict.h"
#include "tools/terminal/json.h"

/* What the outputs of a row are. */
typedef struct answer {
    prediction *p;
    tdm_target target;
    bool is_binary;      /* one output, the logit of the second of two names */
    int64_t classes;     /* 0: outputs are values */
    bool has_value;      /* one output, which is a value */
    double *probability; /* of each class */
    int64_t unseen;      /* categories that the rows so far have and the data trained on has not */
} answer;

static const char *class_of(const answer *a, int64_t index, char number[24]) {
    const char *name = a->is_binary ? a->target.value[index] : NULL;
    return name ? name : predict_class(a->p, index, number);
}

static void take_probabilities(const answer *a, const float *y) {
    if (a->is_binary) {
        a->probability[1] = 1 / (1 + exp(-(double)y[0]));
        a->probability[0] = 1 - a->probability[1];
    } else if (a->classes > 0) {
        predict_softmax(y, a->classes, a->probability);
    }
}

static int64_t best_of(const answer *a) {
    int64_t at = 0;
    for (int64_t i = 1; i < a->classes; i++) {
        if (a->probability[i] > a->probability[at]) at = i;
    }
    return at;
}

static const char *target_name(const answer *a) {
    return a->target.name ? a->target.name : a->classes > 0 ? "class" : "value";
}

/* A table has one target, so mean and deviation are that of the only output. */
static double value_of(const answer *a, float y) {
    return (double)y * a->target.stdev + a->target.mean;
}

static void head(const answer *a) {
    const prediction *p = a->p;
    char number[24];
    if (p->form != PREDICT_CSV) return;
    fputs("index", p->to);
    if (a->classes > 0 || a->has_value) {
        fputc(',', p->to);
        predict_cell(p, target_name(a));
    }
    if (a->classes > 0) fputs(",probability", p->to);
    if (a->classes == 0 && !a->has_value)
        for (int64_t i = 0; i < p->width; i++) fprintf(p->to, ",output_%lld", (long long)i);
    for (int64_t i = 0; i < a->classes; i++) {
        fputc(',', p->to);
        predict_cell(p, class_of(a, i, number));
    }
    fputc('\n', p->to);
}

static void csv_row(answer *a, int64_t index, const float *y) {
    const prediction *p = a->p;
    char number[24];
    fprintf(p->to, "%lld", (long long)index);
    if (a->classes > 0) {
        const int64_t best = best_of(a);
        fputc(',', p->to);
        predict_cell(p, class_of(a, best, number));
        fprintf(p->to, ",%.6f", a->probability[best]);
        for (int64_t i = 0; i < a->classes; i++) fprintf(p->to, ",%.6f", a->probability[i]);
    } else {
        for (int64_t i = 0; i < p->width; i++) fprintf(p->to, ",%.9g", value_of(a, y[i]));
    }
    fputc('\n', p->to);
}

/* The row's categories that the data trained on does not have; NULL: none. */
static json_t *take_unseen(answer *a, int64_t index) {
    tdm_unseen_category category = TDM_UNSEEN_CATEGORY_INIT;
    json_t *all = NULL;
    while (tdm_run_unseen(a->p->run, a->unseen, &category) == TDM_OK && category.sample == index) {
        FREED char *input = text_format("%lld", (long long)category.input);
        if (!all) all = json_object();
        json_object_set_new(all, category.column ? category.column : input, json_string(category.value));
        a->unseen++;
    }
    return all;
}

static void json_row(answer *a, int64_t index, const float *y) {
    char number[24];
    json_t *row = json_pack("{s:I}", "index", (json_int_t)index), *unseen = take_unseen(a, index);
    if (a->has_value) {
        json_object_set_new(row, target_name(a), json_number(value_of(a, y[0])));
    } else if (a->classes == 0) {
        json_t *all = json_array();
        for (int64_t i = 0; i < a->p->width; i++) json_array_append_new(all, json_number(value_of(a, y[i])));
        json_object_set_new(row, "outputs", all);
    } else {
        json_t *all = json_object();
        const int64_t best = best_of(a);
        for (int64_t i = 0; i < a->classes; i++)
            json_object_set_new(all, class_of(a, i, number), json_number(a->probability[i]));
        json_object_set_new(row, "class", json_string(class_of(a, best, number)));
        json_object_set_new(row, "probability", json_number(a->probability[best]));
        json_object_set_new(row, "probabilities", all);
    }
    if (unseen) json_object_set_new(row, "unseen", unseen);
    json_print(row, a->p->to);
}

static void write_rows(answer *a, int64_t first, int64_t rows, const float *y) {
    for (int64_t i = 0; i < rows; i++) {
        const float *row = y + i * a->p->width;
        FREED char *name = text_format("row %lld", (long long)(first + i));
        predict_look(a->p, name, row);
        take_probabilities(a, row);
        (a->p->form == PREDICT_JSONL ? json_row : csv_row)(a, first + i, row);
    }
}

int predict_rows(prediction *p) {
    answer a = {.p = p, .target = TDM_TARGET_INIT};
    tdm_status status = tdm_run_target(p->run, &a.target);
    if (status != TDM_OK) return tell_error(status);
    a.is_binary = !p->classes && p->binary && p->width == 1;
    a.classes = a.is_binary ? 2 : p->classes ? p->width : 0;
    a.has_value = a.classes == 0 && p->width == 1;
    const int64_t inputs = tdm_run_input_width(p->run), most = tdm_run_eval_batch(p->run);
    FREED double *probability = memory_new((size_t)(a.classes > 0 ? a.classes : 1), sizeof *probability);
    FREED float *x = memory_new((size_t)(inputs * most), sizeof *x),
                *y = memory_new((size_t)(p->width * most), sizeof *y);
    int64_t label;
    a.probability = probability;
    head(&a);
    for (int64_t first = 0; first < p->count && status == TDM_OK && !ferror(p->to); first += most) {
        const int64_t rows = p->count - first < most ? p->count - first : most;
        for (int64_t i = 0; i < rows && status == TDM_OK; i++)
            status = tdm_run_eval_sample(p->run, first + i, x + i * inputs, &label);
        if (status == TDM_OK) status = tdm_run_predict_as(p->run, TDM_INPUT_READY, x, rows, y);
        if (status == TDM_OK) write_rows(&a, first, rows, y);
    }
    return status == TDM_OK ? inference_tell_unseen(p->run) : tell_error(status);
}
