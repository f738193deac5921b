/* See plan_support.h. */
#include "tests/plan/plan_support.h"

#include <tandem/graph.h>

enum { MAX_WORDS = 24, MAX_LAYERS = 128, MAX_TEXT = 16384 };

/* ---- graphs ---- */

typedef struct {
    char *word[MAX_WORDS];
    int count;
} words;

static words split(char *text) {
    words w = {.count = 0};
    for (char *save, *at = strtok_r(text, " ", &save); at != NULL && w.count < MAX_WORDS;
         at = strtok_r(NULL, " ", &save))
        w.word[w.count++] = at;
    return w;
}

typedef struct {
    const char *name[MAX_LAYERS];
    tdm_value value[MAX_LAYERS];
    int count;
} names;

static int find_name(const names *known, const char *name) {
    for (int i = 0; i < known->count; i++)
        if (strcmp(known->name[i], name) == 0) return i;
    return -1;
}

/* The batch, or several inputs. */
static tdm_status add_batch(tdm_graph *graph, names *known, const words *w) {
    tdm_status status = TDM_OK;
    for (int i = 0; i + 1 < w->count && status == TDM_OK; i += 2) {
        int64_t dim[TDM_MAX_DIMS];
        int count = 0;
        for (char *save, *at = strtok_r(w->word[i + 1], "x", &save); at != NULL; at = strtok_r(NULL, "x", &save))
            dim[count++] = atoll(at);
        tdm_value *value = &known->value[known->count];
        known->name[known->count++] = w->word[i];
        status = w->count == 2 ? tdm_graph_input(graph, count, dim, value)
                               : tdm_graph_add_input(graph, w->word[i], count, dim, value);
    }
    return status;
}

static tdm_status add_layer(tdm_graph *graph, names *known, const words *w) {
    tdm_value input[TDM_MAX_INPUTS];
    tdm_attr attr[MAX_WORDS];
    int inputs = 0, attrs = 0;
    for (int i = 2; i < w->count; i++) {
        char *equals = strchr(w->word[i], '=');
        if (equals == NULL) {
            const int at = find_name(known, w->word[i]);
            CHECK(at >= 0);
            input[inputs++] = at >= 0 ? known->value[at] : 0;
            continue;
        }
        *equals = '\0';
        attr[attrs++] = (tdm_attr){.key = w->word[i], .text = equals + 1};
    }
    known->name[known->count] = w->word[0];
    return tdm_graph_add(graph, w->word[1], w->word[0], input, inputs, attr, attrs, &known->value[known->count++]);
}

tdm_graph *plan_graph(const char *text) {
    char copy[MAX_TEXT];
    tdm_graph *graph = NULL;
    names known = {.count = 0};
    snprintf(copy, sizeof(copy), "%s", text);
    tdm_status status = tdm_graph_new(&graph, NULL);
    for (char *save, *at = strtok_r(copy, ";", &save); at != NULL && status == TDM_OK;
         at = strtok_r(NULL, ";", &save)) {
        const words w = split(at);
        status = known.count == 0 ? add_batch(graph, &known, &w) : add_layer(graph, &known, &w);
    }
    if (status == TDM_OK) status = tdm_graph_finish(graph, known.value[known.count - 1]);
    CHECK_OK(status);
    if (status == TDM_OK) return graph;
    tdm_graph_free(graph);
    return NULL;
}

/* ---- kernels ---- */

typedef struct {
    bool keeps, turns_x, turns_y, refuses, lacks, poor, again, statistics, floats;
    tdm_layout layout;
    unsigned epilogue;
    int64_t fill, weights, saved, scratch;
} offer;

static const char *offers_now;

static void read_number(const char *word, const char *key, int64_t *out) {
    const size_t length = strlen(key);
    if (strncmp(word, key, length) == 0) *out = atoll(word + length);
}

/* In the order in which a kernel applies them. */
static const struct {
    const char *word;
    tdm_epilogue bit;
} epilogues[] = {{"bias", TDM_EPILOGUE_BIAS},
                 {"add", TDM_EPILOGUE_ADD},
                 {"relu", TDM_EPILOGUE_RELU},
                 {"sum", TDM_EPILOGUE_SUM_DX},
                 {"gives", TDM_EPILOGUE_GIVES_BIAS}};
enum { EPILOGUES = sizeof epilogues / sizeof *epilogues };

static void read_word(const char *word, offer *o) {
    o->keeps = o->keeps || strcmp(word, "keep") == 0;
    const bool turns = strcmp(word, "turns") == 0;
    o->turns_x = o->turns_x || turns || strcmp(word, "turns_x") == 0;
    o->turns_y = o->turns_y || turns || strcmp(word, "turns_y") == 0;
    o->refuses = o->refuses || strcmp(word, "refuses") == 0;
    o->lacks = o->lacks || strcmp(word, "lacks") == 0;
    o->poor = o->poor || strcmp(word, "poor") == 0;
    o->again = o->again || strcmp(word, "again") == 0;
    o->floats = o->floats || strcmp(word, "floats") == 0;
    o->statistics = o->statistics || strcmp(word, "statistics") == 0;
    if (strcmp(word, "nhwc") == 0) o->layout = TDM_LAYOUT_NHWC;
    if (strcmp(word, "c8") == 0) o->layout = TDM_LAYOUT_C8;
    if (strcmp(word, "c16") == 0) o->layout = TDM_LAYOUT_C16;
    for (size_t i = 0; i < EPILOGUES; i++)
        if (strcmp(word, epilogues[i].word) == 0) o->epilogue |= epilogues[i].bit;
    read_number(word, "fill=", &o->fill);
    read_number(word, "weights=", &o->weights);
    read_number(word, "saved=", &o->saved);
    read_number(word, "scratch=", &o->scratch);
}

static offer offer_of(const char *op) {
    offer o = {.layout = TDM_LAYOUT_PLAIN};
    char copy[MAX_TEXT];
    const size_t length = strlen(op);
    snprintf(copy, sizeof(copy), "%s", offers_now);
    for (char *save, *at = strtok_r(copy, ";", &save); at != NULL; at = strtok_r(NULL, ";", &save)) {
        at += strspn(at, " ");
        if (strncmp(at, op, length) != 0 || at[length] != ':') continue;
        const words w = split(at + length + 1);
        for (int i = 0; i < w.count; i++) read_word(w.word[i], &o);
    }
    return o;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const offer o = offer_of(desc->op);
    fit->no_memory = o.poor;
    snprintf(fit->why, sizeof(fit->why), "%s", o.poor ? "out of memory" : "lacks it");
    if (o.lacks || o.poor || (o.refuses && desc->epilogue != 0)) return false;
    const bool may_turn = desc->epilogue != 0 && !o.keeps;
    const tdm_layout layout = o.keeps ? desc->x_layout[0] : o.layout;
    const tdm_layout x = may_turn && o.turns_x ? TDM_LAYOUT_NHWC : layout;
    const tdm_layout y = may_turn && o.turns_y ? TDM_LAYOUT_NHWC : layout;
    for (int i = 0; i < desc->input_count; i++) fit->x_layout[i] = desc->x[i].ndim == 4 ? x : TDM_LAYOUT_PLAIN;
    fit->y_layout = desc->y.ndim == 4 ? y : TDM_LAYOUT_PLAIN;
    fit->epilogue = o.epilogue;
    fit->x_channels = desc->may_fill ? o.fill : 0;
    fit->weight_channels = o.weights;
    fit->saved_bytes = (size_t)o.saved;
    fit->scratch_bytes = (size_t)o.scratch;
    return true;
}

static bool reorder_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = desc->x_layout[0];
    fit->y_layout = desc->y_layout;
    return true;
}

static bool bare_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const bool does = fits(desc, fit);
    fit->epilogue = 0;
    return does;
}

/* Plans only look whether a kernel has one. */
static tdm_status never_run(const tdm_kernel_args *args) {
    (void)args;
    return TDM_E_INTERNAL;
}

static void list_kernels(const tdm_kernel **list, tdm_kernel *kernel,
                         bool (*its_fits)(const tdm_kernel_desc *, tdm_kernel_fit *)) {
    int count = 0;
    for (; tdm_builtin_kernels[count] != NULL && count < MAX_LAYERS; count++) {
        const char *op = tdm_builtin_kernels[count]->op;
        const bool reorders = strcmp(op, tdm_builtin_layout_op->name) == 0;
        const offer o = offer_of(op);
        kernel[count] = (tdm_kernel){
            .op = op, .variant = "fake", .takes_bf16 = !o.floats, .fits = reorders ? reorder_fits : its_fits};
        if (its_fits == fits && o.again) kernel[count].recompute = never_run;
        if (o.statistics) kernel[count].statistics = never_run;
        list[count] = &kernel[count];
    }
    list[count] = NULL;
}

const tdm_kernel *const *plan_kernels(const char *offers) {
    static tdm_kernel kernel[MAX_LAYERS];
    static const tdm_kernel *list[MAX_LAYERS + 1];
    offers_now = offers;
    list_kernels(list, kernel, fits);
    return list;
}

const tdm_kernel *const *plan_kernels_without_epilogues(void) {
    static tdm_kernel kernel[MAX_LAYERS];
    static const tdm_kernel *list[MAX_LAYERS + 1];
    list_kernels(list, kernel, bare_fits);
    return list;
}

/* ---- plans ---- */

tdm_plan_options plan_options(const tdm_kernel *const *kernels) {
    tdm_plan_options options = {.rows = 2,
                                .threads = 1,
                                .training = true,
                                .first_bucket_mb = 1,
                                .bucket_cap_mb = 25,
                                .kernels = kernels,
                                .loss = 0};
    while (strcmp(tdm_builtin_losses[options.loss]->name, "mse") != 0) options.loss++;
    return options;
}

static const char *const layout_names[TDM_LAYOUT_COUNT] = {"", " nhwc", " c8", " c16"};

static void print_epilogue(const tdm_plan_node *node, tdm_text *out) {
    for (size_t i = 0; i < EPILOGUES; i++)
        if (tdm_has_epilogue(&node->desc, epilogues[i].bit)) tdm__text_printf(out, "+%s", epilogues[i].word);
}

static void print_value(const tdm_plan *plan, int value, tdm_text *out) {
    tdm__text_printf(out, " %s", plan->values[value].name);
    if (plan->values[value].channels > 0) tdm__text_printf(out, "[%lld]", (long long)plan->values[value].channels);
}

static void print_params(const tdm_plan *plan, const tdm_plan_node *node, tdm_text *out) {
    if (node->desc.param_count == 0) return;
    tdm__text_puts(out, "(");
    for (int k = 0; k < node->desc.param_count; k++)
        tdm__text_printf(out, "%c", plan->graph->params[node->graph_param[k]].def.suffix[0]);
    tdm__text_puts(out, ")");
}

static void print_node(const tdm_plan *plan, const tdm_plan_node *node, tdm_text *out) {
    tdm__text_puts(out, node->op->name);
    print_epilogue(node, out);
    print_params(plan, node, out);
    for (int k = 0; k < node->desc.input_count; k++) print_value(plan, node->x[k], out);
    tdm__text_puts(out, " ->");
    print_value(plan, node->y, out);
    tdm__text_puts(out, layout_names[plan->values[node->y].layout]);
    if (node->kernel != NULL && plan->values[node->y].alias_of >= 0) tdm__text_puts(out, " in place");
    if (node->weight.filled > 0)
        tdm__text_printf(out, "; weights %lldx%lldx%lld", (long long)node->weight.outer, (long long)node->weight.b,
                         (long long)node->weight.filled);
    if (node->summed_bias >= 0) tdm__text_printf(out, "; sums %s", plan->graph->params[node->summed_bias].name);
}

void plan_print_nodes(const tdm_plan *plan, tdm_text *out) {
    for (int i = 0; i < plan->node_count; i++) {
        if (i > 0) tdm__text_puts(out, "\n");
        print_node(plan, &plan->nodes[i], out);
    }
}

static void print_gradient(const tdm_plan *plan, const tdm_plan_node *node, tdm_text *out) {
    tdm__text_printf(out, "%s %s ->", node->op->name, plan->values[node->dy].name);
    for (int k = 0; k < node->desc.input_count; k++) {
        if (node->dx[k] < 0) continue;
        tdm__text_printf(out, " %s", plan->values[node->dx[k]].name);
        if (node->dx_adds[k])
            tdm__text_puts(out, node->dx_temp[k] >= 0 ? "+" : "&");
        else if (tdm__plan_root(plan, node->dx[k]) == tdm__plan_root(plan, node->dy))
            tdm__text_puts(out, "@");
    }
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->dparam[k] >= 0) tdm__text_printf(out, " d:%s", plan->params[node->dparam[k]].name);
    if (node->summed_bias >= 0) tdm__text_printf(out, " d:%s", plan->graph->params[node->summed_bias].name);
}

void plan_print_gradients(const tdm_plan *plan, tdm_text *out) {
    for (int i = plan->node_count - 1; i >= 0; i--) {
        if (!plan->nodes[i].needs_backward) continue;
        if (out->length > 0) tdm__text_puts(out, "\n");
        print_gradient(plan, &plan->nodes[i], out);
    }
}

static void print_bucket(const tdm_plan *plan, int index, tdm_text *out) {
    const tdm_plan_bucket *bucket = &plan->buckets[index];
    tdm__text_printf(out, " | %d:", index);
    for (int k = 0; k < bucket->param_count; k++)
        tdm__text_printf(out, " %s", plan->params[bucket->first_param + k].name);
    tdm__text_printf(out, " (%zu+%zu) after %d", bucket->offset, bucket->count, bucket->ready_after);
}

void plan_print_steps(const tdm_plan *plan, tdm_text *out) {
    static const char kinds[] = "SFLABR";
    for (int i = 0; i < plan->step_count; i++) {
        const tdm_plan_step *step = &plan->steps[i];
        tdm__text_printf(out, "%s%c", i > 0 ? " " : "", kinds[step->kind]);
        if (step->kind == TDM_STEP_READY)
            tdm__text_printf(out, " %d", step->index);
        else if (step->kind != TDM_STEP_LOSS)
            tdm__text_printf(out, " %s", plan->nodes[step->index].name);
    }
    for (int i = 0; i < plan->bucket_count; i++) print_bucket(plan, i, out);
}

void plan_print_lives(const tdm_plan *plan, tdm_text *out) {
    for (int i = 0; i < plan->value_count; i++) {
        const tdm_plan_value *value = &plan->values[i];
        if (value->alias_of >= 0) continue;
        tdm__text_printf(out, "%s%s %d-%d", out->length > 0 ? ", " : "", value->name, value->first, value->last);
    }
}

/* ---- tables ---- */

static void check_case(const plan_case *c, const char *after, void (*print)(const tdm_plan *, tdm_text *)) {
    tdm_graph *graph = plan_graph(c->graph);
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels(c->offers != NULL ? c->offers : ""));
    options.training = !c->predicts;
    options.ingests = c->ingests;
    options.accumulates = c->accumulates;
    if (c->bf16) options.precision = TDM_BF16, options.widens = true;
    options.replicas = c->replicas;
    options.freeze = &c->freeze;
    options.after = c->after != NULL ? c->after : after;
    if (c->bucket_mb > 0) options.first_bucket_mb = options.bucket_cap_mb = c->bucket_mb;
    if (c->first_mb > 0) options.first_bucket_mb = c->first_mb;
    options.allows_unused = c->unused;
    tdm_plan *plan = NULL;
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    if (plan != NULL) {
        print(plan, &text);
        CHECK_TEXT(text.data, c->want);
    }
    tdm__text_deinit(&text);
    tdm__plan_free(plan);
    tdm_graph_free(graph);
}

void plan_check_cases(const plan_case *cases, size_t count, const char *after,
                      void (*print)(const tdm_plan *, tdm_text *)) {
    for (size_t i = 0; i < count; i++) {
        const int before = tdm_test_failures;
        check_case(&cases[i], after, print);
        if (tdm_test_failures != before) fprintf(stderr, "  in the case: %s\n", cases[i].title);
    }
}
