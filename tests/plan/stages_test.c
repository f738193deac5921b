/* Where a replica of several stages is cut: by the layers' work, as layers say, and what is copied across. */
#include <math.h>

#include "tests/plan/plan_support.h"
#include "tests/plan/random_graph.h"

enum { GRAPHS = 60 };

/* ---- by the layers' work ---- */

static double cost_of(const tdm_graph *graph, const int *stage_of, int stage) {
    double sum = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        if (stage_of[i] == stage) sum += graph->nodes[i].flops;
    return sum;
}

static double most_of(const tdm_graph *graph, const int *stage_of, int stages) {
    double most = 0;
    for (int k = 0; k < stages; k++) most = fmax(most, cost_of(graph, stage_of, k));
    return most;
}

/* The least that the most expensive stage can cost: every way to cut in front of layers with parameters is tried. */
static double least_most(const tdm_graph *graph, int stages, size_t node, int stage, int *stage_of, bool has_params) {
    double least = INFINITY;
    if (node == graph->node_count) return stage + 1 == stages ? most_of(graph, stage_of, stages) : INFINITY;
    const bool params = graph->nodes[node].param_count > 0;
    stage_of[node] = stage;
    least = least_most(graph, stages, node + 1, stage, stage_of, has_params || params);
    if (!params || !has_params || stage + 1 == stages) return least;
    stage_of[node] = stage + 1;
    return fmin(least, least_most(graph, stages, node + 1, stage + 1, stage_of, true));
}

static void check_balance(const tdm_graph *graph, int stages) {
    int stage_of[128], tried[128];
    REQUIRE(graph->node_count <= 128);
    const double least = least_most(graph, stages, 0, 0, tried, false);
    const tdm_status status = tdm__graph_stages(graph, stages, stage_of);
    CHECK_STATUS(status, isfinite(least) ? TDM_OK : TDM_E_CONFIG);
    if (status != TDM_OK) return;
    CHECK(most_of(graph, stage_of, stages) == least);
    for (size_t i = 0; i < graph->node_count; i++) {
        const int before = i > 0 ? stage_of[i - 1] : 0;
        CHECK(stage_of[i] == before || (stage_of[i] == before + 1 && graph->nodes[i].param_count > 0));
    }
    CHECK_INT(stage_of[graph->node_count - 1], stages - 1);
}

TEST(the_most_expensive_stage_is_as_cheap_as_can_be) {
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        uint64_t state = seed;
        tdm_graph *graph = random_graph(RANDOM_ALL, 2 + draw(&state, 16), &state);
        REQUIRE(graph != NULL);
        for (int stages = 2; stages <= 4; stages++) check_balance(graph, stages);
        tdm_graph_free(graph);
    }
}

/* ---- what is copied ---- */

static void print_after_stages(const char *graph_text, const char *offers, int stages, tdm_text *out) {
    tdm_graph *graph = plan_graph(graph_text);
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels(offers));
    tdm_plan *plan = NULL;
    options.stages = stages;
    options.after = "stages";
    CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    if (plan != NULL) plan_print_nodes(plan, out);
    tdm__plan_free(plan);
    tdm_graph_free(graph);
}

static void check_nodes(const char *graph, const char *offers, int stages, const char *want) {
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    print_after_stages(graph, offers, stages, &text);
    CHECK_TEXT(text.data, want);
    tdm__text_deinit(&text);
}

TEST(a_value_goes_from_stage_to_stage) {
    check_nodes("x 8; a linear x out=8; b linear a out=8; c linear b out=8; s add a c", "", 3,
                "linear(wb) v0 -> v1\n"
                "transfer v1 -> v1@1\n"
                "linear(wb) v1@1 -> v2\n"
                "transfer v2 -> v2@2\n"
                "transfer v1@1 -> v1@2\n"
                "linear(wb) v2@2 -> v3\n"
                "add v1@2 v3 -> v4");
}

TEST(the_batch_too) {
    check_nodes("x 8; a linear x out=8; b linear x out=8; s add a b", "", 2,
                "linear(wb) v0 -> v1\n"
                "transfer v0 -> v0@1\n"
                "transfer v1 -> v1@1\n"
                "linear(wb) v0@1 -> v2\n"
                "add v1@1 v2 -> v3");
}

/* The kernel of the batch norm sums the gradient of the convolution's bias: it runs where the convolution does. */
TEST(kernels_that_run_together_stay_together) {
    check_nodes("x 8x6x6; c conv2d x out=8 kernel=3; b batchnorm2d c; d conv2d b out=200 kernel=3", "batchnorm2d: sum",
                2,
                "conv2d(wb) v0 -> v1\n"
                "batchnorm2d+sum(wb) v1 -> v2; sums c.bias\n"
                "transfer v2 -> v2@1\n"
                "conv2d(wb) v2@1 -> v3");
    tdm_graph *graph = plan_graph("x 8x6x6; c conv2d x out=8 kernel=3; b batchnorm2d c; r relu b");
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels("batchnorm2d: sum"));
    tdm_plan *plan = NULL;
    options.stages = 2;
    CHECK_STATUS(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "the graph cannot be cut in front of batchnorm2d 'b'");
    CHECK_HAS(tdm_error_message(), "leaves stage 1 without parameters");
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(the_most_expensive_stage_is_as_cheap_as_can_be); RUN(a_value_goes_from_stage_to_stage);
          RUN(the_batch_too); RUN(kernels_that_run_together_stay_together);)
