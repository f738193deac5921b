/* bench.c - see bench.h. */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void samples_add(samples *s, double value) {
    s->value = memory_grow(s->value, &s->room, s->count + 1, sizeof *s->value);
    s->value[s->count++] = value;
}

double samples_mean(const samples *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->value[i];
    return s->count ? sum / (double)s->count : NAN;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_quantile(const samples *s, double q) {
    if (s->count == 0) return NAN;
    qsort(s->value, s->count, sizeof *s->value, by_value);
    return s->value[(size_t)(q * (double)(s->count - 1) + 0.5)];
}

void samples_free(samples *s) {
    free(s->value);
    *s = (samples){NULL, 0, 0};
}

bool bench_counts(const tool *t, int64_t *iterations, int64_t *warmup) {
    return args_int(t, "--iterations", 1, iterations) && args_int(t, "--warmup", 0, warmup);
}

static tdm_status add_layer(tdm_graph *graph, const bench_layer *layer, tdm_value *at) {
    enum { MOST = 16 };
    tdm_value inputs[MOST];
    int least;
    const tdm_status status = tdm_graph_op_inputs(layer->kind, &least, NULL);
    for (int i = 0; i < MOST; i++) inputs[i] = *at;
    if (status != TDM_OK) return status;
    return tdm_graph_add(graph, layer->kind, layer->name, inputs, least, layer->attrs, layer->attr_count, at);
}

tdm_status bench_graph(tdm_graph **out, const tool *t, int ndim, const int64_t *shape, const bench_layer *layers,
                       int count) {
    tdm_value at;
    tdm_graph *g = NULL;
    tdm_status status = tdm_graph_new(&g, &t->host);
    if (status == TDM_OK) status = tdm_graph_input(g, ndim, shape, &at);
    for (const bench_layer *l = layers; l < layers + count && status == TDM_OK; l++)
        if (l->kind) status = add_layer(g, l, &at);
    if (status == TDM_OK) status = tdm_graph_finish(g, at);
    *out = status == TDM_OK ? g : NULL;
    if (status != TDM_OK) tdm_graph_free(g);
    return status;
}

void bench_phases(const tdm_event *event, double out[REPORT_PHASES]) {
    memcpy(out, &event->ms, sizeof event->ms);
}
