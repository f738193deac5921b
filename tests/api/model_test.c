/* From a text in memory to a trained model, and models built by calls: what is wrong is told at the layer that has it.
 */
#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static const char yaml[] = "tandem: 1\n"
                           "name: memory\n"
                           "seed: 11\n"
                           "model:\n"
                           "  input: [2, 6, 6]\n"
                           "  layers:\n"
                           "    - conv2d: {out: 4, kernel: 3, padding: 1, name: conv}\n"
                           "    - relu\n"
                           "    - maxpool2d: 2\n"
                           "    - batchnorm2d: {name: bn}\n"
                           "    - flatten\n"
                           "    - dropout: 0.2\n"
                           "    - linear: {out: 3, name: fc}\n"
                           "data:\n"
                           "  workers: 1\n"
                           "  train: {format: synthetic, samples: 40}\n"
                           "  eval: {format: synthetic, samples: 10}\n"
                           "optimizer: {type: adam, lr: 0.01}\n"
                           "train: {steps: 3, batch: {per_device: 4}}\n"
                           "checkpoint: {resume: never}\n"
                           "run: {dir: null}\n";

TEST(text_in_memory_is_the_same_as_calls) {
    tdm_config *config = NULL;
    char *text = NULL, by_text[40], by_calls[40];
    REQUIRE_OK(tdm_config_parse(&config, NULL, yaml, strlen(yaml), "memory.yaml", NULL));
    CHECK(tdm_config_job(config) == NULL); /* not checked yet */
    CHECK_OK(tdm_config_override(config, "train.steps=6"));
    REQUIRE_OK(tdm_config_check(config));
    CHECK_INT(tdm_config_fault_count(config), 0);
    REQUIRE(tdm_config_job(config) != NULL && tdm_config_graph(config) != NULL);
    CHECK_OK(tdm_config_get(config, "train.steps", &text));
    CHECK_TEXT(text, "6");
    tdm_free(text);
    api_train(tdm_config_job(config), tdm_config_graph(config), by_text);
    tdm_job job;
    tdm_graph *graph = api_graph(NULL);
    api_job(&job);
    api_train(&job, graph, by_calls);
    CHECK_TEXT(by_text, by_calls);
    tdm_graph_free(graph);

    CHECK_OK(tdm_config_print(config, TDM_CONFIG_RESOLVED, &text));
    tdm_config_free(config);
    REQUIRE_OK(tdm_config_parse(&config, NULL, text, strlen(text), NULL, NULL)); /* what is printed is the same job */
    tdm_free(text);
    REQUIRE_OK(tdm_config_check(config));
    api_train(tdm_config_job(config), tdm_config_graph(config), by_calls);
    CHECK_TEXT(by_text, by_calls);
    tdm_config_free(config);
}

TEST(faults_of_a_text_are_all_told) {
    tdm_config *config = NULL;
    char *text = NULL;
    REQUIRE_OK(tdm_config_parse(&config, NULL, yaml, strlen(yaml), "memory.yaml", NULL));
    CHECK_OK(tdm_config_override(config, "optimizer.lr=fast"));
    CHECK_OK(tdm_config_override(config, "train.stepz=6"));
    CHECK_STATUS(tdm_config_check(config), TDM_E_CONFIG);
    CHECK_INT(tdm_config_fault_count(config), 2);
    CHECK_OK(tdm_config_faults(config, 0, &text));
    CHECK_HAS(text, "optimizer.lr");
    CHECK_HAS(text, "steps");
    tdm_free(text);
    tdm_config_free(config);
}

/* ---- graphs ---- */

#define AT(n) (&(const tdm_origin){"own.file", (n), 5})

TEST(faults_of_a_graph_name_layer_and_place) {
    tdm_graph *g = NULL;
    tdm_value x, v, y;
    int64_t dim[6];
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    REQUIRE_OK(tdm_graph_input(g, 3, (const int64_t[]){1, 8, 8}, &x));
    const tdm_attr conv[] = {{"out", "4", {0}}, {"kernel", "9", {0}}}, typo[] = {{"oot", "4", {0}}};
    const tdm_attr wrong[] = {{"out", "many", {"own.file", 9, 12}}}, good[] = {{"out", "2", {0}}};
    CHECK_STATUS(tdm_graph_add_at(g, AT(3), "conv2d", "first", &x, 1, conv, 2, &v), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "conv2d 'first'");
    CHECK_TEXT(tdm_error_last()->file, "own.file");
    CHECK(tdm_error_last()->line == 3 && tdm_error_last()->column == 5);
    CHECK_STATUS(tdm_graph_add_at(g, AT(4), "linear", "fc", &x, 1, good, 1, &v), TDM_E_CONFIG); /* three dimensions */
    CHECK_HAS(tdm_error_message(), "flatten");
    REQUIRE_OK(tdm_graph_add_at(g, AT(5), "flatten", NULL, &x, 1, NULL, 0, &v));
    CHECK(tdm_graph_shape(g, v, dim) == 1 && dim[0] == 64);
    CHECK_STATUS(tdm_graph_add_at(g, AT(6), "linear", "fc", &v, 1, typo, 1, &y), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "did you mean 'out'?");
    CHECK_STATUS(tdm_graph_add_at(g, AT(7), "linear", "fc", &v, 1, NULL, 0, &y), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "needs 'out'");
    CHECK_STATUS(tdm_graph_add_at(g, AT(8), "linear", "fc", &v, 1, wrong, 1, &y), TDM_E_CONFIG);
    CHECK(tdm_error_last()->line == 9 && tdm_error_last()->column == 12);
    REQUIRE_OK(tdm_graph_add_at(g, AT(10), "linear", "fc", &v, 1, good, 1, &y));
    CHECK_STATUS(tdm_graph_add_at(g, AT(11), "linear", "fc", &v, 1, good, 1, &y), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "two layers are called 'fc'");
    CHECK_STATUS(tdm_graph_finish(g, v), TDM_E_CONFIG); /* fc leads nowhere */
    CHECK_STATUS(tdm_graph_add_at(g, AT(12), "add", NULL, (tdm_value[]){v, y}, 2, NULL, 0, &v), TDM_E_CONFIG);
    CHECK_INT(tdm_graph_param_count(g), 130); /* nothing of what failed is left */
    CHECK_OK(tdm_graph_finish(g, y));
    tdm_graph_free(g);
}

TEST(graph_without_a_class_output_is_refused_at_opening) {
    tdm_graph *g = NULL;
    tdm_value v;
    tdm_run *run = NULL;
    tdm_job job;
    api_job(&job);
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    REQUIRE_OK(tdm_graph_input(g, 3, (const int64_t[]){1, 4, 4}, &v));
    REQUIRE_OK(tdm_graph_add_at(g, AT(2), "conv2d", "only", &v, 1,
                                (const tdm_attr[]){{"out", "2", {0}}, {"kernel", "3", {0}}}, 2, &v));
    REQUIRE_OK(tdm_graph_finish(g, v));
    CHECK_STATUS(tdm_run_open(&run, &job, g, NULL), TDM_E_CONFIG);
    CHECK_INT(tdm_error_last()->line, 2);
    tdm_graph_free(g);
}

TEST(one_graph_serves_many_runs) {
    tdm_graph *graph = api_graph(NULL);
    tdm_job a, b;
    char first[40], again[40], other[40];
    api_job(&a);
    api_job(&b);
    b.seed = 12;
    tdm_run *one = NULL, *two = NULL;
    api_train(&a, graph, first);
    REQUIRE_OK(tdm_run_open(&one, &a, graph, NULL));
    REQUIRE_OK(tdm_run_open(&two, &b, graph, NULL));
    for (int i = 0; i < 6; i++) { /* in turn */
        CHECK_OK(tdm_run_step(one, 1));
        CHECK_OK(tdm_run_step(two, 1));
    }
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(one, &state));
    memcpy(again, state.params_xxh3, 40);
    CHECK_OK(tdm_run_get_state(two, &state));
    memcpy(other, state.params_xxh3, 40);
    CHECK_TEXT(again, first);
    CHECK(strcmp(other, first) != 0);
    tdm_run_close(one);
    tdm_run_close(two);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(text_in_memory_is_the_same_as_calls); RUN(faults_of_a_text_are_all_told);
          RUN(faults_of_a_graph_name_layer_and_place); RUN(graph_without_a_class_output_is_refused_at_opening);
          RUN(one_graph_serves_many_runs);)
