/* Where a replica of several stages is cut: by the layers' work, as layers say, and what is copied across. */
#include <math.h>

#include "tests/plan/plan_support.h"
#include "tests/plan/random_graph.h"

enum { GRAPHS = 60, MOST_NODES = 128 };

/* ---- by the layers' work ---- */

static double cost_of(const tdm_graph *graph, const int *stage_of, int stage) {
    double sum = 0, flops[MOST_NODES];
    CHECK_OK(tdm__graph_step_flops(graph, NULL, flops));
    for (size_t i = 0; i < graph->node_count; i++)
        if (stage_of[i] == stage) sum += flops[i];
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
    int stage_of[MOST_NODES], tried[MOST_NODES];
    REQUIRE(graph->node_count <= MOST_NODES);
    const double least = least_most(graph, stages, 0, 0, tried, false);
    double flops[MOST_NODES];
    CHECK_OK(tdm__graph_step_flops(graph, NULL, flops));
    const tdm_status status = tdm__graph_stages(graph, flops, stages, stage_of);
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

/* The first layer's input needs no gradient, nor does that of the first layer that is trained. */
TEST(a_step_costs_forward_and_the_gradients_that_are_needed) {
    tdm_graph *graph = plan_graph("x 8; a linear x out=8; b linear a out=8; c linear b out=8");
    REQUIRE(graph != NULL && graph->param_count == 6);
    const double forward = graph->nodes[0].flops;
    const bool frozen[6] = {true, true, true, true};
    double flops[3];
    CHECK(forward > 0);
    CHECK_OK(tdm__graph_step_flops(graph, NULL, flops));
    CHECK(flops[0] == 2 * forward && flops[1] == 3 * forward && flops[2] == 3 * forward);
    CHECK_OK(tdm__graph_step_flops(graph, frozen, flops));
    CHECK(flops[0] == forward && flops[1] == forward && flops[2] == 2 * forward);
    tdm_graph_free(graph);
}

/* Its four linears have 4, 12, 12 and 6 units of work in a step, of forward alone 2, 4, 4 and 2. */
TEST(stages_are_cut_by_the_work_of_a_step) {
    tdm_graph *graph = plan_graph("x 16; a linear x out=32; b linear a out=32; c linear b out=32; d linear c out=16");
    int stage_of[4];
    double flops[4];
    REQUIRE(graph != NULL);
    CHECK_OK(tdm__graph_step_flops(graph, NULL, flops));
    CHECK_OK(tdm__graph_stages(graph, flops, 3, stage_of));
    CHECK(stage_of[0] == 0 && stage_of[1] == 0 && stage_of[2] == 1 && stage_of[3] == 2);
    tdm_graph_free(graph);
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

TEST_MAIN(RUN(the_most_expensive_stage_is_as_cheap_as_can_be);
          RUN(a_step_costs_forward_and_the_gradients_that_are_needed); RUN(stages_are_cut_by_the_work_of_a_step);
          RUN(a_value_goes_from_stage_to_stage); RUN(the_batch_too); RUN(kernels_that_run_together_stay_together);)
