/* bench_op.c - `tandem bench op`: measures forward and backward of one layer.
 *
 * A layer with parameters comes before the measured one, because no gradient is computed for a model's input. Its times
 * are measured with a second model, in turn with the first, and subtracted: a machine's speed changes meanwhile. A
 * layer that looks numbers up, as embedding, reads those of the samples, so that it is alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/terminal/json.h"

typedef struct op_case {
    tool *t;
    const char *kind;
    tdm_attr *attrs; /* keys and values are parts of `texts` */
    int attr_count;
    text_list texts;
    int64_t dim[6];
    int ndim;
    int64_t batch, threads, warmup, iterations;
    int ref; /* the index among the choices of --kernels */
    bool is_alone;
    char kernel[64];
} op_case;

/* One of the two models: the layer before, and the same with the op behind it. */
typedef struct side {
    tdm_graph *graph;
    tdm_run *run;
    int64_t skip; /* steps that do not count */
    samples forward, backward;
} side;
enum { ROUNDS = 5 };

static bool parse_shape(op_case *c, const char *text) {
    c->ndim = 0;
    while (*text && c->ndim < 6) {
        char *end;
        long long n = strtoll(text, &end, 10);
        if (end == text || n < 1 || n > 1000000 || (*end && *end != 'x')) return false;
        c->dim[c->ndim++] = n;
        text = end + (*end == 'x');
        if (end[0] == 'x' && !end[1]) return false;
    }
    return *text == 0 && c->ndim >= 1 && c->ndim <= 3;
}

/* input -> a cheap layer with parameters -> the op, if `with_op` */
static tdm_status build(const op_case *c, bool with_op, tdm_graph **out) {
    const bench_layer layers[] = {
        {"batchnorm2d", "before", NULL, 0}, {"layernorm", "before", NULL, 0}, {c->kind, "op", c->attrs, c->attr_count}};
    const bench_layer chain[] = {layers[c->ndim == 3 ? 0 : 1], layers[2]};
    if (c->is_alone) return bench_graph(out, c->t, c->ndim, c->dim, layers + 2, 1);
    return bench_graph(out, c->t, c->ndim, c->dim, chain, with_op ? 2 : 1);
}

/* Faults of the layer are told when it is built behind another. */
static bool looks_up(const op_case *c) {
    tdm_input_info input = TDM_INPUT_INFO_INIT;
    tdm_graph *graph = NULL;
    const bench_layer op = {c->kind, "op", c->attrs, c->attr_count};
    const bool is_read =
        bench_graph(&graph, c->t, c->ndim, c->dim, &op, 1) == TDM_OK && tdm_graph_get_input(graph, 0, &input) == TDM_OK;
    tdm_graph_free(graph);
    return is_read && input.is_looked_up;
}

static int on_event(const tdm_event *event, void *user) {
    side *s = user;
    if (event->kind != TDM_EVENT_STEP || s->skip-- > 0) return 0;
    samples_add(&s->forward, event->ms.forward);
    samples_add(&s->backward, event->ms.backward);
    return 0;
}

/* Which kernel the plan chose for the op. */
static void find_kernel(op_case *c, tdm_run *run) {
    TDM_FREED char *text = NULL;
    size_t i;
    json_t *step;
    if (tdm_run_print(run, "plan.json", &text) != TDM_OK) return;
    json_auto_t *root = json_loads(text, 0, NULL);
    const json_t *plan = json_object_get(root, "plan");
    snprintf(c->kernel, sizeof c->kernel, "none (fused into the layer before)");
    json_array_foreach(json_object_get(plan ? plan : root, "steps"), i, step) {
        const char *name = json_string_value(json_object_get(step, "name"));
        const char *kernel = json_string_value(json_object_get(step, "kernel"));
        if (name && kernel && strcmp(name, "op") == 0) snprintf(c->kernel, sizeof c->kernel, "%s", kernel);
    }
}

static tdm_status side_open(side *s, const op_case *c, bool with_op) {
    tdm_job job;
    tdm_status status = tdm_job_init(&job);
    if (status == TDM_OK) status = build(c, with_op, &s->graph);
    if (status != TDM_OK) return status;
    job.name = "bench";
    job.data.train = (tdm_data_spec){
        .format = TDM_DATA_SYNTHETIC, .samples = c->batch, .classes = TDM_INT_NULL, .seed = TDM_INT_NULL};
    job.data.shuffle = false;
    job.loss.type = TDM_MSE; /* any shape of output will do */
    job.optimizer.type = TDM_SGD;
    job.optimizer.lr = 0;
    job.train.epochs = TDM_INT_NULL;
    job.train.steps = ROUNDS * c->warmup + c->iterations;
    job.train.per_device = c->batch;
    job.train.global_batch = TDM_INT_NULL;
    job.parallel.mode = TDM_MODE_SINGLE;
    job.parallel.threads_per_device = c->threads;
    job.parallel.kernels = c->ref ? TDM_KERNELS_REF : TDM_KERNELS_AUTO;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = &c->t->host;
    options.on_event = on_event;
    options.user = s;
    return tdm_run_open(&s->run, &job, s->graph, &options);
}

/* Each round warms up anew: the other model's steps have taken the caches. */
static tdm_status side_round(side *s, const op_case *c, int64_t counted) {
    samples_free(&s->forward);
    samples_free(&s->backward);
    s->skip = c->warmup;
    return tdm_run_step(s->run, c->warmup + counted);
}

static void side_close(side *s) {
    tdm_run_close(s->run);
    tdm_graph_free(s->graph);
    samples_free(&s->forward);
    samples_free(&s->backward);
}

static double difference(samples *with, samples *before) {
    return samples_quantile(with, 0.5) - (before->count > 0 ? samples_quantile(before, 0.5) : 0);
}

/* The medians, over the rounds, of the differences of the two models' medians. */
static tdm_status measure_rounds(op_case *c, side *before, side *with, samples *forward, samples *backward) {
    const int64_t rounds = c->iterations < ROUNDS ? c->iterations : ROUNDS;
    for (int64_t i = 0; i < rounds; i++) {
        const int64_t counted = c->iterations * (i + 1) / rounds - c->iterations * i / rounds;
        tdm_status status = c->is_alone ? TDM_OK : side_round(before, c, counted);
        if (status == TDM_OK) status = side_round(with, c, counted);
        if (status != TDM_OK) return status;
        samples_add(forward, difference(&with->forward, &before->forward));
        samples_add(backward, difference(&with->backward, &before->backward));
    }
    return TDM_OK;
}

static tdm_status measure(op_case *c, double *forward, double *backward) {
    side before = {0}, with = {0};
    samples forwards = {NULL, 0, 0}, backwards = {NULL, 0, 0};
    tdm_status status = c->is_alone ? TDM_OK : side_open(&before, c, false);
    if (status == TDM_OK) status = side_open(&with, c, true);
    if (status == TDM_OK) find_kernel(c, with.run);
    if (status == TDM_OK) status = measure_rounds(c, &before, &with, &forwards, &backwards);
    if (status == TDM_OK) {
        *forward = fmax(0, samples_quantile(&forwards, 0.5));
        *backward = fmax(0, samples_quantile(&backwards, 0.5));
    }
    samples_free(&forwards);
    samples_free(&backwards);
    side_close(&with);
    side_close(&before);
    return status;
}

static int measure_and_print(op_case *c) {
    double forward = 0, backward = 0;
    const tdm_status status = measure(c, &forward, &backward);
    if (status != TDM_OK) return tell_error(status);
    if (args_flag(c->t, "--json")) {
        json_print(json_pack("{s:s, s:s, s:I, s:I, s:f, s:f}", "op", c->kind, "kernel", c->kernel, "batch",
                             (json_int_t)c->batch, "threads", (json_int_t)c->threads, "forward_ms", forward,
                             "backward_ms", backward),
                   stdout);
    } else {
        printf("%s, batch %lld, %lld thread%s, kernel %s: forward %.4f ms, backward %.4f ms (medians of %lld)\n",
               c->kind, (long long)c->batch, (long long)c->threads, c->threads == 1 ? "" : "s", c->kernel, forward,
               backward, (long long)c->iterations);
    }
    return TDM_OK;
}

static void attrs_from_overrides(op_case *c) {
    c->attrs = memory_new((size_t)c->t->override_count, sizeof *c->attrs);
    for (int i = 0; i < c->t->override_count; i++) {
        text_add(&c->texts, "%s", c->t->override[i]);
        char *key = c->texts.text[i], *equals = strchr(key, '=');
        *equals = 0;
        c->attrs[c->attr_count++] = (tdm_attr){key, equals + 1, {NULL, 0, 0}};
    }
}

int bench_op(tool *t) {
    op_case c = {.t = t, .batch = 32, .threads = 1, .warmup = 5, .iterations = 20};
    const char *input = args_flag(t, "--input");
    if (t->word_count < 2)
        return args_wrong(t, "`bench op` needs a kind of layer; `tandem explain layers` lists the kinds");
    if (!input || !parse_shape(&c, input)) {
        return args_wrong(t, "`--input` must be the shape of a sample, such as 64x16x16 or 512%s%s",
                          input ? "; got " : "", input ? input : "");
    }
    if (!args_choice(t, "--kernels", &c.ref) || !args_int(t, "--batch", 1, &c.batch) ||
        !args_int(t, "--threads", 1, &c.threads) || !bench_counts(t, &c.iterations, &c.warmup)) {
        return TDM_E_USAGE;
    }
    c.kind = t->word[1];
    attrs_from_overrides(&c);
    c.is_alone = looks_up(&c);
    int code = measure_and_print(&c);
    text_list_free(&c.texts);
    free(c.attrs);
    return code;
}
