/* ONNX files become networks that give the same numbers: those that tandem writes to the bit, those of PyTorch's two
 * exporters as the real onnxruntime computes them (make_files.py). */
#include <math.h>

#include "runtime/graph/graph.h"
#include "tests/onnx/outputs.h"
#include "tests/onnx/read.h"

#define ONNX_FILES TDM_TEST_DATA "/files"

/* ---- what tandem writes ---- */

/* The ops of both graphs are the same, and their names as long as they have the same places, but for a sum of three,
 * which is two of two, and a dropout of channels, which does nothing outside training. */
static void check_ops(const tdm_graph *wanted, const tdm_graph *got) {
    size_t k = 0;
    for (size_t i = 0; i < wanted->node_count; i++) {
        const char *op = wanted->nodes[i].op->name;
        if (strcmp(op, "dropout2d") == 0) op = "identity";
        for (int more = strcmp(op, "add") == 0 ? wanted->nodes[i].input_count - 1 : 1; more > 0; more--) {
            REQUIRE(k < got->node_count);
            if (k == i && got->nodes[k].param_count > 0) CHECK_TEXT(got->nodes[k].name, wanted->nodes[i].name);
            CHECK_TEXT(got->nodes[k++].op->name, op);
        }
    }
    CHECK_INT(k, got->node_count);
}

static void check_round_trip(const onnx_model *of) {
    static float x[ROWS * MOST_WIDTH], y[2][ROWS * MOST_WIDTH];
    char onnx[300], model[2][300];
    uint64_t bytes;
    tdm_graph *graph;
    tdm_value output;
    made m;
    snprintf(onnx, sizeof onnx, "%s/%s.onnx", folder, of->name);
    for (int i = 0; i < 2; i++) snprintf(model[i], sizeof model[i], "%s/%s%d.tandem", folder, of->name, i);
    make(&m, of->name, of->input, of->layers);
    must(write_onnx(&m, of->name, onnx, &bytes) == TDM_OK, of->name);
    must(tdm_graph_from_onnx(&graph, &output, NULL, onnx) == TDM_OK, of->name);
    check_ops(m.graph, graph);
    tdm_graph_free(graph);
    char *text = text_of_onnx(onnx);
    if (strstr(text, "- batchnorm") != NULL) CHECK_HAS(text, "eps: 1.0e-5, momentum: 0.1, ");
    put_read(onnx, text, model[1]);
    put_model(model[0], m.text, m.tensor, m.count);
    const widths wide = predict(model[0], of->whole, x, y[0]);
    (void)predict(model[1], of->whole, x, y[1]);
    if (memcmp(y[0], y[1], sizeof(float) * (size_t)(ROWS * wide.out)) != 0)
        fprintf(stderr, "%s: other numbers than before:\n%s", of->name, text);
    CHECK(memcmp(y[0], y[1], sizeof(float) * (size_t)(ROWS * wide.out)) == 0);
    tdm_free(text);
    drop(&m);
}

TEST(what_is_written_is_read_with_the_same_bits) {
    for (int i = 0; i < MODELS; i++)
        if (!models[i].one_way) check_round_trip(&models[i]);
}

/* Of each op that is written. */
TEST(every_op_finds_itself) {
    for (int k = 0; tdm_builtin_ops[k] != NULL; k++) {
        const tdm_op_def *op = tdm_builtin_ops[k];
        const bool both = (op->onnx != NULL) == (op->from_onnx != NULL) || strcmp(op->name, "dropout2d") == 0;
        if (!both) fprintf(stderr, "%s is written into ONNX files and not found in them\n", op->name);
        CHECK(both);
    }
}

/* ---- what PyTorch writes ---- */

TEST(networks_of_pytorch_give_what_onnxruntime_gives) {
    static float x[ROWS * MOST_WIDTH], y[ROWS * MOST_WIDTH];
    char onnx[400], model[300];
    snprintf(model, sizeof model, "%s/torch.tandem", folder);
    for (int i = 0; i < FILES; i++) {
        float largest = 0, off = 0;
        snprintf(onnx, sizeof onnx, "%s/%s.onnx", ONNX_FILES, outputs[i].name);
        char *text = text_of_onnx(onnx);
        must(text != NULL, outputs[i].name);
        put_read(onnx, text, model);
        const widths wide = predict(model, outputs[i].whole, x, y);
        CHECK_INT(wide.out, outputs[i].width);
        for (int k = 0; k < 2 * outputs[i].width; k++) {
            largest = fmaxf(largest, fabsf(outputs[i].y[k]));
            off = fmaxf(off, fabsf(outputs[i].y[k] - y[k]));
        }
        if (!(off < 1e-6f * largest))
            fprintf(stderr, "%s is off by %g of %g:\n%s", outputs[i].name, off, largest, text);
        CHECK(off < 1e-6f * largest);
        tdm_free(text);
    }
}

static void check_layers(const char *name, const char *const *lines) {
    char onnx[400];
    snprintf(onnx, sizeof onnx, "%s/%s.onnx", ONNX_FILES, name);
    char *text = text_of_onnx(onnx);
    must(text != NULL, name);
    for (; *lines != NULL; lines++) CHECK_HAS(text, *lines);
    tdm_free(text);
}

TEST(layers_have_the_names_of_pytorchs_modules) {
    check_layers("resnet_ts",
                 (const char *const[]){"- conv2d: {name: conv1, out: 4,", "- conv2d: {name: layer1.0.conv1,",
                                       "- conv2d: {name: layer1.1.down.0,", "- linear: {name: fc, ", NULL});
    check_layers("resnet_dynamo",
                 (const char *const[]){"- conv2d: {name: layer1.1.down.0,", "- linear: {name: fc, ", NULL});
    check_layers("lstm_ts", (const char *const[]){"- lstm: {name: rnn, hidden: 5, layers: 2, outputs: last}", NULL});
    check_layers("lstm_dynamo",
                 (const char *const[]){"- lstm: {name: rnn, hidden: 5, layers: 2, outputs: last}", NULL});
    check_layers("gru_state_ts",
                 (const char *const[]){"- gru: {name: rnn, hidden: 5, layers: 2, outputs: last}", NULL});
    /* In a Sequential they are numbers, which no other place of the list may have. */
    check_layers("plain_beside", (const char *const[]){"- conv2d: {out: 4,", "- linear: {name: layer5, out: 4,",
                                                       "- linear: {name: layer7, out: 3, bias: false", NULL});
    check_layers("norms_dynamo", (const char *const[]){"- groupnorm: {name: gn, groups: 2, eps: 1.0e-5,",
                                                       "- groupnorm: {groups: 4, eps: 1.0e-5, affine: false",
                                                       "normalized_shape: [8, 4, 4]", NULL});
}

/* Their weights are ones and their biases zeros; they are to be trained all the same. */
TEST(fresh_norms_keep_their_parameters) {
    check_layers("fresh_ts", (const char *const[]){"- groupnorm: {name: gn, groups: 2, eps: 1.0e-5, affine: true",
                                                   "- groupnorm: {name: each, groups: 4, eps: 1.0e-5, affine: true",
                                                   "- groupnorm: {groups: 4, eps: 1.0e-5, affine: false", NULL});
}

TEST_MAIN(test_folder_make(folder); RUN(what_is_written_is_read_with_the_same_bits); RUN(every_op_finds_itself);
          RUN(networks_of_pytorch_give_what_onnxruntime_gives); RUN(layers_have_the_names_of_pytorchs_modules);
          RUN(fresh_norms_keep_their_parameters); test_folder_remove(folder);)
