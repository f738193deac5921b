/* What a program wants predictions for: its samples, and pictures, as this run's model takes them. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_input.h"
#include "runtime/data/transform.h"
#include "runtime/graph/graph.h"
#include "runtime/train/run.h"

static const tdm_shape *input_of(const tdm_run *run) {
    return &run->graph->values[run->graph->input].shape;
}

/* ---- samples ---- */

/* Opened with the first sample that it could change. */
static tdm_status get_transform(tdm_run *run) {
    if (run->given != NULL) return TDM_OK;
    TDM_TRY(tdm__new(run->host, &run->given, 1, sizeof(*run->given), "transform"));
    TDM_TRY_ELSE(tdm__transform_init_given(run->given, run->host, &run->job->data.transform, input_of(run)),
                 tdm__run_close_given(run));
    return TDM_OK;
}

/* The transform, and memory for what it makes of a batch. */
static tdm_status get_ready(tdm_run *run, int input) {
    if (input == TDM_INPUT_READY) return TDM_OK;
    TDM_TRY(get_transform(run));
    if (run->ready != NULL || !tdm__transform_changes(run->given, input)) return TDM_OK;
    return tdm__new(run->host, &run->ready, (size_t)run->eval_rows, tdm__transform_width(run->given) * sizeof(float),
                    "samples");
}

static tdm_status predict_some(tdm_run *run, const float *x, int64_t rows, const int64_t *position, float *y) {
    const tdm_shard shard = {.rows = rows, .x = x, .position = position};
    const float *output = NULL;
    TDM_TRY(run->mode->ops->evaluate(run->mode, &shard, 1, &output));
    memcpy(y, output, (size_t)(rows * run->plan->output_width) * sizeof(float));
    return TDM_OK;
}

static tdm_status predict_all(tdm_run *run, int input, const void *x, int64_t rows, float *y) {
    const int64_t most = run->eval_rows;
    const size_t bytes = (size_t)tdm_run_input_width(run) * tdm__input_bytes(input);
    int64_t *position = NULL;
    TDM_TRY(get_ready(run, input));
    TDM_TRY(tdm__new(run->host, &position, (size_t)most, sizeof(*position), "predictions"));
    for (int64_t i = 0; i < most; i++) position[i] = i;
    tdm_status status = TDM_OK;
    for (int64_t first = 0; first < rows && status == TDM_OK; first += most) {
        const int64_t count = rows - first < most ? rows - first : most;
        const void *given = (const char *)x + (size_t)first * bytes;
        const float *ready =
            input == TDM_INPUT_READY ? given : tdm__transform_given(run->given, input, given, count, run->ready);
        status = predict_some(run, ready, count, position, y + first * run->plan->output_width);
    }
    tdm__delete(run->host, position);
    return status;
}

static tdm_status predict(tdm_run *run, const char *function, int input, const void *x, int64_t rows, float *y) {
    if (run == NULL || x == NULL || y == NULL || rows < 0)
        TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL or rows is negative", function);
    TDM_ENTER(&run->guard, function, TDM_GUARD_ASKS);
    if (!tdm__is_input(input)) TDM_FAIL(TDM_E_USAGE, "%s: input must be one of tdm_input, got %d", function, input);
    TDM_TRY(tdm__run_idle(run, function));
    return predict_all(run, input, x, rows, y);
}

tdm_status tdm_run_predict_as(tdm_run *run, int input, const void *x, int64_t rows, float *y) {
    return predict(run, "tdm_run_predict_as", input, x, rows, y);
}

tdm_status tdm_run_predict(tdm_run *run, const float *x, int64_t rows, float *y) {
    return predict(run, "tdm_run_predict", TDM_INPUT_FLOATS, x, rows, y);
}

/* ---- pictures ---- */

/* Opened with the first picture. */
static tdm_status get_picture(tdm_run *run) {
    if (run->picture != NULL) return TDM_OK;
    return tdm__picture_input_open(&run->picture, run->host, &run->job->data.transform, input_of(run),
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
