/* Nodes that are a layer give what the real onnxruntime gives, and nodes that are nearly one are refused
 * (make_nodes.py). */
#include <math.h>

#include "runtime/graph/graph.h"
#include "tests/onnx/nodes.h"
#include "tests/onnx/read.h"

static void onnx_path(char out[400], int i) {
    snprintf(out, 400, "%s/files/node_%s.onnx", TDM_TEST_DATA, nodes[i].name);
}

TEST(nodes_of_a_layer_give_what_onnxruntime_gives) {
    static float x[ROWS * MOST_WIDTH], y[ROWS * MOST_WIDTH];
    char onnx[400], model[300];
    snprintf(model, sizeof model, "%s/nodes.tandem", folder);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].says[0] != '\0') continue;
        onnx_path(onnx, i);
        char *text = text_of_onnx(onnx);
        if (text == NULL) fprintf(stderr, "%s: %s\n", nodes[i].name, tdm_error_message());
        REQUIRE(text != NULL);
        put_read(onnx, text, model);
        CHECK_INT(predict(model, 0, x, y).out, nodes[i].width);
        for (int k = 0; k < 2 * nodes[i].width; k++) CHECK(fabsf(nodes[i].y[k] - y[k]) < 1e-6f);
        tdm_free(text);
    }
}

TEST(nodes_that_are_nearly_a_layer_are_refused) {
    char onnx[400];
    for (int i = 0; i < NODES; i++) {
        tdm_graph *graph;
        tdm_value output;
        if (nodes[i].says[0] == '\0') continue;
        onnx_path(onnx, i);
        const tdm_status status = tdm_graph_from_onnx(&graph, &output, NULL, onnx);
        if (status == TDM_OK) fprintf(stderr, "%s is taken\n", nodes[i].name);
        REQUIRE(status == TDM_E_UNSUPPORTED);
        CHECK_HAS(tdm_error_message(), nodes[i].says);
    }
}

TEST(a_file_without_parameters_is_no_model_to_train) {
    tdm_graph *graph;
    tdm_value output;
    REQUIRE_OK(tdm_graph_from_onnx(&graph, &output, NULL, TDM_TEST_DATA "/files/no_parameters.onnx"));
    CHECK_STATUS(tdm_graph_finish(graph, output), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "the model has no parameters to train");
    tdm_graph_free(graph);
}

TEST_MAIN(test_folder_make(folder); RUN(nodes_of_a_layer_give_what_onnxruntime_gives);
          RUN(nodes_that_are_nearly_a_layer_are_refused); RUN(a_file_without_parameters_is_no_model_to_train);
          test_folder_remove(folder);)
