/* Layers that the output does not depend on: a fault, or parameters that are not trained. */
#include <string.h>

#include "tests/plan/plan_support.h"

TEST(unused_layers_are_told_or_left_alone) {
    tdm_graph *graph = plan_graph("x 8x4x4; c conv2d x out=4 kernel=1; s conv2d c out=3 kernel=1; b batchnorm2d s;"
                                  "r relu b; f flatten c; l linear f out=2");
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels(""));
    tdm_plan *plan = NULL;
    CHECK_INT(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(),
               "the model's output does not depend on conv2d 's': no gradient reaches s.weight, s.bias, b.weight, "
               "b.bias; use its output, remove it, or set parallel.ddp.find_unused_parameters");
    options.allows_unused = true;
    REQUIRE_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    CHECK_INT(plan->param_count, 8);
    CHECK_INT(plan->trained_count, 4);
    for (int i = plan->trained_count; i < plan->param_count; i++)
        CHECK(strncmp(plan->params[i].name, "s.", 2) == 0 || strncmp(plan->params[i].name, "b.", 2) == 0);
    CHECK(!plan->nodes[2].evaluates); /* a frozen norm would: this one goes on with its statistics, as in PyTorch */
    CHECK_INT(plan->buckets[0].count, plan->trained_floats);
    tdm__plan_free(plan);
    const tdm_texts rest = {.count = 2, .item = {"c.*", "l.*"}};
    options.freeze = &rest;
    CHECK_INT(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "nothing to train");
    tdm_graph_free(graph);
    graph = plan_graph("x 8; l linear x out=4; r relu l; m linear l out=2");
    options.freeze = NULL;
    options.allows_unused = false;
    CHECK_INT(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(), "the model's output does not depend on relu 'r'; remove it");
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(unused_layers_are_told_or_left_alone);)
