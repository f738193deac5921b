/* The file around the nodes: a ModelProto. Weights are written from where they lie. */
#include "runtime/model/onnx/onnx.h"

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/onnx/fields.h"
#include "runtime/onnx/wire.h"

enum { IR_VERSION = 8 };                              /* that of opset 17 */
static const uint64_t most_bytes = UINT64_C(1) << 31; /* of a message: readers refuse more */

/* Adds `inner` as a field of `outer`, and empties it. */
static void nest(tdm_text *outer, int field, tdm_text *inner) {
    tdm__wire_message(outer, field, inner);
    inner->length = 0;
}

/* float[batch][shape], by name. */
static void add_value(tdm_text *graph, int field, const char *name, const tdm_shape *shape) {
    tdm_text dim, dims, tensor, type, value;
    tdm_text *const all[] = {&dim, &dims, &tensor, &type, &value};
    for (int i = 0; i < 5; i++) tdm__text_init(all[i], graph->host);
    tdm__wire_text(&dim, DIM_NAME, "batch");
    nest(&dims, SHAPE_DIM, &dim);
    for (int i = 0; i < shape->ndim; i++) {
        tdm__wire_integer(&dim, DIM_VALUE, shape->dim[i]);
        nest(&dims, SHAPE_DIM, &dim);
    }
    tdm__wire_integer(&tensor, TENSOR_TYPE, TDM_ONNX_FLOAT);
    nest(&tensor, TENSOR_SHAPE, &dims);
    nest(&type, TYPE_TENSOR, &tensor);
    tdm__wire_text(&value, VALUE_NAME, name);
    nest(&value, VALUE_TYPE, &type);
    nest(graph, field, &value);
    for (int i = 0; i < 5; i++) tdm__text_deinit(all[i]);
}

/* A TensorProto up to its numbers; *total: its bytes with them. */
static void print_numbers(tdm_text *out, const tdm_onnx_numbers *numbers, uint64_t *total) {
    out->length = 0;
    for (int i = 0; i < numbers->shape.ndim; i++) tdm__wire_integer(out, NUMBERS_DIM, numbers->shape.dim[i]);
    tdm__wire_integer(out, NUMBERS_TYPE, numbers->type);
    tdm__wire_text(out, NUMBERS_NAME, numbers->name);
    tdm__wire_head(out, NUMBERS_RAW, numbers->bytes);
    *total = out->length + numbers->bytes;
}

/* The texts of a file, but for its numbers. */
typedef struct parts {
    tdm_text head, graph, piece, field; /* of the model, of the graph; of one TensorProto, and what stands in front */
} parts;

static void add_property(parts *p, const char *key, const char *text) {
    tdm__wire_text(&p->piece, PROPERTY_KEY, key);
    tdm__wire_text(&p->piece, PROPERTY_VALUE, text);
    nest(&p->head, MODEL_PROPERTY, &p->piece);
}

static void print_head(parts *p, const tdm_onnx_source *source) {
    tdm__wire_integer(&p->head, MODEL_IR, IR_VERSION);
    tdm__wire_text(&p->head, MODEL_PRODUCER, "tandem");
    tdm__wire_integer(&p->piece, OPSET_VERSION, TDM_ONNX_OPSET);
    nest(&p->head, MODEL_OPSET, &p->piece);
    for (int i = 0; i < TDM_NOTES; i++) {
        if (source->note[i] != NULL) add_property(p, tdm__note_keys[i], source->note[i]);
    }
    for (int i = 0; i < source->property_count; i++) add_property(p, source->property[i].key, source->property[i].text);
}

static void print_graph(parts *p, const tdm_onnx_writer *w) {
    const tdm_graph *graph = w->source->graph;
    tdm__text_add(&p->graph, w->nodes.data != NULL ? w->nodes.data : "", w->nodes.length);
    tdm__wire_text(&p->graph, GRAPH_NAME, w->source->name);
    for (int k = 0; k < graph->input_count; k++)
        add_value(&p->graph, GRAPH_INPUT, tdm__onnx_input_name(graph, k), &graph->values[k].shape);
    add_value(&p->graph, GRAPH_OUTPUT, tdm__onnx_output, &graph->values[graph->output].shape);
}

static uint64_t graph_bytes(parts *p, const tdm_onnx_writer *w) {
    uint64_t bytes = p->graph.length, total;
    for (const tdm_onnx_numbers *n = w->first; n != NULL; n = n->next) {
        print_numbers(&p->piece, n, &total);
        p->field.length = 0;
        tdm__wire_head(&p->field, GRAPH_NUMBERS, total);
        bytes += p->field.length + total;
    }
    return bytes;
}

static tdm_status write_parts(parts *p, const tdm_onnx_writer *w, tdm_out_file *file) {
    uint64_t total;
    TDM_TRY(tdm__out_write(file, p->head.data, p->head.length));
    TDM_TRY(tdm__out_write(file, p->graph.data, p->graph.length));
    for (const tdm_onnx_numbers *n = w->first; n != NULL; n = n->next) {
        print_numbers(&p->piece, n, &total);
        p->field.length = 0;
        tdm__wire_head(&p->field, GRAPH_NUMBERS, total);
        TDM_TRY(tdm__out_write(file, p->field.data, p->field.length));
        TDM_TRY(tdm__out_write(file, p->piece.data, p->piece.length));
        TDM_TRY(tdm__out_write(file, n->data, n->bytes));
    }
    return tdm__out_finish(file);
}

static tdm_status write_file(parts *p, const tdm_onnx_writer *w, const char *to, uint64_t *bytes) {
    tdm_out_file file = {.fd = -1};
    print_head(p, w->source);
    print_graph(p, w);
    const uint64_t of_graph = graph_bytes(p, w);
    tdm__wire_head(&p->head, MODEL_GRAPH, of_graph);
    *bytes = p->head.length + of_graph;
    if (p->head.failed || p->graph.failed || p->piece.failed || p->field.failed)
        TDM_FAIL(TDM_E_MEMORY, "out of memory for the header of an ONNX file");
    if (*bytes >= most_bytes)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: an ONNX file holds less than 2 GiB, and this model takes %llu bytes", to,
                 (unsigned long long)*bytes);
    TDM_TRY(tdm__out_open(&file, w->source->ops, NULL, to, *bytes, NULL));
    TDM_TRY_ELSE(write_parts(p, w, &file), tdm__out_discard(&file));
    return TDM_OK;
}

tdm_status tdm__onnx_write(const tdm_host *host, const tdm_onnx_source *source, const char *to, uint64_t *bytes) {
    tdm_onnx_writer w = {.source = source};
    parts p;
    tdm_text *const all[] = {&w.node, &w.nodes, &p.head, &p.graph, &p.piece, &p.field};
    for (int i = 0; i < 6; i++) tdm__text_init(all[i], host);
    tdm__zone_init(&w.zone, host);
    w.last = &w.first;
    tdm_status status = tdm__zone_new(&w.zone, &w.is_written, (size_t)source->tensor_count, sizeof(*w.is_written));
    if (status == TDM_OK) status = tdm__onnx_nodes(&w);
    if (status == TDM_OK) status = write_file(&p, &w, to, bytes);
    for (int i = 0; i < 6; i++) tdm__text_deinit(all[i]);
    tdm__zone_deinit(&w.zone);
    return status;
}
