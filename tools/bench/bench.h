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

/* The phases of an event, in the order of report_phases. */
void bench_phases(const tdm_event *event, double out[REPORT_PHASES]);

int bench_step(tool *t);
int bench_op(tool *t);
int bench_all_reduce(tool *t);
int bench_data(tool *t);

#endif
