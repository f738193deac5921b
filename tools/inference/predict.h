/* predict.h - what `tandem predict` writes: rows of samples of the data, of a table or an array, or of pictures.
 */
#ifndef PREDICT_H
#define PREDICT_H

#include <string.h>

#include "tools/inference/inference.h"

typedef enum predict_form { PREDICT_CSV, PREDICT_JSONL, PREDICT_NPY } predict_form;

typedef struct prediction {
    predict_form form;
    FILE *to;
    tdm_run *run;
    bool classes; /* outputs are class scores, and samples have labels */
    bool binary;  /* an output is the logit of one class against another */
    int64_t width, count;
    tool *tool;
    int64_t not_finite;  /* samples with an output that is NaN or infinite */
    char *first, *which; /* the name of the first of them, and that output; NULL: none */
} prediction;

/* Counts the sample if one of its outputs is NaN or infinite. */
void predict_look(prediction *p, const char *name, const float *y);
/* At the end: a warning if there were any. */
void predict_tell_not_finite(prediction *p);

/* A CSV cell, in quotes if it needs them. A file has names of files and classes as they are; standard output has them
 * printable, for it may be a terminal. */
static inline void predict_cell(const prediction *p, const char *name) {
    FREED char *shown = p->to == stdout ? text_printable(name, false) : NULL;
    const char *text = shown ? shown : name;
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, p->to);
        return;
    }
    fputc('"', p->to);
    for (; *text; text++) fprintf(p->to, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', p->to);
}

/* The name of a class: the data's, or its number. */
static inline const char *predict_class(const prediction *p, int64_t index, char number[24]) {
    const char *name = tdm_run_class_name(p->run, index);
    snprintf(number, 24, "%lld", (long long)index);
    return name ? name : number;
}

static inline int64_t predict_best(const float *y, int64_t width) {
    int64_t at = 0;
    for (int64_t i = 1; i < width; i++) {
        if (y[i] > y[at]) at = i;
    }
    return at;
}

static inline bool predict_is_table(const char *name) {
    return text_ends(name, ".csv") || text_ends(name, ".csv.gz");
}

static inline bool predict_is_array(const char *name) {
    return text_ends(name, ".npy");
}

/* exp(y[i]) by their sum. */
void predict_softmax(const float *y, int64_t width, double *out);
/* predict_rows.c: rows for the table or array that is the tool's second word. The exit code. */
int predict_rows(prediction *p);
/* predict_pictures.c: rows for the files and folders in the tool's words after the first. The exit code. */
int predict_pictures(prediction *p);

#endif
