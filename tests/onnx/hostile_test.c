/* Files that are damaged, that lie, or that ask for what tandem does not have: each is refused with one sentence that
 * names the file, the place and, of a good file, what to do. */
#include <sys/stat.h>
#include <unistd.h>

#include <tandem/config.h>

#include "runtime/base/field/field.h"
#include "runtime/onnx/import.h"
#include "runtime/onnx/fields.h"
#include "runtime/onnx/wire.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

#define ONNX_FILES TDM_TEST_DATA "/files"

static char folder[256], path[300];

/* ---- files ---- */

typedef struct message {
    tdm_text text;
} message;

static message start(void) {
    message m;
    tdm__text_init(&m.text, tdm_host_default());
    return m;
}

static void nest(message *outer, int field, message *inner) {
    tdm__wire_message(&outer->text, field, &inner->text);
    tdm__text_deinit(&inner->text);
}

static message port(const char *name, int count, const int64_t *dims) {
    message shape = start(), tensor = start(), type = start(), out = start();
    for (int i = 0; i < count; i++) {
        message dim = start();
        if (dims[i] > 0)
            tdm__wire_integer(&dim.text, DIM_VALUE, dims[i]);
        else
            tdm__wire_text(&dim.text, DIM_NAME, "open");
        nest(&shape, SHAPE_DIM, &dim);
    }
    tdm__wire_integer(&tensor.text, TENSOR_TYPE, TDM_ONNX_FLOAT);
    nest(&tensor, TENSOR_SHAPE, &shape);
    nest(&type, TYPE_TENSOR, &tensor);
    tdm__wire_text(&out.text, VALUE_NAME, name);
    nest(&out, VALUE_TYPE, &type);
    return out;
}

static message node(const char *op, const char *x, const char *second, const char *y) {
    message out = start();
    tdm__wire_text(&out.text, NODE_INPUT, x);
    if (second != NULL) tdm__wire_text(&out.text, NODE_INPUT, second);
    tdm__wire_text(&out.text, NODE_OUTPUT, y);
    tdm__wire_text(&out.text, NODE_NAME, "n");
    tdm__wire_text(&out.text, NODE_OP, op);
    return out;
}

static message numbers(const char *name, int64_t rows, int64_t columns, size_t bytes) {
    static const char zeros[256];
    message out = start();
    tdm__wire_integer(&out.text, NUMBERS_DIM, rows);
    tdm__wire_integer(&out.text, NUMBERS_DIM, columns);
    tdm__wire_integer(&out.text, NUMBERS_TYPE, TDM_ONNX_FLOAT);
    tdm__wire_text(&out.text, NUMBERS_NAME, name);
    tdm__wire_head(&out.text, NUMBERS_RAW, bytes);
    tdm__text_add(&out.text, zeros, bytes);
    return out;
}

/* input [open, 4] and output "y" around what `parts` has; takes it over. */
static message model(message *parts, int64_t opset) {
    message out = start(), version = start();
    message in = port("x", 2, (const int64_t[]){0, 4}), y = port("y", 2, (const int64_t[]){0, 4});
    tdm__wire_integer(&out.text, MODEL_IR, 8);
    tdm__wire_integer(&version.text, OPSET_VERSION, opset);
    nest(&out, MODEL_OPSET, &version);
    nest(parts, GRAPH_INPUT, &in);
    nest(parts, GRAPH_OUTPUT, &y);
    nest(&out, MODEL_GRAPH, parts);
    return out;
}

static void check_bytes(const void *bytes, size_t count, tdm_status wanted, const char *says) {
    tdm_graph *graph = (tdm_graph *)path;
    tdm_value output;
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(i == 0 ? tdm_graph_from_onnx(&graph, &output, NULL, path)
                            : tdm_graph_from_onnx_memory(&graph, &output, NULL, bytes, count),
                     wanted);
        CHECK(graph == NULL);
        CHECK_HAS(tdm_error_message(), says);
        CHECK_HAS(tdm_error_message(), i == 0 ? path : "memory");
        CHECK(strchr(tdm_error_message(), '\n') == NULL);
    }
}

static void check(message *parts, tdm_status wanted, const char *says) {
    message whole = model(parts, 17);
    check_bytes(whole.text.data, whole.text.length, wanted, says);
    tdm__text_deinit(&whole.text);
}

/* ---- damaged ---- */

TEST(damaged_files_are_refused_at_a_place) {
    check_bytes("", 0, TDM_E_CHECKPOINT, "no model begins");
    check_bytes("\x08\x08", 2, TDM_E_CHECKPOINT, "no model begins");
    check_bytes("PK\3\4abcdefgh", 12, TDM_E_CHECKPOINT, "damaged, or no ONNX file");
    check_bytes("\x3a\xff\xff\xff\xff\x0f", 6, TDM_E_CHECKPOINT, "at byte 0 a field is longer than what it is in");
    check_bytes("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, TDM_E_CHECKPOINT, "more than 64 bits");
    check_bytes("\x3a", 1, TDM_E_CHECKPOINT, "at byte 1 a number is cut short");
    check_bytes("\x03\x00", 2, TDM_E_CHECKPOINT, "no valid number");
    check_bytes("\x0b\x00", 2, TDM_E_CHECKPOINT, "an unknown way");
    check_bytes("\x08\x08\x38\x01", 4, TDM_E_CHECKPOINT, "at byte 2 a field is written in the way of another");
    check_bytes("\x3a\x00\x3a\x00", 4, TDM_E_CHECKPOINT, "at byte 4 a second graph begins");
}

TEST(lies_are_refused) {
    message parts = start(), part = numbers("w", 4, 4, 60);
    nest(&parts, GRAPH_NUMBERS, &part);
    check(&parts, TDM_E_CHECKPOINT, "numbers are more or fewer than their shape says");
    parts = start(), part = numbers("w", INT64_C(1) << 40, INT64_C(1) << 40, 4);
    nest(&parts, GRAPH_NUMBERS, &part);
    check(&parts, TDM_E_CHECKPOINT, "a shape that no machine holds");
    parts = start(), part = numbers("w", -1, 4, 4);
    nest(&parts, GRAPH_NUMBERS, &part);
    check(&parts, TDM_E_CHECKPOINT, "too many dimensions, or too long ones");
    parts = start();
    for (int i = 0; i < 2; i++) {
        part = node("Relu", "x", NULL, "y");
        nest(&parts, GRAPH_NODE, &part);
    }
    check(&parts, TDM_E_CHECKPOINT, "two parts of the model are called 'y'");
    parts = start(), part = numbers("w", 4, 4, 64);
    tdm__wire_head(&part.text, NUMBERS_FLOATS, 4);
    tdm__text_add(&part.text, "abcd", 4);
    nest(&parts, GRAPH_NUMBERS, &part);
    check(&parts, TDM_E_CHECKPOINT, "numbers are given twice");
    for (int i = 0; i < 2; i++) { /* none, and two of which it may be either */
        message attribute = start();
        parts = start(), part = node("LeakyRelu", "x", NULL, "y");
        tdm__wire_text(&attribute.text, ATTRIBUTE_NAME, "alpha");
        if (i > 0) tdm__wire_integer(&attribute.text, ATTRIBUTE_I, 1);
        if (i > 0) tdm__wire_float(&attribute.text, ATTRIBUTE_F, 0.5f);
        nest(&part, NODE_ATTRIBUTE, &attribute);
        nest(&parts, GRAPH_NODE, &part);
        check(&parts, TDM_E_CHECKPOINT, "an attribute has no type");
    }
    message attribute = start();
    parts = start(), part = node("LeakyRelu", "x", NULL, "y");
    tdm__wire_text(&attribute.text, ATTRIBUTE_NAME, "alpha");
    tdm__wire_integer(&attribute.text, ATTRIBUTE_I, 1);
    tdm__wire_integer(&attribute.text, ATTRIBUTE_TYPE, TYPE_FLOAT);
    nest(&part, NODE_ATTRIBUTE, &attribute);
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_CHECKPOINT, "an attribute has another value than its type says");
    parts = start(), part = node("Relu", "\xff\xfe", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_CHECKPOINT, "a text is no UTF-8");
}

/* Each file of PyTorch, cut short at many places: refused, or as a whole. */
TEST(files_cut_short_are_refused) {
    static char all[1 << 16];
    tdm_graph *graph;
    tdm_value output;
    FILE *file = fopen(ONNX_FILES "/lstm_dynamo.onnx", "rb");
    REQUIRE(file != NULL);
    const size_t count = fread(all, 1, sizeof all, file);
    fclose(file);
    REQUIRE_OK(tdm_graph_from_onnx_memory(&graph, &output, NULL, all, count));
    tdm_graph_free(graph);
    for (size_t cut = 0; cut < count; cut += 7) {
        const tdm_status status = tdm_graph_from_onnx_memory(&graph, &output, NULL, all, cut);
        CHECK(status == TDM_E_CHECKPOINT || status == TDM_E_UNSUPPORTED);
        CHECK(graph == NULL);
    }
}

/* Wherever memory ends, that is told, and nothing is kept. */
TEST(memory_may_end_anywhere) {
    static const char *const files[] = {ONNX_FILES "/gru_state_dynamo.onnx", ONNX_FILES "/plain_beside.onnx"};
    for (int i = 0; i < 2; i++)
        for (long k = 1;; k++) {
            tdm_failing_host failing;
            tdm_graph *graph = NULL;
            tdm_value output;
            char *text = NULL;
            tdm_failing_host_init(&failing, k);
            tdm_status status = tdm_graph_from_onnx(&graph, &output, &failing.host, files[i]);
            tdm_graph_free(graph);
            if (status == TDM_OK)
                status = tdm_config_starter_onnx(&failing.host, files[i], NULL, NULL, NULL, TDM_ENGLISH, &text);
            tdm_free(text);
            CHECK_INT(failing.live, 0);
            CHECK_STATUS(status, failing.failed ? TDM_E_MEMORY : TDM_OK);
            if (!failing.failed) break;
        }
}

/* What many ops look at has limits, and they say so. */
TEST(nodes_with_too_much_are_refused) {
    static const char *const says[] = {"a node has 1025 inputs, 1 outputs and 0 attributes, and tandem reads nodes of",
                                       "1 inputs, 65 outputs and 0 attributes",
                                       "1 inputs, 1 outputs and 65 attributes"};
    static const int field[] = {NODE_INPUT, NODE_OUTPUT, NODE_ATTRIBUTE}, more[] = {1024, 64, 65};
    for (int i = 0; i < 3; i++) {
        message parts = start(), part = node("Relu", "x", NULL, "y");
        for (int k = 0; k < more[i]; k++) tdm__wire_text(&part.text, field[i], "");
        nest(&parts, GRAPH_NODE, &part);
        check(&parts, TDM_E_UNSUPPORTED, says[i]);
    }
}

/* Its type is that of its only field. */
TEST(an_attribute_without_type_is_not_lost) {
    tdm_graph *graph = NULL;
    tdm_value output;
    message parts = start(), part = node("LeakyRelu", "x", NULL, "y"), attribute = start(), whole;
    tdm__wire_text(&attribute.text, ATTRIBUTE_NAME, "alpha");
    tdm__wire_float(&attribute.text, ATTRIBUTE_F, 0.5f);
    nest(&part, NODE_ATTRIBUTE, &attribute);
    nest(&parts, GRAPH_NODE, &part);
    whole = model(&parts, 17);
    CHECK_OK(tdm_graph_from_onnx_memory(&graph, &output, NULL, whole.text.data, whole.text.length));
    REQUIRE(graph != NULL && graph->node_count == 1);
    const tdm_field *slope = tdm__field_main(graph->nodes[0].op->attrs);
    REQUIRE(slope != NULL && slope->kind == TDM_FIELD_FLOAT);
    CHECK(*(const double *)(const void *)((const char *)graph->nodes[0].attrs + slope->offset) == 0.5);
    tdm_graph_free(graph);
    tdm__text_deinit(&whole.text);
}

/* Integers in raw bytes, and no others in an empty field. */
TEST(an_empty_field_beside_numbers_is_none) {
    static const int64_t shape[] = {-1, 4};
    tdm_graph *graph = NULL;
    tdm_value output;
    message parts = start(), part = start(), whole;
    tdm__wire_integer(&part.text, NUMBERS_DIM, 2);
    tdm__wire_integer(&part.text, NUMBERS_TYPE, TDM_ONNX_INT64);
    tdm__wire_text(&part.text, NUMBERS_NAME, "shape");
    tdm__wire_head(&part.text, NUMBERS_RAW, sizeof shape);
    tdm__text_add(&part.text, (const char *)shape, sizeof shape);
    tdm__wire_head(&part.text, NUMBERS_INT64S, 0);
    nest(&parts, GRAPH_NUMBERS, &part);
    part = node("Relu", "x", NULL, "v");
    nest(&parts, GRAPH_NODE, &part);
    part = node("Reshape", "v", "shape", "y");
    nest(&parts, GRAPH_NODE, &part);
    whole = model(&parts, 17);
    CHECK_OK(tdm_graph_from_onnx_memory(&graph, &output, NULL, whole.text.data, whole.text.length));
    tdm_graph_free(graph);
    tdm__text_deinit(&whole.text);
}

static char said[500];

static void keep_log(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)user, (void)subsystem;
    if (level == TDM_LOG_WARNING) snprintf(said, sizeof said, "%s", line);
}

/* Layers of one name get their places behind it, which no other has. */
TEST(many_layers_of_one_name_differ) {
    enum { LAYERS = 40 };
    tdm_graph *graph = NULL;
    tdm_value output;
    message parts = start(), part = numbers("w", 4, 4, 64), whole;
    nest(&parts, GRAPH_NUMBERS, &part);
    for (int i = 0; i < LAYERS; i++) {
        char x[16], y[16];
        snprintf(x, sizeof x, i > 0 ? "v%d" : "x", i - 1);
        snprintf(y, sizeof y, i < LAYERS - 1 ? "v%d" : "y", i);
        part = node("MatMul", x, "w", y);
        tdm__wire_text(&part.text, NODE_NAME, "/a/b");
        nest(&parts, GRAPH_NODE, &part);
    }
    whole = model(&parts, 17);
    CHECK_OK(tdm_graph_from_onnx_memory(&graph, &output, NULL, whole.text.data, whole.text.length));
    REQUIRE(graph != NULL && graph->node_count == LAYERS);
    CHECK_TEXT(graph->nodes[0].name, "a");
    CHECK_TEXT(graph->nodes[1].name, "a_2");
    CHECK_TEXT(graph->nodes[20].name, "a_28");
    tdm_graph_free(graph);
    /* They share the constant, too, which is told. */
    tdm_host host = *tdm_host_default();
    char *text = NULL;
    FILE *file = fopen(path, "wb");
    host.log = keep_log;
    host.log_level = TDM_LOG_WARNING;
    REQUIRE(file != NULL && fwrite(whole.text.data, 1, whole.text.length, file) == whole.text.length &&
            fclose(file) == 0);
    CHECK_OK(tdm_config_starter_onnx(&host, path, NULL, NULL, NULL, TDM_ENGLISH, &text));
    CHECK_HAS(said, "'a.weight' and 'a_2.weight' are one constant, 'w'; tandem trains a copy for each layer");
    CHECK_HAS(text, "  # a.weight and a_2.weight are one constant in the file; tandem trains a copy for each layer\n");
    tdm_free(text);
    tdm__text_deinit(&whole.text);
}

/* ---- good files that tandem cannot take ---- */

TEST(nodes_without_a_layer_are_named) {
    message parts = start(), part = node("Sinh", "x", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "node 'n' (Sinh), output 'y': tandem has no layer that computes it");
    parts = start(), part = node("Softmax", "x", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "export the model without this node");
    parts = start(), part = node("Softmax", "x", NULL, "z");
    nest(&parts, GRAPH_NODE, &part);
    part = node("Relu", "z", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "node 'n' (Softmax), output 'z': tandem has no layer that computes it");
    parts = start(), part = node("Relu", "x", NULL, "z"); /* the second output is asked for, and no layer has one */
    tdm__wire_text(&part.text, NODE_OUTPUT, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "node 'n' (Relu), output 'y': tandem has no layer that computes it");
    parts = start();
    tdm__text_init(&part.text, tdm_host_default()); /* a node without a name */
    tdm__wire_text(&part.text, NODE_INPUT, "x");
    tdm__wire_text(&part.text, NODE_OUTPUT, "y");
    tdm__wire_text(&part.text, NODE_OP, "Sinh");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "node 1 of 1 (Sinh), output 'y': tandem has no layer that computes it");
    parts = start(), part = node("Relu", "x", NULL, "y");
    tdm__wire_text(&part.text, NODE_DOMAIN, "com.example");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "node 'n' (com.example:Relu), output 'y'");
    parts = start(), part = node("Relu", "other", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_CHECKPOINT, "node 'n' (Relu), output 'y': no node, constant or input is its 'other'");
    parts = start(), part = node("Relu", "x", NULL, "z");
    nest(&parts, GRAPH_NODE, &part);
    check(&parts, TDM_E_UNSUPPORTED, "no node makes the output 'y'");
    parts = start(), part = node("MatMul", "x", "w", "y");
    nest(&parts, GRAPH_NODE, &part);
    part = numbers("w", 5, 4, 80);
    nest(&parts, GRAPH_NUMBERS, &part);
    check(&parts, TDM_E_UNSUPPORTED, "its weights have another shape than its inputs and outputs want");
}

TEST(models_of_another_kind_are_told_why) {
    message parts = start(), part = node("Relu", "x", NULL, "y"), more = port("z", 2, (const int64_t[]){0, 4});
    nest(&parts, GRAPH_NODE, &part);
    nest(&parts, GRAPH_INPUT, &more);
    check(&parts, TDM_E_UNSUPPORTED, "the output does not depend on the input 'z'");
    parts = start(), part = node("Add", "x", "z", "y"), more = port("z", 2, (const int64_t[]){1, 4});
    nest(&parts, GRAPH_NODE, &part);
    nest(&parts, GRAPH_INPUT, &more);
    check(&parts, TDM_E_UNSUPPORTED, "is 1 of the input 'z' and 0 of 'x' (0: open), and tandem needs the same");
    parts = start(), part = node("Relu", "x", NULL, "y"), more = port("z", 2, (const int64_t[]){0, 4});
    nest(&parts, GRAPH_NODE, &part);
    nest(&parts, GRAPH_OUTPUT, &more);
    check(&parts, TDM_E_UNSUPPORTED, "the model has 2 outputs");
    message graph = start(), out = start(), version = start();
    more = port("x", 3, (const int64_t[]){0, 3, 0});
    nest(&graph, GRAPH_INPUT, &more);
    tdm__wire_integer(&version.text, OPSET_VERSION, 17);
    nest(&out, MODEL_OPSET, &version);
    nest(&out, MODEL_GRAPH, &graph);
    check_bytes(out.text.data, out.text.length, TDM_E_UNSUPPORTED,
                "dimension 2 of the input 'x' is open ('open'), and tandem needs its size");
    tdm__text_deinit(&out.text);
    parts = start(), part = node("Relu", "x", NULL, "y");
    nest(&parts, GRAPH_NODE, &part);
    out = model(&parts, 99);
    check_bytes(out.text.data, out.text.length, TDM_E_UNSUPPORTED, "it is of opset 99");
    tdm__text_deinit(&out.text);
}

/* Nodes that look like a layer of tandem and compute something else (make_files.py). */
TEST(nodes_that_are_almost_a_layer_are_refused) {
    static const char *const files[][2] = {
        {"mean_uneven", "its padding differs in front and behind"},
        {"mean_uneven_ceil", "its padding differs in front and behind"},
        {"bias_of_steps", "its weights have another shape"},
        {"bias_of_rows", "its weights have another shape"},
        {"scale_of_steps", "its weights have another shape"},
        {"resize_axes", "its `axes` are not all in their order"},
        {"resize_ratio", "keep_aspect_ratio_policy"},
        {"resize_first", "'pytorch_half_pixel'"},
        {"groups_of_rows", "(Reshape)"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char onnx[400];
        tdm_graph *graph;
        tdm_value output;
        snprintf(onnx, sizeof onnx, "%s/refused_%s.onnx", ONNX_FILES, files[i][0]);
        CHECK_STATUS(tdm_graph_from_onnx(&graph, &output, NULL, onnx), TDM_E_UNSUPPORTED);
        CHECK(graph == NULL);
        CHECK_HAS(tdm_error_message(), files[i][1]);
    }
}

/* ---- numbers in other files ---- */

static void check_place(const char *location, tdm_status wanted, const char *says) {
    message parts = start(), part = start(), place = start(), layer = node("MatMul", "x", "w", "y");
    tdm_graph *graph;
    tdm_value output;
    tdm__wire_integer(&part.text, NUMBERS_DIM, 4);
    tdm__wire_integer(&part.text, NUMBERS_DIM, 4);
    tdm__wire_integer(&part.text, NUMBERS_TYPE, TDM_ONNX_FLOAT);
    tdm__wire_text(&part.text, NUMBERS_NAME, "w");
    tdm__wire_text(&place.text, PROPERTY_KEY, "location");
    tdm__wire_text(&place.text, PROPERTY_VALUE, location);
    nest(&part, NUMBERS_ELSEWHERE, &place);
    tdm__wire_integer(&part.text, NUMBERS_PLACE, 1);
    nest(&parts, GRAPH_NUMBERS, &part);
    nest(&parts, GRAPH_NODE, &layer);
    message whole = model(&parts, 17);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL && fwrite(whole.text.data, 1, whole.text.length, file) == whole.text.length &&
            fclose(file) == 0);
    CHECK_STATUS(tdm_graph_from_onnx(&graph, &output, NULL, path), wanted);
    if (wanted != TDM_OK) CHECK_HAS(tdm_error_message(), says);
    tdm_graph_free(graph);
    CHECK_STATUS(tdm_graph_from_onnx_memory(&graph, &output, NULL, whole.text.data, whole.text.length),
                 TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "save it as one file");
    tdm__text_deinit(&whole.text);
}

TEST(other_files_lie_beside_it) {
    static const char zeros[64];
    char beside[300], link[300];
    snprintf(beside, sizeof beside, "%s/w.data", folder);
    snprintf(link, sizeof link, "%s/link.data", folder);
    FILE *file = fopen(beside, "wb");
    REQUIRE(file != NULL && fwrite(zeros, 1, sizeof zeros, file) == sizeof zeros && fclose(file) == 0);
    REQUIRE(symlink("w.data", link) == 0);
    check_place("w.data", TDM_OK, "");
    check_place("/etc/passwd", TDM_E_UNSUPPORTED, "in another file, and not one beside it; save it as one file");
    check_place("../w.data", TDM_E_UNSUPPORTED, "not one beside it");
    check_place("..", TDM_E_UNSUPPORTED, "not one beside it");
    check_place("", TDM_E_UNSUPPORTED, "not one beside it");
    check_place("none.data", TDM_E_CHECKPOINT, "numbers of it are in the file 'none.data' beside it");
    check_place("link.data", TDM_E_CHECKPOINT, "link.data");
    REQUIRE(truncate(beside, 60) == 0);
    check_place("w.data", TDM_E_CHECKPOINT, "numbers are more or fewer than their shape says");
}

TEST_MAIN(test_folder_make(folder); snprintf(path, sizeof path, "%s/m.onnx", folder);
          RUN(damaged_files_are_refused_at_a_place); RUN(lies_are_refused); RUN(files_cut_short_are_refused);
          RUN(memory_may_end_anywhere); RUN(nodes_with_too_much_are_refused);
          RUN(an_attribute_without_type_is_not_lost); RUN(an_empty_field_beside_numbers_is_none);
          RUN(many_layers_of_one_name_differ); RUN(nodes_without_a_layer_are_named);
          RUN(models_of_another_kind_are_told_why); RUN(nodes_that_are_almost_a_layer_are_refused);
          RUN(other_files_lie_beside_it); test_folder_remove(folder);)
