/* Plans of replicas that exchange statistics: the steps that take them, and their memory. */
#include "tests/plan/plan_support.h"

#define BLOCK                                                                   \
    "x 3x8x8; c conv2d x out=4 kernel=3 bias=false; b batchnorm2d c; r relu b;" \
    "d conv2d r out=2 kernel=1 bias=false; p avgpool2d d kernel=2"

static const plan_case steps[] = {
    {.title = "replicas exchange statistics in front of forward and of backward",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again statistics",
     .replicas = 3,
     .want =
         "F c S b F b F d F p L B p A b B d S b B b B c R 0 | 0: d.weight b.weight b.bias c.weight (0+160) after 11"},
    {.title = "predictions exchange nothing",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu statistics",
     .replicas = 3,
     .predicts = true,
     .want = "F c F b F d F p L"},
    {.title = "nor does a layer that evaluates because it is frozen",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu statistics",
     .replicas = 3,
     .freeze = {.count = 1, .item = {"b.*"}},
     .want = "F c F b F d F p L B p B d B b B c R 0 | 0: d.weight c.weight (0+128) after 8"},
};

TEST(steps_that_take_statistics) {
    plan_check_cases(steps, sizeof steps / sizeof *steps, "steps", plan_print_steps);
}

/* Of the largest block, for all replicas, twice: steps in a row take turns. */
TEST(statistics_have_memory) {
    tdm_graph *graph =
        plan_graph("x 3x8x8; a batchnorm2d x; c conv2d a out=40 kernel=1; b batchnorm2d c; d batchnorm2d b");
    tdm_plan_options options = plan_options(plan_kernels("batchnorm2d: statistics"));
    tdm_plan *plan = NULL;
    REQUIRE(graph != NULL);
    options.replicas = 3;
    CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    const size_t half = 1984; /* 3 * (1 + 2 * 40) doubles are 1944 bytes, in cache lines */
    CHECK_INT(plan->statistics_bytes, 2 * half);
    CHECK_INT(plan->nodes[0].statistics_bytes, 7 * sizeof(double));
    CHECK_INT(plan->nodes[2].statistics_bytes, 81 * sizeof(double));
    const size_t forward[] = {0, half, 0}, backward[] = {half, 0, half};
    const int node[] = {0, 2, 3};
    for (int i = 0; i < 3; i++) {
        CHECK_INT(plan->nodes[node[i]].statistics_forward, forward[i]);
        CHECK_INT(plan->nodes[node[i]].statistics_backward, backward[i]);
        CHECK_INT(plan->nodes[node[i]].desc.replicas, 3);
    }
    tdm_hash128 three = plan->hash;
    tdm__plan_free(plan);
    options.replicas = 2;
    CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    CHECK(plan->hash.low != three.low);
    tdm__plan_free(plan);
    options.kernels = plan_kernels("");
    CHECK_INT(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_UNSUPPORTED);
    CHECK(strstr(tdm_error_message(), "statistics") != NULL);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(steps_that_take_statistics); RUN(statistics_have_memory);)
