/* Files of models from hostile hands: nothing crashes, and what opens predicts, a row among others as a row alone.
 *
 * The highest bit of byte 0: the rest is a whole file. Without it the rest is the text of a model, and the file around
 * it is made here, with the tensors that the text wants; the low bits of byte 0 spoil it (see `spoilt`). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/config.h>
#include <tandem/model.h>

#include "runtime/base/text/json_write.h"
#include "runtime/ckpt/tensor_file.h"
#include "runtime/graph/graph.h"

#define MUST(condition)                                                           \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "broken: %s: %s\n", #condition, tdm_error_message()); \
            abort();                                                              \
        }                                                                         \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { WHOLE = 128, SHORT = 1, OTHER_TYPE = 2, OTHER_NAME = 4, CLASSES = 8, ROWS = 3 };
/* Numbers and operations: more takes the time of other inputs. */
enum { MOST_NUMBERS = 1 << 16, MOST_FLOPS = 1 << 22 };

/* The graph that a handle would make of the text; NULL: none. */
static const tdm_graph *graph_of(const char *text, tdm_config **config) {
    *config = NULL;
    if (tdm_config_parse(config, NULL, text, strlen(text), "text", NULL) != TDM_OK) return NULL;
    if (tdm_config_predicts(*config) != TDM_OK || tdm_config_check(*config) != TDM_OK) return NULL;
    return tdm_config_graph(*config);
}

static bool is_small(const tdm_graph *graph) {
    double numbers = 0, flops = 0;
    for (size_t i = 0; i < graph->value_count; i++) numbers += (double)tdm__shape_count(&graph->values[i].shape);
    for (size_t i = 0; i < graph->param_count; i++) numbers += (double)graph->params[i].count;
    for (size_t i = 0; i < graph->buffer_count; i++) numbers += (double)graph->buffers[i].count;
    for (size_t i = 0; i < graph->node_count; i++) flops += graph->nodes[i].flops;
    return numbers < MOST_NUMBERS && flops < MOST_FLOPS;
}

/* The reference kernels: others plan for milliseconds, and may round many rows otherwise than one. */
static bool is_quick(const char *text) {
    tdm_config *config;
    const tdm_graph *graph = text != NULL ? graph_of(text, &config) : NULL;
    const bool quick =
        graph == NULL || (is_small(graph) && tdm_config_job(config)->parallel.kernels == TDM_KERNELS_REF);
    if (text != NULL) tdm_config_free(config);
    return quick;
}

/* ---- what opens predicts ---- */

static void check_predictions(tdm_model *model) {
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    MUST(tdm_model_get_info(model, &info) == TDM_OK);
    MUST(info.input_width > 0 && info.output_width > 0 && info.classes <= info.output_width);
    const size_t width = (size_t)info.input_width, outputs = (size_t)info.output_width;
    float *x = malloc(ROWS * width * sizeof(float)), *y = malloc(2 * ROWS * outputs * sizeof(float));
    MUST(x != NULL && y != NULL);
    for (size_t i = 0; i < ROWS * width; i++) x[i] = (float)(i * 7919 % 5);
    memset(y, 0xFF, 2 * ROWS * outputs * sizeof(float));
    const tdm_status status = tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, y);
    for (size_t i = 0; i < ROWS; i++)
        MUST(tdm_model_predict(model, TDM_INPUT_READY, x + i * width, 1, y + (ROWS + i) * outputs) == status);
    MUST(status != TDM_OK || memcmp(y, y + ROWS * outputs, ROWS * outputs * sizeof(float)) == 0);
    for (int64_t i = 0; i < info.classes; i++) MUST(tdm_model_class_name(model, i) != NULL);
    free(x);
    free(y);
}

static void open_file(const void *bytes, size_t count) {
    tdm_tensor_file *file;
    tdm_model *model;
    if (tdm__tensor_file_open_memory(&file, tdm_host_default(), bytes, count, "file") == TDM_OK) {
        const bool quick = is_quick(tdm__tensor_file_note(file, TDM_NOTE_MODEL));
        tdm__tensor_file_close(file);
        if (!quick) return;
    }
    const tdm_status status = tdm_model_open_memory(&model, bytes, count, NULL);
    MUST(status == TDM_OK || status == TDM_E_CHECKPOINT || status == TDM_E_UNSUPPORTED);
    MUST((status == TDM_OK) == (model != NULL));
    if (model != NULL) check_predictions(model);
    tdm_model_close(model);
}

/* ---- a file around a text ---- */

static uint64_t put_tensor(tdm_json_out *json, const tdm_graph_param *param, const char *type, uint64_t begin) {
    const uint64_t end = begin + (uint64_t)param->count * (param->def.is_counter ? sizeof(int64_t) : sizeof(float));
    tdm__json_put(json, "%s:{ dtype:%s", param->name, type);
    tdm__json_put_integers(json, "shape", param->def.shape.dim, param->def.shape.ndim);
    tdm__json_put_integers(json, "data_offsets", (const int64_t[]){(int64_t)begin, (int64_t)end}, 2);
    tdm__json_put(json, "}");
    return end;
}

/* The tensors of the graph, the last of them missing, of another type or of another name as `spoilt` says. */
static uint64_t put_tensors(tdm_json_out *json, const tdm_graph *graph, unsigned spoilt) {
    const size_t count = graph->param_count + graph->buffer_count;
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        tdm_graph_param param = i < graph->param_count ? graph->params[i] : graph->buffers[i - graph->param_count];
        const char *type = param.def.is_counter ? "I64" : "F32";
        if (i + 1 == count && (spoilt & SHORT) != 0) break;
        if (i + 1 == count && (spoilt & OTHER_TYPE) != 0) type = param.def.is_counter ? "U64" : "I32";
        if (i + 1 == count && (spoilt & OTHER_NAME) != 0) param.name = "another";
        end = put_tensor(json, &param, type, end);
    }
    return end;
}

static void open_text(const char *text, unsigned spoilt) {
    tdm_config *config;
    tdm_text file;
    const tdm_graph *graph = graph_of(text, &config);
    uint64_t bytes = 0;
    tdm__text_init(&file, tdm_host_default());
    tdm__text_add(&file, "\0\0\0\0\0\0\0\0", 8);
    tdm_json_out json = tdm__json_out(&file, "");
    tdm__json_put(&json, "{ __metadata__:{ tandem.model:%s", text);
    if ((spoilt & CLASSES) != 0) tdm__json_put(&json, "tandem.classes:%s", "[\"a\", \"b\"]");
    tdm__json_put(&json, "}");
    if (graph != NULL && is_small(graph)) bytes = put_tensors(&json, graph, spoilt);
    tdm__json_put(&json, "}");
    while (file.length % 8 != 0) tdm__text_puts(&file, " ");
    for (int i = 0; i < 8; i++) file.data[i] = (char)((uint64_t)(file.length - 8) >> (8 * i));
    for (uint64_t i = 0; i < bytes; i += 4) tdm__text_add(&file, i % 8 == 0 ? "\0\0\x80\x3f" : "\0\0\0\xbf", 4);
    MUST(!file.failed);
    tdm_config_free(config);
    open_file(file.data, file.length);
    tdm__text_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 1) return 0;
    if ((bytes[0] & WHOLE) != 0) {
        open_file(bytes + 1, count - 1);
        return 0;
    }
    char *text = NULL;
    MUST(asprintf(&text, "%.*s\nparallel: {kernels: ref}\n", (int)(count - 1), (const char *)bytes + 1) > 0);
    open_text(text, bytes[0]);
    free(text);
    return 0;
}
