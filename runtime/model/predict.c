/* Predicting: samples become what the model takes, and go through it in pieces. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"

/* One piece: `x` are its samples, of kind `input`. */
typedef struct piece_call {
    tdm_threads *threads; /* beside the calling one */
    tdm_input input;
    const char *x;
    const tdm_input_array *arrays; /* instead of x: all samples, of which this piece has those from `first` on */
    int64_t first;
    float *y;
    int64_t rows;
} piece_call;

static tdm_status run(const tdm_model *model, const piece_call *call, tdm_workspace *w) {
    const float *x = w->ready;
    if (call->arrays != NULL)
        tdm__transform_arrays(&model->transform, &model->inputs, call->arrays, call->first, call->rows, w->ready);
    else
        x = tdm__transform_given(&model->transform, call->input, call->x, call->rows, w->ready);
    tdm_shard shard = {.rows = call->rows, .x = x, .position = w->position};
    const float *output;
    tdm_rows rows;
    TDM_TRY(tdm__replica_take_samples(w->replica, &shard, &rows));
    TDM_TRY(tdm__exec_evaluate(w->replica, &rows));
    TDM_TRY(tdm__replica_fetch_output(w->replica, rows.rows, &output));
    memcpy(call->y, output, (size_t)(rows.rows * w->replica->plan->output_width) * sizeof(*output));
    return TDM_OK;
}

/* A workspace in which a call has failed is not used again. */
static tdm_status predict_piece(tdm_model *model, int piece, const piece_call *call) {
    tdm_workspace *w;
    TDM_TRY(tdm__workspace_take(model, piece, &w));
    w->replica->device->threads = call->threads;
    TDM_TRY_ELSE(run(model, call, w), tdm__workspace_drop(model, piece, w));
    tdm__workspace_give(model, piece, w);
    return TDM_OK;
}

/* The largest piece that so many rows fill. */
static int piece_of(int64_t rows) {
    int piece = TDM_MODEL_PIECES - 1;
    while (rows < INT64_C(1) << piece) piece--;
    return piece;
}

static tdm_status predict_rows(tdm_model *model, piece_call call, int64_t rows) {
    const int64_t outputs = tdm_graph_output_width(model->graph);
    const size_t width = tdm__transform_width(&model->transform), number = tdm__input_bytes(call.input);
    while (rows > 0) {
        const int piece = piece_of(rows);
        call.rows = INT64_C(1) << piece;
        TDM_TRY(predict_piece(model, piece, &call));
        call.x += (size_t)call.rows * width * number;
        call.y += call.rows * outputs;
        rows -= call.rows;
    }
    return TDM_OK;
}

tdm_status tdm_model_predict(tdm_model *model, tdm_input input, const void *x, int64_t rows, float *y) {
    if (model == NULL || x == NULL || y == NULL || rows < 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_predict: a pointer is NULL or rows is negative");
    if (!tdm__is_input(input))
        TDM_FAIL(TDM_E_USAGE, "tdm_model_predict: input must be one of tdm_input, got %d", input);
    tdm_model_threads *threads;
    TDM_TRY(tdm__model_threads_take(model, &threads));
    const piece_call call = {.threads = threads != NULL ? threads->threads : NULL, .input = input, .x = x, .y = y};
    const tdm_status status = predict_rows(model, call, rows);
    tdm__model_threads_give(model, threads);
    return status;
}

tdm_status tdm_model_predict_inputs(tdm_model *model, const tdm_input_array *inputs, int count, int64_t rows,
                                    float *y) {
    if (model == NULL || inputs == NULL || y == NULL || rows < 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_predict_inputs: a pointer is NULL or rows is negative");
    TDM_TRY(tdm__data_arrays_check("tdm_model_predict_inputs", inputs, count, &model->inputs));
    const int64_t outputs = tdm_graph_output_width(model->graph);
    for (int64_t first = 0; first < rows;) {
        const int piece = piece_of(rows - first);
        const piece_call call = {
            .arrays = inputs, .first = first, .y = y + first * outputs, .rows = INT64_C(1) << piece};
        TDM_TRY(predict_piece(model, piece, &call));
        first += call.rows;
    }
    return TDM_OK;
}

/* ---- pictures ---- */

static tdm_status take_desk(tdm_model *model, tdm_picture_desk **out) {
    pthread_mutex_lock(&model->lock);
    tdm_picture_desk *desk = *out = model->desks;
    if (desk != NULL) model->desks = desk->next;
    pthread_mutex_unlock(&model->lock);
    if (desk != NULL) return TDM_OK;
    TDM_TRY(tdm__new(model->host, &desk, 1, sizeof(*desk), "picture"));
    TDM_TRY_ELSE(tdm__picture_input_open(&desk->input, model->host, &model->job.data.transform, &model->graph->sample,
                                         &model->inputs, model->options.module_path),
                 tdm__delete(model->host, desk));
    *out = desk;
    return TDM_OK;
}

static void give_desk(tdm_model *model, tdm_picture_desk *desk) {
    pthread_mutex_lock(&model->lock);
    desk->next = model->desks;
    model->desks = desk;
    pthread_mutex_unlock(&model->lock);
}

tdm_status tdm_model_read_picture(tdm_model *model, const char *path, float *x) {
    tdm_picture_desk *desk;
    if (model == NULL || path == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_read_picture: a pointer is NULL");
    TDM_TRY(take_desk(model, &desk));
    const tdm_status status = tdm__picture_input_read(desk->input, path, x);
    give_desk(model, desk);
    return status;
}

tdm_status tdm_model_decode_picture(tdm_model *model, const void *bytes, size_t count, float *x) {
    tdm_picture_desk *desk;
    if (model == NULL || bytes == NULL || x == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_decode_picture: a pointer is NULL");
    TDM_TRY(take_desk(model, &desk));
    const tdm_status status = tdm__picture_input_decode(desk->input, bytes, count, x);
    give_desk(model, desk);
    return status;
}
