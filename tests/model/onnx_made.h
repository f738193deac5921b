/* The models of onnx_models.h with weights that a formula gives, as ONNX files and as files that predict. */
#include <stdlib.h>
#include <unistd.h>

#include <tandem/config.h>
#include <tandem/model.h>

#include "runtime/model/onnx/onnx.h"
#include "tests/model/onnx_models.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { ROWS = 3, MOST_TENSORS = 64, MOST_WIDTH = 512 };

static char folder[256];

/* For functions whose failure ends the program. */
static inline void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, tdm_error_message());
    exit(1);
}

/* ---- a model with weights that a formula gives ---- */

typedef struct made {
    char text[2048];
    tdm_config *config;
    const tdm_graph *graph;
    tdm_tensor tensor[MOST_TENSORS];
    int count;
} made;

static inline void fill(float *out, int64_t count, unsigned seed, bool is_variance) {
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const float drawn = (float)(state >> 8) / (float)(1 << 24);
        out[i] = is_variance ? 0.5f + drawn : drawn - 0.5f;
    }
}

static inline void add_tensor(made *m, const tdm_graph_param *param) {
    static const int64_t batches = 5;
    tdm_tensor *tensor = &m->tensor[m->count];
    const bool counter = param->def.is_counter;
    must(m->count < MOST_TENSORS, "too many tensors");
    float *numbers = calloc((size_t)param->count, sizeof *numbers);
    must(numbers != NULL, "memory");
    if (!counter) fill(numbers, param->count, (unsigned)m->count, strstr(param->name, "running_var") != NULL);
    *tensor = (tdm_tensor){.name = param->name,
                           .dtype = counter ? TDM_ST_I64 : TDM_ST_F32,
                           .ndim = param->def.shape.ndim,
                           .bytes = counter ? sizeof batches : (size_t)param->count * sizeof *numbers,
                           .data = counter ? (const void *)&batches : numbers};
    memcpy(tensor->dim, param->def.shape.dim, sizeof param->def.shape.dim);
    if (counter) free(numbers);
    m->count++;
}

static inline void make(made *m, const char *name, const char *input, const char *layers) {
    *m = (made){.count = 0};
    snprintf(m->text, sizeof m->text,
             "tandem: 1\nname: %s\nmodel: {%s: %s, layers: %s}\nloss: {type: mse}\nparallel: {kernels: ref}\n", name,
             input[0] == '{' ? "inputs" : "input", input, layers);
    must(tdm_config_parse(&m->config, NULL, m->text, strlen(m->text), name, NULL) == TDM_OK, name);
    must(tdm_config_predicts(m->config) == TDM_OK && tdm_config_check(m->config) == TDM_OK, name);
    m->graph = tdm_config_graph(m->config);
    for (size_t i = 0; i < m->graph->param_count; i++) add_tensor(m, &m->graph->params[i]);
    for (size_t i = 0; i < m->graph->buffer_count; i++) add_tensor(m, &m->graph->buffers[i]);
}

static inline void drop(made *m) {
    for (int i = 0; i < m->count; i++)
        if (m->tensor[i].dtype == TDM_ST_F32) free((void *)(uintptr_t)m->tensor[i].data);
    tdm_config_free(m->config);
}

static inline tdm_status write_onnx(const made *m, const char *name, const char *path, uint64_t *bytes) {
    const tdm_onnx_source source = {.ops = &tdm__file_system,
                                    .graph = m->graph,
                                    .name = name,
                                    .tensor = m->tensor,
                                    .tensor_count = m->count,
                                    .note = {"[]"}};
    (void)unlink(path);
    return tdm__onnx_write(tdm_host_default(), &source, path, bytes);
}

/* ---- what they predict ---- */

/* A file that predicts: the text of a model, and its tensors. */
static inline void put_model(const char *path, const char *text, const tdm_tensor *tensor, int count) {
    const char *note[TDM_NOTES] = {[TDM_NOTE_MODEL] = text}, *metadata[TDM_METADATA];
    char step[TDM_METADATA_STEP];
    (void)unlink(path);
    tdm__tensor_metadata(metadata, step, 1, note);
    must(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, tensor, count, metadata, NULL, NULL,
                                NULL) == TDM_OK,
         path);
}

typedef struct widths {
    int64_t in, out;
} widths;

/* Fills in x, [ROWS, MOST_WIDTH] at most, and predicts. */
static inline widths predict(const char *path, int whole, float *x, float *y) {
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    tdm_model *model;
    must(tdm_model_open(&model, path, NULL) == TDM_OK && tdm_model_get_info(model, &info) == TDM_OK, path);
    must(info.input_width <= MOST_WIDTH && info.output_width <= MOST_WIDTH, "width");
    fill(x, ROWS * info.input_width, 99, false);
    for (int64_t i = 0; whole && i < ROWS * info.input_width; i++) x[i] = (float)(i * 5 % 7);
    must(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, y) == TDM_OK, path);
    tdm_model_close(model);
    return (widths){info.input_width, info.output_width};
}
