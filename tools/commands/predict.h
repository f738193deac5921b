/* predict.h - what `tandem predict` writes: rows of samples of the data, or of pictures. */
#ifndef PREDICT_H
#define PREDICT_H

#include "tools/commands/inference.h"

typedef enum predict_form { PREDICT_CSV, PREDICT_JSONL, PREDICT_NPY } predict_form;

typedef struct prediction {
    predict_form form;
    FILE *to;
    tdm_run *run;
    bool classes; /* outputs are class scores, and samples have labels */
    int64_t width, count;
    tool *tool;
} prediction;

/* A CSV cell, in quotes if it needs them. */
void predict_cell(FILE *to, const char *text);
/* The name of a class: the data's, or its number. `number` holds 24 bytes. */
const char *predict_class(const prediction *p, int64_t index, char number[24]);
int64_t predict_best(const float *y, int64_t width);

/* predict_pictures.c: rows for the files and folders in the tool's words after the first. The exit code. */
int predict_pictures(const prediction *p);

#endif
