/* ONNX files in a program: their graph, its weights, training on; and the calls with arguments that no caller should pass.
 */
#include <stdlib.h>
#include <string.h>

#include <tandem/checkpoint.h>
#include <tandem/tandem.h>

#include "tests/api/misuse.h"

static const char path[] = TDM_TEST_DATA "/../onnx/files/activations_ts.onnx";

TEST(calls_that_are_refused) {
    tdm_graph *g = NULL;
    tdm_value v;
    char *made = NULL;
    MISUSE(tdm_graph_from_onnx(NULL, &v, NULL, "a"));
    MISUSE(tdm_graph_from_onnx(&g, NULL, NULL, "a"));
    MISUSE(tdm_graph_from_onnx(&g, &v, NULL, NULL));
    MISUSE(tdm_graph_from_onnx_memory(NULL, &v, NULL, "a", 1));
    MISUSE(tdm_graph_from_onnx_memory(&g, NULL, NULL, "a", 1));
    MISUSE(tdm_graph_from_onnx_memory(&g, &v, NULL, NULL, 1));
    REFUSED(tdm_graph_from_onnx(&g, &v, NULL, "no/such.onnx"), TDM_E_CHECKPOINT);
    REFUSED(tdm_graph_from_onnx_memory(&g, &v, NULL, "a", 0), TDM_E_CHECKPOINT);
    MISUSE(tdm_config_starter_onnx(NULL, NULL, NULL, NULL, NULL, TDM_ENGLISH, &made));
    MISUSE(tdm_config_starter_onnx(NULL, "a", NULL, NULL, NULL, TDM_ENGLISH, NULL));
    MISUSE(tdm_config_starter_onnx(NULL, "a", "images", NULL, NULL, TDM_ENGLISH, &made));
    MISUSE(tdm_config_starter_onnx(NULL, "a", "cifar", "b", NULL, TDM_ENGLISH, &made));
    CHECK(g == NULL && made == NULL);
}

static char *bytes_of(const char *name, size_t *count) {
    char *bytes = malloc(1 << 20);
    FILE *file = fopen(name, "rb");
    if (bytes == NULL || file == NULL) abort();
    *count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void fill_job(tdm_job *job) {
    REQUIRE_OK(tdm_job_init(job));
    job->data.train.format = TDM_DATA_SYNTHETIC;
    job->data.train.samples = 16;
    job->data.train.classes = 6;
    job->loss.type = TDM_NLL;
    job->train.steps = 2;
    job->train.per_device = 8;
}

typedef struct hashes {
    char before[40], after[40];
} hashes;

/* The weights come from the path at the opening, from the memory, or, without both, by tdm_run_load. */
static hashes train(const tdm_graph *graph, const char *weights, const void *memory, size_t count) {
    hashes out = {"", ""};
    tdm_job job;
    tdm_run *run;
    tdm_run_state state = {.size = sizeof state};
    fill_job(&job);
    job.weights = weights;
    CHECK_OK(tdm_run_open(&run, &job, graph, NULL));
    if (memory != NULL) CHECK_OK(tdm_run_load_memory(run, memory, count));
    if (memory == NULL && weights == NULL) CHECK_OK(tdm_run_load(run, path));
    CHECK_OK(tdm_run_get_state(run, &state));
    strcpy(out.before, state.params_xxh3);
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_get_state(run, &state));
    strcpy(out.after, state.params_xxh3);
    tdm_run_close(run);
    return out;
}

TEST(a_graph_and_its_weights_train_on) {
    size_t count;
    tdm_graph *graph, *same;
    tdm_value output;
    char *bytes = bytes_of(path, &count);
    REQUIRE_OK(tdm_graph_from_onnx(&graph, &output, NULL, path));
    REQUIRE_OK(tdm_graph_finish(graph, output));
    REQUIRE_OK(tdm_graph_from_onnx_memory(&same, &output, NULL, bytes, count));
    REQUIRE_OK(tdm_graph_finish(same, output));
    CHECK_INT(tdm_graph_output_width(graph), 6);
    CHECK_INT(tdm_graph_param_count(graph), 9 * (6 * 6 + 6));
    const hashes of_path = train(graph, path, NULL, 0), of_memory = train(same, NULL, bytes, count),
                 loaded = train(same, NULL, NULL, 0);
    CHECK_TEXT(of_memory.before, of_path.before);
    CHECK_TEXT(of_memory.after, of_path.after);
    CHECK_TEXT(loaded.after, of_path.after);
    CHECK(strcmp(of_path.before, of_path.after) != 0);
    tdm_graph_free(graph);
    tdm_graph_free(same);
    free(bytes);
}

/* Layers may be added before it is finished. */
TEST(a_graph_from_a_file_grows) {
    tdm_graph *graph;
    tdm_value output;
    REQUIRE_OK(tdm_graph_from_onnx(&graph, &output, NULL, path));
    REQUIRE_OK(tdm_graph_add(graph, "linear", "more", &output, 1, (const tdm_attr[]){{"out", "2", {0}}}, 1, &output));
    REQUIRE_OK(tdm_graph_finish(graph, output));
    CHECK_INT(tdm_graph_output_width(graph), 2);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(calls_that_are_refused); RUN(a_graph_and_its_weights_train_on); RUN(a_graph_from_a_file_grows);)
