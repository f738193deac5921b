/* Parameters that are not trained: frozen ones, and those of layers that the output does not depend on. */
#include <string.h>

#include "tests/plan/plan_support.h"

/* Two blocks and a head. */
#define TUNED                                                                                    \
    "x 3x8x8; c conv2d x out=4 kernel=3; b batchnorm2d c; r relu b; d conv2d r out=4 kernel=3; " \
    "e batchnorm2d d; f flatten e; l linear f out=2"

static const plan_case frozen[] = {
    {.title = "nothing in front of the first trained layer has a backward",
     .graph = TUNED,
     .freeze = {.count = 2, .item = {"c.*", "b.*"}},
     .want = "linear dv7 -> dv6 d:l.weight d:l.bias\n"
             "flatten dv6 -> dv5@\n"
             "batchnorm2d dv5 -> dv4 d:e.weight d:e.bias\n"
             "conv2d dv4 -> d:d.weight d:d.bias"},
    {.title = "only the head is trained",
     .graph = TUNED,
     .freeze = {.count = 4, .item = {"c*", "b*", "d*", "e*"}},
     .want = "linear dv7 -> d:l.weight d:l.bias"},
    {.title = "frozen layers behind a trained one pass gradients on",
     .graph = TUNED,
     .freeze = {.count = 3, .item = {"d.*", "e.*", "*.bias"}},
     .want = "linear dv7 -> dv6 d:l.weight\n"
             "flatten dv6 -> dv5@\n"
             "batchnorm2d dv5 -> dv4\n"
             "conv2d dv4 -> dv3\n"
             "relu dv3 -> dv2@\n"
             "batchnorm2d dv2 -> dv1 d:b.weight\n"
             "conv2d dv1 -> d:c.weight"},
    {.title = "a frozen bias is summed by nobody",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=2; d conv2d p out=2 kernel=1",
     .offers = "maxpool2d: sum",
     .freeze = {.count = 1, .item = {"c.bias"}},
     .want = "conv2d dv3 -> dv2 d:d.weight d:d.bias\n"
             "maxpool2d dv2 -> dv1\n"
             "conv2d dv1 -> d:c.weight"},
    {.title = "a frozen norm that adds a trained branch passes gradients on to it alone",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=1; f conv2d x out=8 kernel=1; b batchnorm2d f; a add b c; r relu a",
     .offers = "batchnorm2d: add relu",
     .freeze = {.count = 2, .item = {"f.*", "b.*"}},
     .want = "batchnorm2d dv3 -> dv1@\n"
             "conv2d dv1 -> d:c.weight d:c.bias"},
};

TEST(gradients_of_frozen_layers) {
    plan_check_cases(frozen, sizeof frozen / sizeof *frozen, "backward", plan_print_gradients);
}

/* A kernel writes the gradient of a frozen weight with that of the bias: somewhere, in the steps that do so. */
static const plan_case unwanted[] = {
    {.title = "memory in two steps",
     .graph = "x 8; l linear x out=4; m linear l out=8; n linear m out=2",
     .freeze = {.count = 3, .item = {"l.weight", "m.weight", "n.weight"}},
     .want = "v0 0-6, v1 0-5, v2 1-4, v3 2-3, dv3 3-4, dv2 4-5, dv1 5-6, unwanted grad 4-6"},
    {.title = "none where a layer is frozen whole",
     .graph = "x 8; l linear x out=4; m linear l out=8",
     .freeze = {.count = 1, .item = {"l.*"}},
     .want = "v0 0-0, v1 0-3, v2 1-2, dv2 2-3"},
};

TEST(gradients_that_nobody_wants) {
    plan_check_cases(unwanted, sizeof unwanted / sizeof *unwanted, "places", plan_print_lives);
}

/* Memory and steps of a network of which a part is frozen. */
TEST(frozen_parts_cost_nothing) {
    tdm_graph *graph = plan_graph(TUNED);
    REQUIRE(graph != NULL);
    const tdm_texts half = {.count = 2, .item = {"c.*", "b.*"}}, all = {.count = 1, .item = {"*"}};
    tdm_plan_options options = plan_options(plan_kernels(""));
    tdm_plan *whole = NULL, *part = NULL, *none = NULL;
    CHECK_OK(tdm__plan_build(&whole, tdm_host_default(), graph, &options));
    options.freeze = &half;
    CHECK_OK(tdm__plan_build(&part, tdm_host_default(), graph, &options));
    CHECK_INT(whole->trained_floats, whole->param_floats);
    CHECK_INT(part->param_floats, whole->param_floats);
    CHECK_INT(part->trained_floats, whole->param_floats - 112 - 16 - 16 - 16);
    CHECK_INT(part->trained_count, whole->param_count - 4);
    CHECK_INT(part->step_count, whole->step_count - 3); /* backward of conv2d, batchnorm2d and relu */
    CHECK(part->activation_bytes < whole->activation_bytes);
    CHECK_INT(part->buckets[part->bucket_count - 1].offset + part->buckets[part->bucket_count - 1].count,
              part->trained_floats);
    CHECK(part->nodes[1].evaluates && !part->nodes[4].evaluates);
    options.freeze = &all;
    CHECK_INT(tdm__plan_build(&none, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(),
               "model.freeze: every parameter is frozen, so there is nothing to train; leave out a "
               "pattern");
    tdm__plan_free(whole);
    tdm__plan_free(part);
    tdm_graph_free(graph);
}

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

TEST_MAIN(RUN(gradients_of_frozen_layers); RUN(gradients_that_nobody_wants); RUN(frozen_parts_cost_nothing);
          RUN(unused_layers_are_told_or_left_alone);)
