/* predict_pictures.c - predictions for files and folders of pictures: a row for each, with the class and how probable
 * it is. A picture or folder that cannot be read is named on stderr, and the exit status says so at the end. */
#include <stdlib.h>
#include <string.h>

#include <tandem/data.h>

#include "tools/inference/predict.h"
#include "tools/terminal/json.h"
#include "tools/terminal/term.h"

/* Pictures that go through the model at once. */
typedef struct group {
    prediction *p;
    int64_t inputs, most, count;
    float *x, *y;
    double *probability; /* of one row */
    char **path;
    int failed; /* exit status, if a picture could not be read */
} group;

static void csv_row(const group *g, const char *path, const float *y, int64_t best) {
    const prediction *p = g->p;
    char number[24];
    predict_cell(p, path);
    if (p->classes) {
        fputc(',', p->to);
        predict_cell(p, predict_class(p, best, number));
        fprintf(p->to, ",%.6f", g->probability[best]);
    }
    for (int64_t i = 0; i < p->width; i++)
        fprintf(p->to, p->classes ? ",%.6f" : ",%.9g", p->classes ? g->probability[i] : (double)y[i]);
    fputc('\n', p->to);
}

/* A name of a file need not be UTF-8, as text in JSON must be. */
static json_t *file_name(const char *path) {
    json_t *name = json_string(path);
    FREED char *shown = name ? NULL : text_printable(path, false);
    return name ? name : json_string(shown);
}

static void json_row(const group *g, const char *path, const float *y, int64_t best) {
    const prediction *p = g->p;
    char number[24];
    json_t *all = p->classes ? json_object() : json_array();
    for (int64_t i = 0; i < p->width; i++) {
        if (p->classes)
            json_object_set_new(all, predict_class(p, i, number), json_number(g->probability[i]));
        else
            json_array_append_new(all, json_number((double)y[i]));
    }
    json_print(p->classes
                   ? json_pack("{s:o, s:s, s:o, s:o}", "file", file_name(path), "class", predict_class(p, best, number),
                               "probability", json_number(g->probability[best]), "probabilities", all)
                   : json_pack("{s:o, s:o}", "file", file_name(path), "outputs", all),
               p->to);
}

static tdm_status write_group(group *g) {
    prediction *p = g->p;
    tdm_status status = g->count > 0 ? tdm_run_predict_as(p->run, TDM_INPUT_READY, g->x, g->count, g->y) : TDM_OK;
    for (int64_t i = 0; i < g->count; i++) {
        const float *y = g->y + i * p->width;
        int64_t best = predict_best(y, p->width);
        if (status == TDM_OK) predict_look(p, g->path[i], y);
        if (p->classes) predict_softmax(y, p->width, g->probability);
        if (status != TDM_OK) {
            /* only the paths are released */
        } else if (p->form == PREDICT_JSONL) {
            json_row(g, g->path[i], y, best);
        } else {
            csv_row(g, g->path[i], y, best);
        }
        free(g->path[i]);
    }
    g->count = 0;
    return status;
}

/* What cannot be read is told, and the others are predicted. */
static tdm_status go_on(group *g, tdm_status status) {
    if (status != TDM_E_DATA && status != TDM_E_IO) return status;
    tell_error(status);
    g->failed = TDM_E_DATA;
    return TDM_OK;
}

static tdm_status add_picture(void *user, const char *path) {
    group *g = user;
    tdm_status status = tdm_run_read_picture(g->p->run, path, g->x + g->count * g->inputs);
    if (status != TDM_OK) return go_on(g, status);
    g->path[g->count++] = text_copy(path);
    return g->count == g->most ? write_group(g) : TDM_OK;
}

static void head(const prediction *p) {
    char number[24];
    if (p->form != PREDICT_CSV) return;
    fputs(p->classes ? "file,class,probability" : "file", p->to);
    for (int64_t i = 0; i < p->width; i++) {
        fputc(',', p->to);
        if (p->classes)
            predict_cell(p, predict_class(p, i, number));
        else
            fprintf(p->to, "output_%lld", (long long)i);
    }
    fputc('\n', p->to);
}

int predict_pictures(prediction *p) {
    group g = {.p = p, .inputs = tdm_run_input_width(p->run), .most = tdm_run_eval_batch(p->run)};
    FREED float *x = memory_new((size_t)(g.inputs * g.most), sizeof *x),
                *y = memory_new((size_t)(p->width * g.most), sizeof *y);
    FREED double *probability = memory_new((size_t)p->width, sizeof *probability);
    FREED char **path = memory_new((size_t)g.most, sizeof *path);
    tdm_status status = TDM_OK;
    g.x = x;
    g.y = y;
    g.probability = probability;
    g.path = path;
    head(p);
    for (int i = 1; i < p->tool->word_count && status == TDM_OK; i++)
        status = go_on(&g, tdm_data_pictures(&p->tool->host, p->tool->word[i], add_picture, &g));
    tdm_status last = status == TDM_OK ? write_group(&g) : status;
    for (int64_t i = 0; i < g.count; i++) free(path[i]);
    return last == TDM_OK ? g.failed : tell_error(last);
}
