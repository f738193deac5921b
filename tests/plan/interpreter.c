/* See interpreter.h. */
#include "tests/plan/interpreter.h"

#include "runtime/base/text/pattern.h"
#include "tests/plan/random_graph.h"

static void *take(size_t count, size_t bytes) {
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL) abort();
    return memory;
}

static float *take_floats(int64_t count) {
    return take((size_t)count, sizeof(float));
}

static int64_t value_count(const interpreter *run, tdm_value value) {
    return tdm__shape_count(&run->graph->values[value].shape);
}

/* ---- open and close ---- */

static bool is_trained(const interpreter *run, const tdm_graph_node *node) {
    for (int k = 0; k < node->param_count; k++)
        if (!run->frozen[node->first_param + k]) return true;
    return false;
}

static void find_needs(interpreter *run) {
    for (size_t i = 0; i < run->graph->node_count; i++) {
        const tdm_graph_node *node = &run->graph->nodes[i];
        bool *needs = &run->needs_gradient[node->output];
        *needs = is_trained(run, node);
        for (int k = 0; k < node->input_count; k++) *needs = *needs || run->needs_gradient[node->input[k]];
    }
}

static void open_params(interpreter *run, uint64_t seed) {
    const tdm_graph *graph = run->graph;
    for (size_t i = 0; i < graph->param_count; i++) {
        const tdm_graph_param *param = &graph->params[i];
        run->param[i] = take_floats(param->count);
        run->dparam[i] = take_floats(param->count);
        const double scale = param->def.fan_in > 0 ? 1.5 / sqrt((double)param->def.fan_in) : 1.0;
        for (int64_t k = 0; k < param->count; k++) run->param[i][k] = (float)((draw_unit(&seed) * 2 - 1) * scale);
    }
    for (size_t i = 0; i < graph->buffer_count; i++) {
        const tdm_graph_param *buffer = &graph->buffers[i];
        run->buffer[i] = take((size_t)buffer->count, sizeof(int64_t));
        for (int64_t k = 0; k < buffer->count && buffer->def.init == TDM_INIT_ONES; k++) run->buffer[i][k] = 1.0f;
    }
}

void interpreter_open(interpreter *run, const tdm_graph *graph, const tdm_kernel *const *kernels,
                      const tdm_texts *freeze, int64_t rows, uint64_t seed) {
    *run = (interpreter){.graph = graph, .kernels = kernels, .rows = rows};
    run->param = take(graph->param_count, sizeof(*run->param));
    run->dparam = take(graph->param_count, sizeof(*run->dparam));
    run->buffer = take(graph->buffer_count, sizeof(*run->buffer));
    run->value = take(graph->value_count, sizeof(*run->value));
    run->gradient = take(graph->value_count, sizeof(*run->gradient));
    run->needs_gradient = take(graph->value_count, sizeof(bool));
    run->has_gradient = take(graph->value_count, sizeof(bool));
    run->saved = take(graph->node_count, sizeof(void *));
    run->frozen = take(graph->param_count, sizeof(bool));
    for (size_t i = 0; freeze != NULL && i < graph->param_count; i++)
        run->frozen[i] = tdm__patterns_find(freeze, graph->params[i].name) >= 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        run->value[i] = take_floats(rows * value_count(run, (tdm_value)i));
        run->gradient[i] = take_floats(rows * value_count(run, (tdm_value)i));
    }
    open_params(run, seed);
    find_needs(run);
}

static void free_all(void *array, size_t count) {
    void **each = array;
    for (size_t i = 0; i < count; i++) free(each[i]);
    free(array);
}

void interpreter_close(interpreter *run) {
    free_all(run->param, run->graph->param_count);
    free_all(run->dparam, run->graph->param_count);
    free_all(run->buffer, run->graph->buffer_count);
    free_all(run->value, run->graph->value_count);
    free_all(run->gradient, run->graph->value_count);
    free_all(run->saved, run->graph->node_count);
    free(run->needs_gradient);
    free(run->has_gradient);
    free(run->frozen);
}

/* ---- a layer ---- */

/* A batch norm of which all is frozen runs by evaluation rules in training, too. */
static bool trains(const interpreter *run, const tdm_graph_node *node, const plan_pass *pass) {
    const bool evaluates = node->buffer_count > 0 && node->param_count > 0 && !is_trained(run, node);
    return pass->training && !evaluates;
}

static const tdm_kernel *kernel_of(const interpreter *run, const char *op) {
    const tdm_kernel *const *kernel = run->kernels;
    while (strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

static tdm_shape with_rows(const tdm_shape *sample, int64_t rows) {
    tdm_shape shape = {.ndim = sample->ndim + 1, .dim = {rows}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->ndim * sizeof(*sample->dim));
    return shape;
}

static tdm_kernel_desc describe(const interpreter *run, const tdm_graph_node *node, const plan_pass *pass) {
    const tdm_graph *graph = run->graph;
    tdm_kernel_desc desc = {.op = node->op->name,
                            .attrs = node->attrs,
                            .input_count = node->input_count,
                            .param_count = node->param_count,
                            .buffer_count = node->buffer_count,
                            .y = with_rows(&graph->values[node->output].shape, run->rows),
                            .threads = 1};
    for (int k = 0; k < node->input_count; k++) {
        desc.x[k] = with_rows(&graph->values[node->input[k]].shape, run->rows);
        desc.needs_dx[k] = pass->training && run->needs_gradient[node->input[k]];
    }
    for (int k = 0; k < node->param_count; k++) desc.param[k] = graph->params[node->first_param + k].def.shape;
    return desc;
}

typedef struct {
    const tdm_kernel *kernel;
    tdm_kernel_desc desc;
    tdm_kernel_fit fit;
    tdm_kernel_args args;
} layer;

static void open_layer(interpreter *run, int index, const plan_pass *pass, layer *out) {
    const tdm_graph_node *node = &run->graph->nodes[index];
    *out = (layer){.kernel = kernel_of(run, node->op->name), .desc = describe(run, node, pass)};
    CHECK(out->kernel->fits == NULL || out->kernel->fits(&out->desc, &out->fit));
    if (run->saved[index] == NULL) run->saved[index] = take(out->fit.saved_bytes, 1);
    out->args = (tdm_kernel_args){.desc = &out->desc,
                                  .rows = pass->rows,
                                  .y = run->value[node->output],
                                  .saved = run->saved[index],
                                  .scratch = take(out->fit.scratch_bytes, 1),
                                  .training = trains(run, node, pass),
                                  .seed = pass->seed,
                                  .stream = (uint32_t)index,
                                  .values = pass->values,
                                  .position = pass->position};
    for (int k = 0; k < node->input_count; k++) out->args.x[k] = run->value[node->input[k]];
    for (int k = 0; k < node->param_count; k++) out->args.param[k] = run->param[node->first_param + k];
    for (int k = 0; k < node->buffer_count; k++) {
        float *buffer = run->buffer[node->first_buffer + k];
        if (run->graph->buffers[node->first_buffer + k].def.is_counter)
            out->args.counter = (int64_t *)(void *)buffer;
        else
            out->args.buffer[k] = buffer;
    }
}

static void forward(interpreter *run, int index, const plan_pass *pass) {
    layer l;
    open_layer(run, index, pass, &l);
    CHECK_OK(l.kernel->forward(&l.args));
    free(l.args.scratch);
}

/* ---- backward ---- */

static void add(float *to, const float *what, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += what[i];
}

/* What a layer sends back is written, or added if another has written. */
static void send_back(interpreter *run, tdm_value value, const float *dx, int64_t rows) {
    const int64_t count = rows * value_count(run, value);
    if (run->has_gradient[value])
        add(run->gradient[value], dx, count);
    else
        memcpy(run->gradient[value], dx, (size_t)count * sizeof(float));
    run->has_gradient[value] = true;
}

static void backward(interpreter *run, int index, const plan_pass *pass) {
    const tdm_graph_node *node = &run->graph->nodes[index];
    layer l;
    float *dx[TDM_MAX_INPUTS], *dparam[TDM_MAX_PARAMS];
    if (!run->needs_gradient[node->output]) return;
    open_layer(run, index, pass, &l);
    l.args.dy = run->gradient[node->output];
    for (int k = 0; k < node->input_count; k++) {
        dx[k] = take_floats(run->rows * value_count(run, node->input[k]));
        l.args.dx[k] = l.desc.needs_dx[k] ? dx[k] : NULL;
    }
    for (int k = 0; k < node->param_count; k++)
        l.args.dparam[k] = dparam[k] = take_floats(run->graph->params[node->first_param + k].count);
    CHECK_OK(l.kernel->backward(&l.args));
    for (int k = 0; k < node->input_count; k++) {
        if (l.desc.needs_dx[k]) send_back(run, node->input[k], dx[k], pass->rows);
        free(dx[k]);
    }
    for (int k = 0; k < node->param_count; k++) {
        const int param = node->first_param + k;
        if (run->passes == 0)
            memcpy(run->dparam[param], dparam[k], (size_t)run->graph->params[param].count * sizeof(float));
        else
            add(run->dparam[param], dparam[k], run->graph->params[param].count);
        free(dparam[k]);
    }
    free(l.args.scratch);
}

void interpreter_run(interpreter *run, const plan_pass *pass) {
    const tdm_graph *graph = run->graph;
    const int64_t width = tdm__shape_count(&graph->sample);
    for (int k = 0; k < graph->input_count; k++)
        for (int64_t row = 0; row < pass->rows; row++)
            memcpy(run->value[k] + row * graph->inputs[k].count, pass->x + row * width + graph->inputs[k].first,
                   (size_t)graph->inputs[k].count * sizeof(float));
    for (int i = 0; i < (int)graph->node_count; i++) forward(run, i, pass);
    if (!pass->training) return;
    memset(run->has_gradient, 0, graph->value_count * sizeof(bool));
    send_back(run, graph->output, pass->d_output, pass->rows);
    for (int i = (int)graph->node_count - 1; i >= 0; i--) backward(run, i, pass);
    run->passes++;
}
