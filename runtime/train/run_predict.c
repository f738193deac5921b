/* What a program wants predictions for: its samples, and pictures, as this run's model takes them. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_input.h"
#include "runtime/data/transform.h"
#include "runtime/graph/graph.h"
#include "runtime/train/run.h"

static const tdm_shape *input_of(const tdm_run *run) {
    return &run->graph->sample;
}

/* ---- samples ---- */

/* Opened with the first sample that it could change. */
static tdm_status get_transform(tdm_run *run) {
    if (run->given != NULL) return TDM_OK;
    tdm_data_inputs inputs;
    tdm__data_inputs_of(run->graph, &inputs);
    TDM_TRY(tdm__new(run->host, &run->given, 1, sizeof(*run->given), "transform"));
    TDM_TRY_ELSE(tdm__transform_init_given(run->given, run->host, &run->job->data.transform, input_of(run), &inputs),
                 tdm__run_close_given(run));
    return TDM_OK;
}

/* Samples in one array or in one for each input. */
typedef struct given {
    tdm_input input;
    const void *x;
    const tdm_input_array *arrays;
    int count;
} given;

/* The transform, and memory for what it makes of a batch. */
static tdm_status get_ready(tdm_run *run, const given *from) {
    if (from->arrays == NULL && from->input == TDM_INPUT_READY) return TDM_OK;
    TDM_TRY(get_transform(run));
    if (run->ready != NULL) return TDM_OK;
    if (from->arrays == NULL && !tdm__transform_changes(run->given, from->input)) return TDM_OK;
    return tdm__new(run->host, &run->ready, (size_t)run->eval_rows, tdm__transform_width(run->given) * sizeof(float),
                    "samples");
}

/* Samples from `first` on, as the model takes them. */
static const float *take(const tdm_run *run, const given *from, int64_t first, int64_t rows) {
    const size_t bytes = (size_t)tdm_run_input_width(run) * tdm__input_bytes(from->input);
    const void *x = from->arrays == NULL ? (const char *)from->x + (size_t)first * bytes : NULL;
    if (x != NULL && from->input == TDM_INPUT_READY) return x;
    if (x != NULL) return tdm__transform_given(run->given, from->input, x, rows, run->ready);
    tdm_data_inputs inputs;
    tdm__data_inputs_of(run->graph, &inputs);
    tdm__transform_arrays(run->given, &inputs, from->arrays, first, rows, run->ready);
    return run->ready;
}

static tdm_status predict_some(tdm_run *run, const float *x, int64_t rows, const int64_t *position, float *y) {
    const tdm_shard shard = {.rows = rows, .x = x, .position = position};
    const float *output = NULL;
    TDM_TRY(run->mode->ops->evaluate(run->mode, &shard, 1, &output));
    memcpy(y, output, (size_t)(rows * run->plan->output_width) * sizeof(float));
    return TDM_OK;
}

static tdm_status predict_all(tdm_run *run, const given *from, int64_t rows, float *y) {
    const int64_t most = run->eval_rows;
    int64_t *position = NULL;
    TDM_TRY(get_ready(run, from));
    TDM_TRY(tdm__new(run->host, &position, (size_t)most, sizeof(*position), "predictions"));
    for (int64_t i = 0; i < most; i++) position[i] = i;
    tdm_status status = TDM_OK;
    for (int64_t first = 0; first < rows && status == TDM_OK; first += most) {
        const int64_t count = rows - first < most ? rows - first : most;
        status = predict_some(run, take(run, from, first, count), count, position, y + first * run->plan->output_width);
    }
    tdm__delete(run->host, position);
    return status;
}

static tdm_status check_given(const tdm_run *run, const char *function, const given *from) {
    tdm_data_inputs inputs;
    if (from->arrays == NULL && !tdm__is_input(from->input))
        TDM_FAIL(TDM_E_USAGE, "%s: input must be one of tdm_input, got %d", function, from->input);
    if (from->arrays == NULL) return TDM_OK;
    tdm__data_inputs_of(run->graph, &inputs);
    return tdm__data_arrays_check(function, from->arrays, from->count, &inputs);
}

static tdm_status predict(tdm_run *run, const char *function, const given *from, int64_t rows, float *y) {
    if (run == NULL || (from->x == NULL && from->arrays == NULL) || y == NULL || rows < 0)
        TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL or rows is negative", function);
    TDM_ENTER(&run->guard, function, TDM_GUARD_ASKS);
    TDM_TRY(check_given(run, function, from));
    TDM_TRY(tdm__run_computes(run, function));
    return predict_all(run, from, rows, y);
}

tdm_status tdm_run_predict_as(tdm_run *run, tdm_input input, const void *x, int64_t rows, float *y) {
    return predict(run, "tdm_run_predict_as", &(given){.input = input, .x = x}, rows, y);
}

tdm_status tdm_run_predict(tdm_run *run, const float *x, int64_t rows, float *y) {
    return predict(run, "tdm_run_predict", &(given){.input = TDM_INPUT_FLOATS, .x = x}, rows, y);
}

tdm_status tdm_run_predict_inputs(tdm_run *run, const tdm_input_array *inputs, int count, int64_t rows, float *y) {
    return predict(run, "tdm_run_predict_inputs", &(given){.arrays = inputs, .count = count}, rows, y);
}

int tdm_run_input_count(const tdm_run *run) {
    return run != NULL ? tdm_graph_input_count(run->graph) : 0;
}

tdm_status tdm_run_get_input(const tdm_run *run, int index, tdm_input_info *out) {
    return tdm__graph_get_input("tdm_run_get_input", run != NULL ? run->graph : NULL, index, out);
}

/* ---- pictures ---- */

/* Opened with the first picture. */
static tdm_status get_picture(tdm_run *run) {
    tdm_data_inputs inputs;
    if (run->picture != NULL) return TDM_OK;
    tdm__data_inputs_of(run->graph, &inputs);
    return tdm__picture_input_open(&run->picture, run->host, &run->job->data.transform, input_of(run), &inputs,
                                   run->options.module_path);
}

tdm_status tdm_run_decode_picture(tdm_run *run, const void *bytes, size_t count, float *x) {
    if (run == NULL || bytes == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_decode_picture: a pointer is NULL");
    TDM_ENTER(&run->guard, "tdm_run_decode_picture", TDM_GUARD_ASKS);
    TDM_TRY(get_picture(run));
    return tdm__picture_input_decode(run->picture, bytes, count, x);
}

tdm_status tdm_run_read_picture(tdm_run *run, const char *path, float *x) {
    if (run == NULL || path == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_read_picture: a pointer is NULL");
    TDM_ENTER(&run->guard, "tdm_run_read_picture", TDM_GUARD_ASKS);
    TDM_TRY(get_picture(run));
    return tdm__picture_input_read(run->picture, path, x);
}

void tdm__run_close_given(tdm_run *run) {
    tdm__picture_input_close(run->picture);
    if (run->given != NULL) tdm__transform_deinit(run->given);
    tdm__delete(run->host, run->given);
    tdm__delete(run->host, run->ready);
    run->picture = NULL;
    run->given = NULL;
    run->ready = NULL;
}
