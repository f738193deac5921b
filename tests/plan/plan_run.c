/* See plan_run.h. */
#include "tests/plan/plan_run.h"

#include "runtime/device/device.h"

/* ---- open and close ---- */

static float *param_at(const plan_run *run, const tdm_plan_param *param, bool gradient) {
    const tdm_replica *stage = run->replica->stages[run->plan->nodes[param->node].stage];
    return (gradient ? stage->arena.grad : stage->arena.param) + tdm__replica_floats_at(stage, param->offset);
}

static char *buffer_at(const plan_run *run, const tdm_plan_buffer *buffer) {
    int stage = 0;
    while (buffer->offset >= run->plan->stages[stage].buffer_at + run->plan->stages[stage].buffer_bytes) stage++;
    return run->replica->stages[stage]->arena.buffer + (buffer->offset - run->plan->stages[stage].buffer_at);
}

static void give_tensors(const plan_run *run, const interpreter *like) {
    const tdm_plan *plan = run->plan;
    for (int p = 0; p < plan->param_count; p++) {
        const tdm_plan_param *param = &plan->params[p];
        memcpy(param_at(run, param, false), like->param[param->graph_param], (size_t)param->count * sizeof(float));
    }
    for (int b = 0; b < plan->buffer_count; b++)
        memcpy(buffer_at(run, &plan->buffers[b]), like->buffer[b], tdm__plan_buffer_bytes(&plan->buffers[b]));
}

static tdm_status open_all(plan_run *run, const tdm_graph *graph, const tdm_plan_options *options, uint64_t seed) {
    const tdm_host *host = tdm_host_default();
    tdm_status status = tdm__plan_build(&run->plan, host, graph, options);
    if (status == TDM_OK) status = tdm_cpu_device.open(&run->device, host, &(tdm_device_options){.index = 0});
    tdm_replica_options replica = {.seed = seed, .rows = options->rows, .parts = 1, .target_bytes = sizeof(float)};
    for (; status == TDM_OK && replica.stage < run->plan->stage_count; replica.stage++) {
        tdm_replica *stage = NULL;
        status = tdm__replica_open(&stage, host, run->plan, run->device, &replica);
        if (replica.stage == 0) run->replica = replica.first = stage;
    }
    return status;
}

bool plan_run_open(plan_run *run, const interpreter *like, const tdm_plan_options *options, uint64_t seed,
                   int filling) {
    *run = (plan_run){.filling = filling};
    const tdm_status status = open_all(run, like->graph, options, seed);
    CHECK_OK(status);
    if (status != TDM_OK) {
        plan_run_close(run);
        return false;
    }
    CHECK(!run->plan->has_forms);
    give_tensors(run, like);
    run->output = calloc((size_t)(options->rows * run->plan->output_width), sizeof(float));
    return run->output != NULL;
}

void plan_run_close(plan_run *run) {
    for (int k = run->replica != NULL ? run->plan->stage_count - 1 : -1; k >= 0; k--)
        tdm__replica_close(run->replica->stages[k]);
    if (run->device != NULL) tdm_cpu_device.close(run->device);
    tdm__plan_free(run->plan);
    free(run->output);
}

/* ---- a pass ---- */

static void fill(const plan_run *run, const tdm_values *values, bool gradients) {
    for (int k = 0; k < run->plan->stage_count; k++) {
        tdm_replica *stage = run->replica->stages[k];
        const tdm_plan_stage *own = &run->plan->stages[k];
        CHECK_OK(tdm__replica_begin(stage, values));
        memset(stage->pass.activation, run->filling, tdm__stage_activation_bytes(own));
        if (gradients) memset(stage->arena.grad, run->filling, own->trained_floats * sizeof(float));
    }
}

/* One stage after another. */
static void train(plan_run *run, const plan_pass *pass, const tdm_rows *rows, int64_t micro_batch) {
    const int count = run->plan->stage_count;
    tdm_replica *const *stage = run->replica->stages;
    const size_t bytes = (size_t)(pass->rows * run->plan->output_width) * sizeof(float);
    int step = 0;
    for (int k = 0; k < count; k++) {
        step = run->plan->stages[k].forward;
        CHECK_OK(tdm__exec_forward(stage[k], rows, micro_batch, &step));
        CHECK_OK(tdm__exec_send(stage[k], rows, micro_batch));
    }
    memcpy(run->output, tdm__exec_output(stage[count - 1]), bytes);
    memcpy(tdm__exec_output_gradient(stage[count - 1]), pass->d_output, bytes);
    for (int k = count - 1; k >= 0; k--) {
        step = run->plan->stages[k].backward;
        CHECK_OK(tdm__exec_backward(stage[k], rows, micro_batch, NULL, &step));
    }
    CHECK_INT(step, run->plan->step_count);
}

void plan_run_pass(plan_run *run, const plan_pass *pass, bool first) {
    const size_t bytes = (size_t)(pass->rows * run->plan->output_width) * sizeof(float);
    const tdm_rows rows = {.rows = pass->rows, .x = pass->x, .position = pass->position};
    const tdm_values values = {.count = 1, .of[0] = *pass->values};
    fill(run, &values, first && pass->training);
    if (pass->training) {
        train(run, pass, &rows, first ? 0 : 1);
    } else {
        CHECK_OK(tdm__exec_evaluate(run->replica, &rows));
        memcpy(run->output, tdm__exec_output(run->replica), bytes);
    }
    tdm__replica_abandon(run->replica);
}

/* ---- batches ---- */

static float *draw_floats(int64_t count, uint64_t *state) {
    float *out = calloc((size_t)count, sizeof(*out));
    if (out == NULL) abort();
    for (int64_t i = 0; i < count; i++) out[i] = (float)(draw_unit(state) * 2 - 1);
    return out;
}

void batch_open(batch *b, const tdm_graph *graph, int64_t rows, bool training, uint64_t seed) {
    uint64_t state = seed;
    *b = (batch){.values = {.step = seed, .loss_seed = 1}};
    b->x = draw_floats(rows * tdm__shape_count(&graph->sample), &state);
    b->d_output = draw_floats(rows * tdm_graph_output_width(graph), &state);
    b->position = calloc((size_t)rows, sizeof(*b->position));
    if (b->position == NULL) abort();
    for (int64_t i = 0; i < rows; i++) b->position[i] = i;
    b->pass = (plan_pass){.rows = rows,
                          .x = b->x,
                          .d_output = b->d_output,
                          .position = b->position,
                          .values = &b->values,
                          .seed = 7,
                          .training = training};
}

void batch_close(batch *b) {
    free(b->x);
    free(b->d_output);
    free(b->position);
}

/* ---- comparing ---- */

static bool same_bits(const char *what, const float *got, const float *want, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &want[i], sizeof(float)) == 0) continue;
        fprintf(stderr, "  %s[%lld] is %.9g, wanted %.9g\n", what, (long long)i, (double)got[i], (double)want[i]);
        return false;
    }
    return true;
}

static double largest_of(const float *numbers, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)numbers[i]));
    return largest;
}

/* Tolerance 0: to the bit; else a part of the largest number, or of `least` where that is more. */
static bool same_floats(const char *what, const float *got, const float *want, int64_t count, double tolerance,
                        double least) {
    const double scale = fmax(largest_of(want, count), least);
    double worst = 0;
    if (tolerance <= 0) return same_bits(what, got, want, count);
    for (int64_t i = 0; i < count; i++) {
        const double apart = fabs((double)got[i] - (double)want[i]);
        if (!(apart <= worst)) worst = apart; /* NaN, too */
    }
    if (worst <= tolerance * scale) return true;
    fprintf(stderr, "  %s is %.3g apart, of %.3g\n", what, worst, scale);
    return false;
}

static const float *gradient_of(const plan_run *run, size_t graph_param) {
    return param_at(run, &run->plan->params[run->plan->param_of_graph[graph_param]], true);
}

static const float *buffer_of(const plan_run *run, size_t buffer) {
    return (const float *)(const void *)buffer_at(run, &run->plan->buffers[buffer]);
}

static bool same_counters(const char *what, const void *got, const void *want) {
    if (memcmp(got, want, sizeof(int64_t)) == 0) return true;
    fprintf(stderr, "  %s differs\n", what);
    return false;
}

/* Of a bias in front of a batch norm it is 0, but for rounding: a hundredth of the largest of all counts as well. */
static bool near_gradients(const plan_run *run, const interpreter *want, double tolerance) {
    const tdm_graph *graph = want->graph;
    double largest = 0;
    bool same = true;
    for (size_t i = 0; i < graph->param_count; i++)
        if (!want->frozen[i]) largest = fmax(largest, largest_of(want->dparam[i], graph->params[i].count));
    for (size_t i = graph->param_count; same && i > 0; i--)
        same =
            want->frozen[i - 1] || same_floats(graph->params[i - 1].name, gradient_of(run, i - 1), want->dparam[i - 1],
                                               graph->params[i - 1].count, tolerance, 0.01 * largest);
    return same;
}

static bool near_buffers(const plan_run *run, const interpreter *want, double tolerance) {
    bool same = true;
    for (size_t i = 0; same && i < want->graph->buffer_count; i++) {
        const tdm_graph_param *buffer = &want->graph->buffers[i];
        same = buffer->def.is_counter
                   ? same_counters(buffer->name, buffer_of(run, i), want->buffer[i])
                   : same_floats(buffer->name, buffer_of(run, i), want->buffer[i], buffer->count, tolerance, 0);
    }
    return same;
}

bool plan_run_near_reference(const plan_run *run, const interpreter *want, const plan_pass *pass, double tolerance,
                             bool gradients) {
    const int64_t count = pass->rows * run->plan->output_width;
    if (!same_floats("the output", run->output, want->value[want->graph->output], count, tolerance, 0)) return false;
    if (!pass->training) return true;
    return (!gradients || near_gradients(run, want, tolerance)) && near_buffers(run, want, tolerance);
}

bool plan_run_equals_reference(const plan_run *run, const interpreter *want, const plan_pass *pass) {
    return plan_run_near_reference(run, want, pass, 0, true);
}

bool plan_run_equals(const plan_run *a, const plan_run *b, const plan_pass *pass) {
    const tdm_graph *graph = a->plan->graph;
    bool same = same_bits("the output", a->output, b->output, pass->rows * a->plan->output_width);
    for (size_t i = graph->param_count; same && pass->training && i > 0; i--)
        same = a->plan->frozen[i - 1] || same_bits(graph->params[i - 1].name, gradient_of(a, i - 1),
                                                   gradient_of(b, i - 1), graph->params[i - 1].count);
    if (memcmp(a->replica->arena.buffer, b->replica->arena.buffer, a->plan->buffer_bytes) == 0) return same;
    fprintf(stderr, "  buffers differ\n");
    return false;
}
