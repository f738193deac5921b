/* The passes but for the rewrites: layouts, what lies in place, gradients, the order of steps, lives, buckets. */
#include <tandem/job.h>

#include "ops/ops.h"
#include "runtime/plan/widened.h"
#include "tests/plan/plan_support.h"

#define CHECK_CASES(table, after, print) plan_check_cases(table, sizeof(table) / sizeof((table)[0]), after, print)

/* ---- layout ---- */

static const plan_case layouts[] = {
    {.title = "lowering knows no layouts",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c; f flatten r; l linear f out=2",
     .offers = "conv2d: c8 relu",
     .after = "lower",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "flatten v2 -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "each of several inputs is taken out of the batch",
     .graph = "x 8x6x6 y 3; c conv2d x out=8 kernel=3; f flatten c; a concat f y; l linear a out=2",
     .offers = "conv2d: c8",
     .want = "slice batch -> v0\n"
             "slice batch -> v1\n"
             "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v2 c8\n"
             "reorder v2 -> v2'\n"
             "flatten v2' -> v3\n"
             "concat v3 v1 -> v4\n"
             "linear(wb) v4 -> v5"},
    {.title = "a reorder in front of who wants another layout, and at the output",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c",
     .offers = "conv2d: c8; relu: keep",
     .want = "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v1 c8\n"
             "relu v1 -> v2 c8\n"
             "reorder v2 -> v2'"},
    {.title = "back to PLAIN for one that wants it",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; d dropout c; e conv2d d out=8 kernel=3",
     .offers = "conv2d: c8",
     .want = "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v1 c8\n"
             "reorder v1 -> v1'\n"
             "dropout v1' -> v2\n"
             "reorder v2 -> v2' c8\n"
             "conv2d(wb) v2' -> v3 c8\n"
             "reorder v3 -> v3'"},
    {.title = "one copy for two readers, in front of the first",
     .graph = "x 8x6x6; p maxpool2d x kernel=1; q avgpool2d p kernel=1; c conv2d p out=8 kernel=1; d conv2d p out=8 "
              "kernel=1; a add c d q",
     .offers = "conv2d: c8; add: c8",
     .want = "maxpool2d v0 -> v1\n"
             "avgpool2d v1 -> v2\n"
             "reorder v1 -> v1' c8\n"
             "conv2d(wb) v1' -> v3 c8\n"
             "conv2d(wb) v1' -> v4 c8\n"
             "reorder v2 -> v2' c8\n"
             "add v3 v4 v2' -> v5 c8\n"
             "reorder v5 -> v5'"},
    {.title = "two layouts, two copies",
     .graph = "x 8x6x6; p dropout x; c conv2d p out=8 kernel=1; q maxpool2d p kernel=1; a add c q",
     .offers = "conv2d: c8; maxpool2d: nhwc; add: nhwc",
     .want = "dropout v0 -> v1\n"
             "reorder v1 -> v1' c8\n"
             "conv2d(wb) v1' -> v2 c8\n"
             "reorder v1 -> v1' nhwc\n"
             "maxpool2d v1' -> v3 nhwc\n"
             "reorder v2 -> v2' nhwc\n"
             "add v2' v3 -> v4 nhwc\n"
             "reorder v4 -> v4'"},
    {.title = "a device that ingests brings the batch as it is wanted",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; l linear f out=2",
     .offers = "conv2d: c8",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 c8\n"
             "reorder v1 -> v1'\n"
             "flatten v1' -> v2\n"
             "linear(wb) v2 -> v3"},
    {.title = "but not to two layers",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=1; d conv2d x out=8 kernel=1; a add c d",
     .offers = "conv2d: c8",
     .ingests = true,
     .want = "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v1 c8\n"
             "conv2d(wb) v0' -> v2 c8\n"
             "reorder v1 -> v1'\n"
             "reorder v2 -> v2'\n"
             "add v1' v2' -> v3"},
    {.title = "channels last go through a flatten into a linear, whose weights will lie as they do",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; l linear f out=2",
     .offers = "conv2d: nhwc",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 nhwc\n"
             "flatten v1 -> v2\n"
             "linear(wb) v2 -> v3"},
    {.title = "not on a device that does not ingest",
     .graph = "x 8x6x6; p dropout x; c conv2d p out=8 kernel=3; f flatten c; l linear f out=2",
     .offers = "conv2d: nhwc; dropout: nhwc",
     .want = "reorder v0 -> v0' nhwc\n"
             "dropout v0' -> v1 nhwc\n"
             "conv2d(wb) v1 -> v2 nhwc\n"
             "reorder v2 -> v2'\n"
             "flatten v2' -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "not into anything else than what weighs features",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; d dropout f; l linear d out=2",
     .offers = "conv2d: nhwc",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 nhwc\n"
             "reorder v1 -> v1'\n"
             "flatten v1' -> v2\n"
             "dropout v2 -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "not to the output",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c",
     .offers = "conv2d: nhwc",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 nhwc\n"
             "reorder v1 -> v1'\n"
             "flatten v1' -> v2"},
    {.title = "not to two that weigh features",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; l linear f out=2; m linear f out=2; a add l m",
     .offers = "conv2d: nhwc",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 nhwc\n"
             "reorder v1 -> v1'\n"
             "flatten v1' -> v2\n"
             "linear(wb) v2 -> v3\n"
             "linear(wb) v2 -> v4\n"
             "add v3 v4 -> v5"},
    {.title = "not channels in blocks",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; l linear f out=2",
     .offers = "conv2d: c8",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 c8\n"
             "reorder v1 -> v1'\n"
             "flatten v1' -> v2\n"
             "linear(wb) v2 -> v3"},
};

TEST(layouts) {
    CHECK_CASES(layouts, "layout", plan_print_nodes);
}

/* ---- in place ---- */

static const plan_case in_place[] = {
    {.title = "a relu lies on a sum",
     .graph = "x 8; l linear x out=4; m linear x out=4; a add l m; r relu a; n linear r out=2",
     .want = "linear(wb) v0 -> v1\n"
             "linear(wb) v0 -> v2\n"
             "add v1 v2 -> v3 in place\n"
             "relu v3 -> v4 in place\n"
             "linear(wb) v4 -> v5"},
    {.title = "through an alias",
     .graph = "x 4x6x6; c conv2d x out=4 kernel=3; f flatten c; d dropout f; l linear d out=2",
     .want = "conv2d(wb) v0 -> v1\n"
             "flatten v1 -> v2\n"
             "dropout v2 -> v3 in place\n"
             "linear(wb) v3 -> v4"},
    {.title = "not through an alias of what another reads",
     .graph = "x 8; l linear x out=4; f flatten l; r relu f; a add l r",
     .want = "linear(wb) v0 -> v1\n"
             "flatten v1 -> v2\n"
             "relu v2 -> v3\n"
             "add v1 v3 -> v4"},
    {.title = "an add lies on its first input, not on another",
     .graph = "x 8; l linear x out=4; m linear x out=4; a add l m; b add l a",
     .want = "linear(wb) v0 -> v1\n"
             "linear(wb) v0 -> v2\n"
             "add v1 v2 -> v3\n"
             "add v1 v3 -> v4"},
    {.title = "not where two read",
     .graph = "x 8; l linear x out=4; d dropout l; r relu l; a add d r",
     .want = "linear(wb) v0 -> v1\n"
             "dropout v1 -> v2\n"
             "relu v1 -> v3\n"
             "add v2 v3 -> v4 in place"},
    {.title = "not on what its maker's backward reads",
     .graph = "x 8; l linear x out=4; r relu l; d dropout r; m linear d out=2",
     .want = "linear(wb) v0 -> v1\n"
             "relu v1 -> v2 in place\n"
             "dropout v2 -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "nor on what a kernel's backward reads since it does the relu",
     .graph = "x 8; l linear x out=4; r relu l; d dropout r; m linear d out=2",
     .offers = "linear: relu",
     .want = "linear+relu(wb) v0 -> v1\n"
             "dropout v1 -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "not on the batch",
     .graph = "x 8; d dropout x; l linear d out=2",
     .want = "dropout v0 -> v1\n"
             "linear(wb) v1 -> v2"},
    {.title = "not on the batch under another shape",
     .graph = "x 2x2x2; f flatten x; d dropout f; l linear d out=2",
     .want = "flatten v0 -> v1\n"
             "dropout v1 -> v2\n"
             "linear(wb) v2 -> v3"},
    {.title = "an op that may not",
     .graph = "x 4x6x6; c conv2d x out=4 kernel=3; p maxpool2d c kernel=1",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
};

TEST(in_place) {
    CHECK_CASES(in_place, "values", plan_print_nodes);
}

/* ---- gradients ---- */

static const plan_case gradients[] = {
    {.title = "a chain; the first layer sends nothing back",
     .graph = "x 8; l linear x out=4; r relu l; m linear r out=2",
     .want = "linear dv3 -> dv2 d:m.weight d:m.bias\n"
             "relu dv2 -> dv1@\n"
             "linear dv1 -> d:l.weight d:l.bias"},
    {.title = "layers in front of all parameters have no backward",
     .graph = "x 8; d dropout x; l linear d out=4",
     .want = "linear dv2 -> d:l.weight d:l.bias"},
    {.title = "two readers: the later writes, the earlier adds",
     .graph = "x 8; l linear x out=4; m linear l out=4; n linear l out=4; a add m n",
     .want = "add dv4 -> dv2 dv3\n"
             "linear dv3 -> dv1 d:n.weight d:n.bias\n"
             "linear dv2 -> dv1+ d:m.weight d:m.bias\n"
             "linear dv1 -> d:l.weight d:l.bias"},
    {.title = "three readers",
     .graph = "x 8; l linear x out=4; m linear l out=4; n linear m out=4; a add n m l; b add a l",
     .want = "add dv5 -> dv4 dv1\n"
             "add dv4 -> dv3 dv2 dv1+\n"
             "linear dv3 -> dv2+ d:n.weight d:n.bias\n"
             "linear dv2 -> dv1+ d:m.weight d:m.bias\n"
             "linear dv1 -> d:l.weight d:l.bias"},
    {.title = "one layer that reads twice",
     .graph = "x 8; l linear x out=4; a add l l",
     .want = "add dv2 -> dv1 dv1+\n"
             "linear dv1 -> d:l.weight d:l.bias"},
    {.title = "an alias passes on, and adds without a temp",
     .graph = "x 8; l linear x out=4; f flatten l; g flatten l; a add f g",
     .want = "add dv4 -> dv2 dv3\n"
             "flatten dv3 -> dv1@\n"
             "flatten dv2 -> dv1&\n"
             "linear dv1 -> d:l.weight d:l.bias"},
    {.title = "what an epilogue adds gets what comes back in its place",
     .graph = "x 8x6x6; s conv2d x out=8 kernel=1; c conv2d s out=8 kernel=1; b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = "batchnorm2d dv3 -> dv2 dv1@ d:b.weight d:b.bias\n"
             "conv2d dv2 -> dv1+ d:c.weight d:c.bias\n"
             "conv2d dv1 -> d:s.weight d:s.bias"},
    {.title = "or adds it where another has written",
     .graph = "x 8x6x6; s conv2d x out=8 kernel=1; c conv2d s out=8 kernel=1; b batchnorm2d c; a add b s; r relu a; "
              "e add r s",
     .offers = "batchnorm2d: add relu",
     .want = "add dv6 -> dv3 dv1\n"
             "batchnorm2d dv3 -> dv2 dv1+ d:b.weight d:b.bias\n"
             "conv2d dv2 -> dv1+ d:c.weight d:c.bias\n"
             "conv2d dv1 -> d:s.weight d:s.bias"},
    {.title = "or drops it where nothing in front has parameters",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=1; b batchnorm2d c; a add b x; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = "batchnorm2d dv2 -> dv1 d:b.weight d:b.bias\n"
             "conv2d dv1 -> d:c.weight d:c.bias"},
    {.title = "a bias whose gradient another node sums",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=2; d conv2d p out=2 kernel=1",
     .offers = "maxpool2d: sum",
     .want = "conv2d dv3 -> dv2 d:d.weight d:d.bias\n"
             "maxpool2d dv2 -> dv1 d:c.bias\n"
             "conv2d dv1 -> d:c.weight"},
    {.title = "a copy in another layout sends back in that layout",
     .graph = "x 8x6x6; p conv2d x out=8 kernel=1; q maxpool2d p kernel=1; r maxpool2d p kernel=1; a add q r",
     .offers = "conv2d: c8",
     .want = "add dv4 -> dv2 dv3\n"
             "maxpool2d dv3 -> dv1'\n"
             "maxpool2d dv2 -> dv1'+\n"
             "reorder dv1' -> dv1\n"
             "conv2d dv1 -> d:p.weight d:p.bias"},
};

TEST(gradients) {
    CHECK_CASES(gradients, "backward", plan_print_gradients);
}

TEST(groups_are_runs) {
    tdm_graph *graph = plan_graph("x 8; c linear x out=4; e linear c out=4; l linear e out=2");
    REQUIRE(graph != NULL);
    const tdm_param_groups groups = {
        .count = 2,
        .item = {{.params = {.count = 1, .item = {"*.bias"}}}, {.params = {.count = 2, .item = {"l.*", "e.*"}}}}};
    tdm_plan_options options = plan_options(plan_kernels(""));
    tdm_plan *plan = NULL;
    char runs[64] = "";
    options.groups = &groups;
    CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
    for (int i = 0; i < plan->run_count; i++) {
        snprintf(runs + strlen(runs), sizeof(runs) - strlen(runs), "%d", plan->runs[i].group);
        CHECK_INT(plan->runs[i].offset, i > 0 ? plan->runs[i - 1].offset + plan->runs[i - 1].count : 0);
    }
    CHECK_TEXT(runs, "212101"); /* the last layer first, its weight before its bias */
    tdm__plan_free(plan);
    const tdm_param_groups wrong = {.count = 1, .item = {{.params = {.count = 1, .item = {"*.baas"}}}}};
    options.groups = &wrong;
    CHECK_INT(tdm__plan_build(&plan, tdm_host_default(), graph, &options), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(),
               "optimizer.groups: no parameter of the model matches '*.baas'; did you mean '*.bias'?");
    tdm_graph_free(graph);
}

/* ---- steps and buckets ---- */

#define BLOCK                                                                   \
    "x 3x8x8; c conv2d x out=4 kernel=3 bias=false; b batchnorm2d c; r relu b;" \
    "d conv2d r out=2 kernel=1 bias=false; p avgpool2d d kernel=2"
#define NET "x 8; l linear x out=4; r relu l; f flatten r; m linear f out=2"

static const plan_case steps[] = {
    {.title = "forward, loss, backward; aliases run in backward only",
     .graph = NET,
     .want = "F l F r F m L B m B f B r B l R 0 | 0: m.weight m.bias l.weight l.bias (0+80) after 7"},
    {.title = "predictions end with the loss", .graph = NET, .predicts = true, .want = "F l F r F m L"},
    {.title = "a bucket for each parameter where the limit is small: weight and bias of a layer are ready together",
     .graph = NET,
     .bucket_mb = 1e-9,
     .want = "F l F r F m L B m R 0 R 1 B f B r B l R 2 R 3 | 0: m.weight (0+16) after 4 | 1: m.bias (16+16) after 4"
             " | 2: l.weight (32+32) after 9 | 3: l.bias (64+16) after 9"},
    {.title = "a bucket is closed once it has reached its limit: here 40 bytes",
     .graph = NET,
     .bucket_mb = 40.0 / 1048576,
     .want = "F l F r F m L B m R 0 B f B r B l R 1 R 2 | 0: m.weight m.bias (0+32) after 4"
             " | 1: l.weight (32+32) after 8 | 2: l.bias (64+16) after 8"},
    {.title = "a bucket over two layers waits for the second",
     .graph = NET,
     .bucket_mb = 41.0 / 1048576,
     .want = "F l F r F m L B m B f B r B l R 0 R 1 | 0: m.weight m.bias l.weight (0+64) after 7"
             " | 1: l.bias (64+16) after 7"},
    {.title = "the first has a limit of its own",
     .graph = "x 512; l linear x out=512 bias=false; m linear l out=512 bias=false; n linear m out=512 bias=false",
     .bucket_mb = 2,
     .first_mb = 1,
     .want = "F l F m F n L B n R 0 B m B l R 1 | 0: n.weight (0+262144) after 4"
             " | 1: m.weight l.weight (262144+524288) after 7"},
    {.title = "layers that nobody uses run forward only and are in no bucket",
     .graph = "x 8; l linear x out=4; a linear l out=4; b relu a; m linear l out=2",
     .unused = true,
     .want = "F l F a F b F m L B m B l R 0 | 0: m.weight m.bias l.weight l.bias (0+80) after 6"},
    {.title = "a bias that another node sums is ready with its own layer",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=2",
     .offers = "maxpool2d: sum",
     .bucket_mb = 1e-9,
     .want = "F c F p L B p B c R 0 R 1 | 0: c.weight (0+112) after 4 | 1: c.bias (112+16) after 4"},
    {.title = "what is made again is made in front of the first backward that reads it",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again",
     .want = "F c F b F d F p L B p A b B d B b B c R 0 | 0: d.weight b.weight b.bias c.weight (0+160) after 9"},
    {.title = "also where only its own backward reads it",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3 bias=false; b batchnorm2d c; r relu b; p avgpool2d r kernel=2",
     .offers = "batchnorm2d: relu again",
     .want = "F c F b F p L B p A b B b B c R 0 | 0: b.weight b.bias c.weight (0+144) after 7"},
    {.title = "not where an input is not kept for backward: what an epilogue adds",
     .graph = "x 3x8x8; c conv2d x out=3 kernel=1 bias=false; b batchnorm2d c; a add b x; r relu a;"
              "d conv2d r out=2 kernel=1 bias=false",
     .offers = "batchnorm2d: add relu again",
     .want = "F c F b F d L B d B b B c R 0 | 0: d.weight b.weight b.bias c.weight (0+64) after 6"},
    {.title = "nor where an input is made again itself, nor the output",
     .graph = "x 3x8x8; b batchnorm2d x; c batchnorm2d b; d batchnorm2d c",
     .offers = "batchnorm2d: again",
     .want = "F b F c F d L B d A b B c B b R 0 | 0: d.weight d.bias c.weight c.bias b.weight b.bias (0+96) after 7"},
    {.title = "nor the output, which has no use for the memory in between",
     .graph = "x 3x8x8; b batchnorm2d x; r relu b",
     .offers = "batchnorm2d: relu again",
     .want = "F b L B b R 0 | 0: b.weight b.bias (0+32) after 2"},
    {.title = "in 16 bits by a kernel that takes them",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again",
     .bf16 = true,
     .want = "F c F b F d F p L B p A b B d B b B c R 0 | 0: d.weight b.weight b.bias c.weight (0+160) after 9"},
    {.title = "and not by one of floats",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again floats",
     .bf16 = true,
     .want = "F c F b F d F p L B p B d B b B c R 0 | 0: d.weight b.weight b.bias c.weight (0+160) after 8"},
    {.title = "nor where another value lies on it, nor for predictions",
     .graph = "x 3x8x8; b batchnorm2d x; f flatten b; l linear f out=2 bias=false",
     .offers = "batchnorm2d: again",
     .want = "F b F l L B l B f B b R 0 | 0: l.weight b.weight b.bias (0+416) after 5"},
    {.title = "predictions make nothing again",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again",
     .predicts = true,
     .want = "F c F b F d F p L"},
};

TEST(steps_and_buckets) {
    CHECK_CASES(steps, "steps", plan_print_steps);
}

/* ---- lives ---- */

static const plan_case lives[] = {
    {.title = "what backward reads lives until then", .graph = NET, .want = "v0 0-7, v1 0-6, v4 2-3, dv4 3-4, dv3 4-7"},
    {.title = "predictions forget at once", .graph = NET, .predicts = true, .want = "v0 0-0, v1 0-2, v4 2-3"},
    {.title = "saved lives from forward to backward, scratch in one step, and one for each way",
     .graph = "x 8; l linear x out=4; d dropout l; m linear d out=2",
     .offers = "dropout: saved=32; linear: scratch=64",
     .want = "v0 0-6, v1 0-4, scratch 0 0-0, scratch 0 6-6, saved 1 1-5, v3 2-3, scratch 2 2-2, scratch 2 4-4, "
             "dv3 3-4, dv2 4-6"},
    {.title = "predictions want no scratch for the way back",
     .graph = "x 8; l linear x out=4",
     .offers = "linear: scratch=64",
     .predicts = true,
     .want = "v0 0-0, v1 0-1, scratch 0 0-0"},
    {.title = "a gradient lives from its first writer to its reader, a temp in one step",
     .graph = "x 8; l linear x out=4; m linear l out=4; n linear l out=4; a add m n",
     .want = "v0 0-8, v1 0-7, v2 1-4, v3 2-3, dv4 4-5, dv2 5-7, dv3 5-6, dv1 6-8, temp 7-7"},
    {.title = "where gradients of parameters are added there is a place for the largest node's",
     .graph = "x 8; l linear x out=4; m linear l out=2",
     .accumulates = true,
     .want = "v0 0-4, v1 0-3, v2 1-2, dv2 2-3, dv1 3-4, temp grad 3-4"},
    {.title = "what is made again is not alive between its last reader in forward and then",
     .graph = BLOCK,
     .offers = "batchnorm2d: relu again saved=24",
     .want = "v0 0-9, v1 0-8, v2 1-2, saved 1 1-8, v4 2-3, v5 3-4, dv5 4-5, dv4 5-7, dv2 7-8, dv1 8-9, v2' 6-8"},
};

TEST(lives) {
    CHECK_CASES(lives, "places", plan_print_lives);
}

/* ---- 16 bits ---- */

/* Batches, activations and their gradients; not what kernels save, nor parameters. */
TEST(numbers_of_16_bits) {
    tdm_graph *graph = plan_graph(NET);
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels("linear: saved=24 scratch=40"));
    tdm_plan *floats = NULL, *halves = NULL;
    CHECK_OK(tdm__plan_build(&floats, tdm_host_default(), graph, &options));
    options.precision = TDM_BF16;
    CHECK_OK(tdm__plan_build(&halves, tdm_host_default(), graph, &options));
    REQUIRE(floats != NULL && halves != NULL);
    CHECK_INT(halves->value_count, floats->value_count);
    for (int v = 0; v < floats->value_count; v++)
        CHECK_INT(halves->values[v].bytes * (floats->values[v].shape.ndim > 0 ? 2 : 1), floats->values[v].bytes);
    CHECK_INT(halves->input_row_bytes * 2, floats->input_row_bytes);
    CHECK_INT(halves->param_floats, floats->param_floats);
    CHECK(memcmp(&halves->hash, &floats->hash, sizeof(halves->hash)) != 0);
    tdm__plan_free(floats);
    tdm__plan_free(halves);
    tdm_graph_free(graph);
}

/* A kernel that knows only floats gets copies in its scratch, where the device can make them; else it does not fit. */
TEST(kernels_of_floats_are_widened) {
    tdm_graph *graph = plan_graph("x 8; l linear x out=4");
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options((const tdm_kernel *const[]){&tdm__linear_ref, NULL});
    tdm_plan *floats = NULL, *halves = NULL;
    CHECK_OK(tdm__plan_build(&floats, tdm_host_default(), graph, &options));
    options.precision = TDM_BF16;
    CHECK_INT(tdm__plan_build(&halves, tdm_host_default(), graph, &options), TDM_E_UNSUPPORTED);
    options.widens = true;
    CHECK_OK(tdm__plan_build(&halves, tdm_host_default(), graph, &options));
    REQUIRE(floats != NULL && halves != NULL);
    const tdm_plan_node *node = &halves->nodes[0];
    CHECK_INT(node->desc.precision, TDM_F32);
    CHECK(tdm__plan_widens(halves, node));
    CHECK(!tdm__plan_widens(floats, &floats->nodes[0]));
    /* the kernel's own scratch (8 doubles), then x, y, both parameters, dy and dx, each on a cache line: 2 rows */
    const size_t parts[] = {64, 2 * 8 * 4, 64, 4 * 8 * 4, 64, 64, 2 * 8 * 4};
    size_t total = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) total += parts[i];
    CHECK_INT(halves->values[node->scratch_forward].bytes, total);
    CHECK_INT(tdm__plan_batch_row_bytes(halves), 2 * halves->input_row_bytes);
    CHECK_INT(tdm__plan_batch_row_bytes(floats), floats->input_row_bytes);
    tdm__plan_free(floats);
    tdm__plan_free(halves);
    tdm_graph_free(graph);
}

/* ---- all passes can be looked at ---- */

#define IMAGES                                                                                              \
    "x 8x6x6; s conv2d x out=8 kernel=1; c conv2d s out=8 kernel=1; b batchnorm2d c; a add b s; r relu a; " \
    "f flatten r; d dropout f; l linear d out=3"

static void check_prints(const tdm_plan *plan, const char *pass) {
    tdm_text text, json;
    tdm__text_init(&text, tdm_host_default());
    tdm__text_init(&json, tdm_host_default());
    tdm__plan_print(plan, &text);
    tdm_json_out out = tdm__json_out(&json, "");
    tdm__plan_print_json(plan, &out, NULL);
    CHECK(!text.failed && !json.failed);
    char first[40];
    snprintf(first, sizeof(first), "plan after %s  rows 2", pass);
    CHECK_HAS(text.data, first);
    CHECK_INT(strstr(text.data, "act+") != NULL, plan->has_offsets);
    CHECK_INT(strstr(text.data, "bwd    batchnorm2d") != NULL, plan->d_output >= 0);
    CHECK_INT(strstr(text.data, "parameter: s.weight") != NULL, plan->param_count > 0);
    CHECK_INT(strstr(text.data, "rewrite: batchnorm2d, add and relu in one pass, 1 time: ") != NULL,
              plan->rewrites != NULL);
    CHECK_HAS(text.data, "s.weight");
    CHECK_HAS(json.data, "\"steps\":[");
    tdm__text_deinit(&text);
    tdm__text_deinit(&json);
}

TEST(each_pass_gives_a_plan_that_prints) {
    tdm_graph *graph = plan_graph(IMAGES);
    REQUIRE(graph != NULL);
    int passes = 0;
    for (const char *pass; (pass = tdm__plan_pass(passes)) != NULL; passes++) {
        tdm_plan_options options =
            plan_options(plan_kernels("conv2d: c8; batchnorm2d: keep add relu; add: keep; relu: keep"));
        options.after = pass;
        tdm_plan *plan = NULL;
        CHECK_OK(tdm__plan_build(&plan, tdm_host_default(), graph, &options));
        if (plan != NULL) check_prints(plan, pass);
        tdm__plan_free(plan);
    }
    CHECK_INT(passes, 11);
    tdm_graph_free(graph);
}

/* ---- what cannot be planned ---- */

static void check_refused(const char *graph_text, const char *offers, int64_t rows, tdm_status want, const char *says) {
    tdm_graph *graph = plan_graph(graph_text);
    REQUIRE(graph != NULL);
    tdm_plan_options options = plan_options(plan_kernels(offers));
    options.rows = rows;
    tdm_plan *plan = NULL;
    CHECK_STATUS(tdm__plan_build(&plan, tdm_host_default(), graph, &options), want);
    CHECK(plan == NULL);
    CHECK_HAS(tdm_error_message(), says);
    tdm_graph_free(graph);
}

TEST(what_cannot_be_planned) {
    check_refused("x 8; l linear x out=4", "", 0, TDM_E_CONFIG, "at least 1 row, got 0");
    check_refused("x 8; l linear x out=4", "", INT64_MAX / 8, TDM_E_CONFIG, "too large for this model");
    check_refused("x 8; l linear x out=4", "linear: lacks", 2, TDM_E_UNSUPPORTED,
                  "no kernel on this device for linear 'l': fake: lacks it");
    check_refused("x 8; l linear x out=4", "linear: poor", 2, TDM_E_MEMORY, "linear, kernel fake: out of memory");
}

TEST_MAIN(RUN(layouts); RUN(in_place); RUN(gradients); RUN(groups_are_runs); RUN(steps_and_buckets); RUN(lives);
          RUN(numbers_of_16_bits); RUN(kernels_of_floats_are_widened); RUN(each_pass_gives_a_plan_that_prints);
          RUN(what_cannot_be_planned);)
