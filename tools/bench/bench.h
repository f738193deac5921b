/* bench.h - what the parts of `tandem bench` share. */
#ifndef BENCH_H
#define BENCH_H

#include "tools/report/report.h"

/* Repeated measurements of one time. */
typedef struct samples {
    double *value;
    size_t count, room;
} samples;
void samples_add(samples *s, double value);
double samples_mean(const samples *s);
double samples_quantile(const samples *s, double q); /* 0.5: the median; sorts */
void samples_free(samples *s);

/* --iterations and --warmup. False after printing the error. */
bool bench_counts(const tool *t, int64_t *iterations, int64_t *warmup);

/* One layer of a graph that is built here; all its inputs, the least that its kind takes, are the layer before. */
typedef struct bench_layer {
    const char *kind, *name; /* kind NULL: no layer; name NULL: the layer has none */
    const tdm_attr *attrs;
    int attr_count;
} bench_layer;
/* A chain of `count` layers behind an input of this shape. *out is NULL after a failure. */
tdm_status bench_graph(tdm_graph **out, const tool *t, int ndim, const int64_t *shape, const bench_layer *layers,
                       int count);

/* The phases of an event, in the order of report_phases. */
void bench_phases(const tdm_event *event, double out[REPORT_PHASES]);

extern const char bench_backends[]; /* the choices of --backend: "shm|local|gloo|mpi" */
int bench_step(tool *t);
int bench_op(tool *t);
int bench_comm(tool *t);
int bench_data(tool *t);

#endif
