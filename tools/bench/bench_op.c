/* bench_op.c - `tandem bench op`: measures forward and backward of one layer, each called again and again on the same
 * tensors, as who measures a layer of PyTorch does.
 *
 * A layer with parameters comes before the measured one, because no gradient is computed for a model's input. A layer
 * that looks numbers up, as embedding, reads those of the samples, so that it is alone. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    char kernel[64]; /* "": the op has no call of its own */
    samples forward, backward;
} op_case;

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

/* input -> a cheap layer with parameters -> the op. In front of layers for images it is a convolution, as in networks,
 * which gives the layout that kernels like; and a layer that nothing can be fused with. */
static tdm_status build(const op_case *c, tdm_graph **out) {
    char channels[24];
    snprintf(channels, sizeof channels, "%lld", (long long)c->dim[0]);
    const tdm_attr conv[] = {
        {"out", channels, {NULL, 0, 0}}, {"groups", channels, {NULL, 0, 0}}, {"kernel", "1", {NULL, 0, 0}}};
    const tdm_attr drop[] = {{"p", "0", {NULL, 0, 0}}};
    const bench_layer op = {c->kind, "op", c->attrs, c->attr_count};
    const bench_layer image[] = {{"conv2d", "before", conv, 3}, {"dropout2d", "between", drop, 1}, op};
    const bench_layer other[] = {{"layernorm", "before", NULL, 0}, op};
    if (c->is_alone) return bench_graph(out, c->t, c->ndim, c->dim, &op, 1);
    return c->ndim == 3 ? bench_graph(out, c->t, c->ndim, c->dim, image, 3)
                        : bench_graph(out, c->t, c->ndim, c->dim, other, 2);
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

/* Of the layer's calls, those behind the warm-up. */
static tdm_status read_times(op_case *c, tdm_run *run) {
    TDM_FREED char *text = NULL;
    size_t i, k;
    json_t *step, *ms;
    const tdm_status status = tdm_run_print(run, "times.json", &text);
    if (status != TDM_OK) return status;
    json_auto_t *root = json_loads(text, 0, NULL);
    json_array_foreach(root, i, step) {
        const char *layer = json_string_value(json_object_get(step, "layer"));
        if (layer == NULL || strcmp(layer, "op") != 0) continue;
        const bool is_forward = strcmp(json_string_value(json_object_get(step, "pass")), "forward") == 0;
        snprintf(c->kernel, sizeof c->kernel, "%s", json_string_value(json_object_get(step, "kernel")));
        json_array_foreach(json_object_get(step, "ms"), k, ms) {
            if ((int64_t)k >= c->warmup) samples_add(is_forward ? &c->forward : &c->backward, json_number_value(ms));
        }
    }
    return TDM_OK;
}

static void fill_job(tdm_job *job, const op_case *c) {
    job->name = "bench";
    job->data.train = (tdm_data_spec){
        .format = TDM_DATA_SYNTHETIC, .samples = c->batch, .classes = TDM_INT_NULL, .seed = TDM_INT_NULL};
    job->data.shuffle = false;
    job->loss.type = TDM_MSE; /* any shape of output will do */
    job->optimizer.type = TDM_SGD;
    job->optimizer.lr = 0;
    job->train.epochs = TDM_INT_NULL;
    job->train.steps = 1;
    job->train.per_device = c->batch;
    job->train.global_batch = TDM_INT_NULL;
    job->parallel.mode = TDM_MODE_SINGLE;
    job->parallel.threads_per_device = c->threads;
    job->parallel.kernels = c->ref ? TDM_KERNELS_REF : TDM_KERNELS_AUTO;
}

/* What the calling thread, which computes a single replica, spent on the processor. */
static int64_t processor_ns(void *user, tdm_clock clock) {
    struct timespec now;
    (void)user, (void)clock;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static tdm_status measure(op_case *c) {
    tdm_job job;
    tdm_graph *graph = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_host host = c->t->host;
    if (args_flag(c->t, "--processor")) host.size = sizeof host, host.now_ns = processor_ns;
    options.host = &host;
    options.repeats = c->warmup + c->iterations;
    tdm_status status = tdm_job_init(&job);
    if (status == TDM_OK) status = build(c, &graph);
    if (status == TDM_OK) {
        fill_job(&job, c);
        status = tdm_run_open(&run, &job, graph, &options);
    }
    if (status == TDM_OK) status = tdm_run_step(run, 1);
    if (status == TDM_OK) status = read_times(c, run);
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

static json_t *quantile(samples *s, double q) {
    return s->count > 0 ? json_real(samples_quantile(s, q)) : json_null();
}

static void print_json(op_case *c) {
    json_print(json_pack("{s:s, s:s*, s:I, s:I, s:o, s:o, s:o, s:o}", "op", c->kind, "kernel",
                         c->kernel[0] != 0 ? c->kernel : NULL, "batch", (json_int_t)c->batch, "threads",
                         (json_int_t)c->threads, "forward_ms", quantile(&c->forward, 0.5), "backward_ms",
                         quantile(&c->backward, 0.5), "forward_min_ms", quantile(&c->forward, 0), "backward_min_ms",
                         quantile(&c->backward, 0)),
               stdout);
}

static void print_text(op_case *c) {
    printf("%s, batch %lld, %lld thread%s", c->kind, (long long)c->batch, (long long)c->threads,
           c->threads == 1 ? "" : "s");
    if (c->forward.count == 0) {
        printf(": the plan gives it no call of its own, so there is nothing to measure\n");
        return;
    }
    printf(", kernel %s, %lld calls one after another on the same tensors: forward %.4f ms (least %.4f)", c->kernel,
           (long long)c->iterations, samples_quantile(&c->forward, 0.5), samples_quantile(&c->forward, 0));
    if (c->backward.count > 0)
        printf(", backward %.4f ms (least %.4f)", samples_quantile(&c->backward, 0.5),
               samples_quantile(&c->backward, 0));
    putchar('\n');
}

static int measure_and_print(op_case *c) {
    const tdm_status status = measure(c);
    if (status != TDM_OK) return tell_error(status);
    args_flag(c->t, "--json") ? print_json(c) : print_text(c);
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
    if (args_flag(t, "--processor") && c.threads > 1)
        return args_wrong(t, "`--processor` is the time of one thread; leave out --threads");
    c.kind = t->word[1];
    attrs_from_overrides(&c);
    c.is_alone = looks_up(&c);
    int code = measure_and_print(&c);
    samples_free(&c.forward);
    samples_free(&c.backward);
    text_list_free(&c.texts);
    free(c.attrs);
    return code;
}
