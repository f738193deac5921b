/* cmd_bench.c - `tandem bench step|op|all_reduce|data`: measures one part at a time. */
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

tdm_status bench_graph(tdm_graph **out, const tool *t, int ndim, const int64_t *shape, const bench_layer *layers,
                       int count) {
    tdm_value at;
    tdm_graph *g = NULL;
    tdm_status status = tdm_graph_new(&g, &t->host);
    if (status == TDM_OK) status = tdm_graph_input(g, ndim, shape, &at);
    for (const bench_layer *l = layers; l < layers + count && status == TDM_OK; l++) {
        const tdm_value inputs[2] = {at, at};
        if (l->kind) status = tdm_graph_add(g, l->kind, l->name, inputs, l->inputs, l->attrs, l->attr_count, &at);
    }
    if (status == TDM_OK) status = tdm_graph_finish(g, at);
    *out = status == TDM_OK ? g : NULL;
    if (status != TDM_OK) tdm_graph_free(g);
    return status;
}

void bench_phases(const tdm_event *event, double out[REPORT_PHASES]) {
    const tdm_phase_ms *ms = &event->ms;
    const double all[REPORT_PHASES] = {ms->data,     ms->scatter, ms->replicate,    ms->forward,   ms->gather, ms->loss,
                                       ms->backward, ms->comm,    ms->comm_exposed, ms->optimizer, ms->step};
    memcpy(out, all, sizeof all);
}

static int run(tool *t) {
    static const tool_part parts[] = {
        {"step", bench_step}, {"op", bench_op}, {"all_reduce", bench_all_reduce}, {"data", bench_data}, {NULL, NULL}};
    return args_part(t, parts);
}

const tool_verb verb_bench = {"bench",
                              "step CONFIG | op KIND [attribute=value ...] | all_reduce | data CONFIG",
                              "speed of one part: a step, an op, all_reduce, the loader",
                              "step        whole optimizer steps of a job in its mode: ms per step, samples/s, phases\n"
                              "op          forward and backward of one layer, on one device\n"
                              "all_reduce  sums over ranks, in nccl-tests' columns; every result is checked\n"
                              "data        the loader alone: the samples/s that it delivers\n\n"
                              "examples:\n"
                              "  tandem bench step job.yaml --iterations 50\n"
                              "  tandem bench op conv2d out=128 kernel=3 padding=1 --input 64x16x16 --batch 32\n"
                              "  tandem bench all_reduce --ranks 4 --max 64M --json\n"
                              "  tandem bench data job.yaml data.workers=4",
                              {{"--iterations", "N", "measured iterations (20; data: 200)"},
                               {"--warmup", "N", "iterations before the measured ones (5)"},
                               {"--mode", "single|dp|ddp", "step: how devices share the work (parallel.mode)"},
                               {"--input", "SHAPE", "op: shape of one sample, such as 64x16x16 or 512"},
                               {"--batch", "N", "op: samples per batch (32)"},
                               {"--threads", "N", "op: threads of the device (1)"},
                               {"--kernels", "auto|ref", "op: which kernels (auto)"},
                               {"--ranks", "N", "all_reduce: processes, or threads with --backend local (2)"},
                               {"--backend", "shm|local", "all_reduce: between processes or threads (shm)"},
                               {"--min", "BYTES", "all_reduce: smallest size, such as 8 or 4K (1K)"},
                               {"--max", "BYTES", "all_reduce: largest size (16M)"},
                               {"--plain", NULL, "all_reduce: use ordinary memory, not the communicator's"},
                               {"--json", NULL, "print JSON"}},
                              run,
                              {1, 2, true}};
