/* Each row of ops/rewrites.c fires where it should, and does nothing where it would be wrong: small graphs and the
 * nodes that are left after the pass. */
#include "tests/plan/plan_support.h"

#define CHECK_CASES(table) plan_check_cases(table, sizeof(table) / sizeof((table)[0]), "rewrite", plan_print_nodes)

/* ---- relu behind a layer ---- */

static const plan_case relus[] = {
    {.title = "fires",
     .graph = "x 8; l linear x out=4; r relu l; m linear r out=2",
     .offers = "linear: relu",
     .want = "linear+relu(wb) v0 -> v1\n"
             "linear(wb) v1 -> v3"},
    {.title = "fires at the output",
     .graph = "x 8; l linear x out=4; r relu l",
     .offers = "linear: relu",
     .want = "linear+relu(wb) v0 -> v1"},
    {.title = "fires in plans for predictions",
     .graph = "x 8; l linear x out=4; r relu l",
     .offers = "linear: relu",
     .predicts = true,
     .want = "linear+relu(wb) v0 -> v1"},
    {.title = "behind a layer without parameters, on the batch",
     .graph = "x 4x6x6; p maxpool2d x kernel=2; r relu p; c conv2d r out=2 kernel=3",
     .offers = "maxpool2d: relu",
     .want = "maxpool2d+relu v0 -> v1\n"
             "conv2d(wb) v1 -> v3"},
    {.title = "behind an add of three",
     .graph = "x 8; l linear x out=4; m linear x out=4; n linear x out=4; a add l m n; r relu a",
     .offers = "add: relu",
     .want = "linear(wb) v0 -> v1\n"
             "linear(wb) v0 -> v2\n"
             "linear(wb) v0 -> v3\n"
             "add+relu v1 v2 v3 -> v4"},
    {.title = "a second relu stays",
     .graph = "x 8; l linear x out=4; r relu l; s relu r",
     .offers = "linear: relu",
     .want = "linear+relu(wb) v0 -> v1\n"
             "relu v1 -> v3"},
    {.title = "a relu on the batch has no layer in front",
     .graph = "x 8; r relu x; l linear r out=4",
     .offers = "linear: relu; relu: relu",
     .want = "relu v0 -> v1\n"
             "linear(wb) v1 -> v2"},
    {.title = "the kernel offers none",
     .graph = "x 8; l linear x out=4; r relu l",
     .offers = "linear: sum bias add",
     .want = "linear(wb) v0 -> v1\n"
             "relu v1 -> v2"},
    {.title = "the kernel refuses when asked",
     .graph = "x 8; l linear x out=4; r relu l",
     .offers = "linear: relu refuses",
     .want = "linear(wb) v0 -> v1\n"
             "relu v1 -> v2"},
    {.title = "the kernel would take other layouts with it",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c",
     .offers = "conv2d: relu turns",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2"},
    {.title = "the kernel would make another layout with it",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c",
     .offers = "conv2d: relu turns_y",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2"},
    {.title = "the kernel would read another layout with it",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c",
     .offers = "conv2d: relu turns_x",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2"},
    {.title = "a kernel of floats in a plan of bf16",
     .graph = "x 8; l linear x out=4; r relu l",
     .offers = "linear: relu floats",
     .bf16 = true,
     .want = "linear+relu(wb) v0 -> v1"},
    {.title = "somebody else reads what the relu reads",
     .graph = "x 8; l linear x out=4; r relu l; a add r l",
     .offers = "linear: relu",
     .want = "linear(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "add v2 v1 -> v3"},
    {.title = "an alias in between",
     .graph = "x 4x6x6; c conv2d x out=4 kernel=3; f flatten c; r relu f; l linear r out=2",
     .offers = "conv2d: relu; flatten: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "flatten v1 -> v2\n"
             "relu v2 -> v3\n"
             "linear(wb) v3 -> v4"},
    {.title = "a reorder in between",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; r relu c",
     .offers = "conv2d: relu c8",
     .want = "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v1 c8\n"
             "reorder v1 -> v1'\n"
             "relu v1' -> v2"},
};

TEST(relu_behind_a_layer) {
    CHECK_CASES(relus);
}

/* ---- relu past max pooling ---- */

static const plan_case pooled[] = {
    {.title = "fires, and the pooling takes the relu in",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; f flatten p; l linear f out=2",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d+relu v1 -> v3\n"
             "flatten v3 -> v4\n"
             "linear(wb) v4 -> v5"},
    {.title = "fires before the layer in front takes the relu",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2",
     .offers = "maxpool2d: relu; conv2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d+relu v1 -> v3"},
    {.title = "past two poolings",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; q maxpool2d p kernel=2",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v3\n"
             "maxpool2d+relu v3 -> v4"},
    {.title = "two, each with a relu in front: the first stays, for one was behind its pooling when it was tried",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; s relu p; q maxpool2d s kernel=2",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "maxpool2d v2 -> v3\n"
             "maxpool2d+relu v3 -> v5"},
    {.title = "a node of another branch in between",
     .graph =
         "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; d conv2d x out=4 kernel=5; p maxpool2d r kernel=3 stride=1; "
         "a add p d",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d+relu v1 -> v4\n"
             "conv2d(wb) v0 -> v3\n"
             "add v4 v3 -> v5"},
    {.title = "the pooling does no relu",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "maxpool2d v2 -> v3"},
    {.title = "the pooling would take other layouts with it",
     .graph = "x 8x8x8; c conv2d x out=8 kernel=3; r relu c; p maxpool2d r kernel=2",
     .offers = "maxpool2d: relu turns",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "maxpool2d v2 -> v3"},
    {.title = "a relu behind the pooling is there already",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; s relu p",
     .offers = "maxpool2d: relu; conv2d: relu",
     .want = "conv2d+relu(wb) v0 -> v1\n"
             "maxpool2d+relu v1 -> v3"},
    {.title = "somebody else reads the relu",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=3 stride=1 padding=1; a add p r",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "maxpool2d v2 -> v3\n"
             "add v3 v2 -> v4"},
    {.title = "somebody else reads what the relu reads",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=3 stride=1 padding=1; a add p c",
     .offers = "maxpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "maxpool2d v2 -> v3\n"
             "add v3 v1 -> v4"},
    {.title = "no layer in front of the relu",
     .graph = "x 3x8x8; r relu x; p maxpool2d r kernel=2; c conv2d p out=2 kernel=3",
     .offers = "maxpool2d: relu",
     .want = "relu v0 -> v1\n"
             "maxpool2d v1 -> v2\n"
             "conv2d(wb) v2 -> v3"},
    {.title = "another pooling",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p avgpool2d r kernel=2",
     .offers = "avgpool2d: relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "relu v1 -> v2\n"
             "avgpool2d v2 -> v3"},
};

TEST(relu_past_max_pooling) {
    CHECK_CASES(pooled);
}

/* ---- batchnorm2d, add and relu ---- */

#define BLOCK "x 8x6x6; s conv2d x out=8 kernel=1; c conv2d s out=8 kernel=1; "
#define BLOCK_WANT          \
    "conv2d(wb) v0 -> v1\n" \
    "conv2d(wb) v1 -> v2\n"

static const plan_case residuals[] = {
    {.title = "fires",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d+add+relu(wb) v2 v1 -> v3"},
    {.title = "fires with the norm as the second of the add",
     .graph = BLOCK "b batchnorm2d c; a add s b; r relu a; p maxpool2d r kernel=2",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d+add+relu(wb) v2 v1 -> v3\n"
                        "maxpool2d v3 -> v6"},
    {.title = "fires in plans for predictions",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu",
     .predicts = true,
     .want = BLOCK_WANT "batchnorm2d+add+relu(wb) v2 v1 -> v3"},
    {.title = "what is added is the batch",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=1; b batchnorm2d c; a add b x; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "batchnorm2d+add+relu(wb) v1 v0 -> v2"},
    {.title = "fires for features",
     .graph = "x 8; c linear x out=8; b batchnorm1d c; a add b x; r relu a",
     .offers = "batchnorm1d: add relu",
     .want = "linear(wb) v0 -> v1\n"
             "batchnorm1d+add+relu(wb) v1 v0 -> v2"},
    {.title = "both of the add are norms: the later one takes",
     .graph = BLOCK "b batchnorm2d c; d batchnorm2d s; a add b d; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "batchnorm2d+add+relu(wb) v1 v3 -> v4"},
    {.title = "what is added is made later",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=1; b batchnorm2d c; s conv2d x out=8 kernel=1; a add b s; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "batchnorm2d(wb) v1 -> v2\n"
             "conv2d(wb) v0 -> v3\n"
             "add v2 v3 -> v4\n"
             "relu v4 -> v5"},
    {.title = "a node in between reads what is added",
     .graph = BLOCK "b batchnorm2d c; d conv2d s out=8 kernel=1; a add b s; r relu a; e add r d",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "conv2d(wb) v1 -> v4\n"
                        "add v3 v1 -> v5\n"
                        "relu v5 -> v6\n"
                        "add v6 v4 -> v7"},
    {.title = "a node behind reads what is added",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a; d conv2d s out=8 kernel=1; e add r d",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d+add+relu(wb) v2 v1 -> v3\n"
                        "conv2d(wb) v1 -> v6\n"
                        "add v3 v6 -> v7"},
    {.title = "the norm itself reads what is added, as a node behind does",
     .graph = "x 8x6x6; s conv2d x out=8 kernel=1; b batchnorm2d s; a add b s; r relu a; d conv2d s out=8 kernel=1; "
              "e add r d",
     .offers = "batchnorm2d: add relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "batchnorm2d(wb) v1 -> v2\n"
             "add v2 v1 -> v3\n"
             "relu v3 -> v4\n"
             "conv2d(wb) v1 -> v5\n"
             "add v4 v5 -> v6"},
    {.title = "what is added lies in another layout, and so comes later, by way of a reorder",
     .graph = "x 8x6x6; s maxpool2d x kernel=1; c conv2d s out=8 kernel=1; b batchnorm2d c; a add b s; r relu a",
     .offers = "conv2d: c8; batchnorm2d: keep add relu; add: keep; relu: keep",
     .want = "maxpool2d v0 -> v1\n"
             "reorder v1 -> v1' c8\n"
             "conv2d(wb) v1' -> v2 c8\n"
             "batchnorm2d+add+relu(wb) v2 v1' -> v3 c8\n"
             "reorder v3 -> v5'"},
    {.title = "a copy in the layout is made for the add alone",
     .graph = "x 8x6x6; s maxpool2d x kernel=1; c conv2d x out=8 kernel=1; b batchnorm2d c; a add b s; r relu a",
     .offers = "conv2d: c8; batchnorm2d: keep add relu; add: keep; relu: keep",
     .want = "maxpool2d v0 -> v1\n"
             "reorder v0 -> v0' c8\n"
             "conv2d(wb) v0' -> v2 c8\n"
             "batchnorm2d(wb) v2 -> v3 c8\n"
             "reorder v1 -> v1' c8\n"
             "add v3 v1' -> v4 c8\n"
             "relu v4 -> v5 c8\n"
             "reorder v5 -> v5'"},
    {.title = "the kernel would take other layouts with it",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu turns",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v1 -> v4\n"
                        "relu v4 -> v5"},
    {.title = "an add of three",
     .graph = BLOCK "d conv2d s out=8 kernel=1; b batchnorm2d c; a add b s d; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "conv2d(wb) v1 -> v3\n"
                        "batchnorm2d(wb) v2 -> v4\n"
                        "add v4 v1 v3 -> v5\n"
                        "relu v5 -> v6"},
    {.title = "an add of the norm to itself",
     .graph = BLOCK "b batchnorm2d c; a add b b; r relu a",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v3 -> v4\n"
                        "relu v4 -> v5"},
    {.title = "no relu behind",
     .graph = BLOCK "b batchnorm2d c; a add b s",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v1 -> v4"},
    {.title = "the kernel adds, but does no relu",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add; add: relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add+relu v3 v1 -> v4"},
    {.title = "somebody else reads the sum",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a; e add r a",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v1 -> v4\n"
                        "relu v4 -> v5\n"
                        "add v5 v4 -> v6"},
    {.title = "somebody else reads the norm",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a; e add r b",
     .offers = "batchnorm2d: add relu",
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v1 -> v4\n"
                        "relu v4 -> v5\n"
                        "add v5 v3 -> v6"},
    {.title = "in bf16",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu",
     .bf16 = true,
     .want = BLOCK_WANT "batchnorm2d+add+relu(wb) v2 v1 -> v3"},
    {.title = "a kernel of floats would not round in front of the add",
     .graph = BLOCK "b batchnorm2d c; a add b s; r relu a",
     .offers = "batchnorm2d: add relu floats",
     .bf16 = true,
     .want = BLOCK_WANT "batchnorm2d(wb) v2 -> v3\n"
                        "add v3 v1 -> v4\n"
                        "relu v4 -> v5"},
    {.title = "the norm has a relu of its own",
     .graph = BLOCK "b batchnorm2d c; q relu b; a add q s; r relu a",
     .offers = "batchnorm2d: add relu; add: relu",
     .want = BLOCK_WANT "batchnorm2d+relu(wb) v2 -> v3\n"
                        "add+relu v3 v1 -> v5"},
};

TEST(batch_norm_add_and_relu) {
    CHECK_CASES(residuals);
}

/* ---- bias past max pooling ---- */

#define POOL "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=2"

static const plan_case handed[] = {
    {.title = "fires",
     .graph = POOL,
     .offers = "conv2d: gives; maxpool2d: bias",
     .predicts = true,
     .want = "conv2d(w) v0 -> v1\n"
             "maxpool2d+bias(b) v1 -> v2"},
    {.title = "with the relu behind the pooling",
     .graph = POOL "; r relu p",
     .offers = "conv2d: gives; maxpool2d: bias relu",
     .predicts = true,
     .want = "conv2d(w) v0 -> v1\n"
             "maxpool2d+bias+relu(b) v1 -> v2"},
    {.title = "with the relu of the convolution",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; s relu p",
     .offers = "conv2d: gives relu; maxpool2d: bias relu",
     .predicts = true,
     .want = "conv2d(w) v0 -> v1\n"
             "maxpool2d+bias+relu(b) v1 -> v3"},
    {.title = "not in training: gradients would go elsewhere",
     .graph = POOL,
     .offers = "conv2d: gives; maxpool2d: bias",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "the bias is not added last",
     .graph = POOL,
     .offers = "maxpool2d: bias",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "there is no bias",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3 bias=false; p maxpool2d c kernel=2",
     .offers = "conv2d: gives; maxpool2d: bias",
     .predicts = true,
     .want = "conv2d(w) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "two read the convolution",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=3 stride=1 padding=1; a add p c",
     .offers = "conv2d: gives; maxpool2d: bias",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2\n"
             "add v2 v1 -> v3"},
    {.title = "the pooling adds none",
     .graph = POOL,
     .offers = "conv2d: gives; maxpool2d: relu",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "the pooling would take other layouts with it",
     .graph = "x 3x8x8; c conv2d x out=8 kernel=3; p maxpool2d c kernel=2",
     .offers = "conv2d: gives; maxpool2d: bias turns",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "the convolution's relu cannot go along",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2",
     .offers = "conv2d: gives relu; maxpool2d: bias",
     .predicts = true,
     .want = "conv2d+relu(wb) v0 -> v1\n"
             "maxpool2d v1 -> v3"},
    {.title = "kernels of floats in a plan of bf16, which round between bias and pooling, also once they do a relu",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2; s relu p",
     .offers = "conv2d: gives relu floats; maxpool2d: bias relu floats",
     .predicts = true,
     .bf16 = true,
     .want = "conv2d+relu(wb) v0 -> v1\n"
             "maxpool2d+relu v1 -> v3"},
    {.title = "a reorder in between",
     .graph = "x 8x8x8; c conv2d x out=8 kernel=3; p maxpool2d c kernel=2",
     .offers = "conv2d: gives; maxpool2d: bias c8",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "reorder v1 -> v1' c8\n"
             "maxpool2d v1' -> v2 c8\n"
             "reorder v2 -> v2'"},
};

TEST(bias_past_max_pooling) {
    CHECK_CASES(handed);
}

/* ---- bias gradient summed by the next layer ---- */

static const plan_case sums[] = {
    {.title = "fires",
     .graph = POOL,
     .offers = "maxpool2d: sum",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d+sum v1 -> v2; sums c.bias"},
    {.title = "beside a relu of the one that sums",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2",
     .offers = "maxpool2d: sum relu",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d+relu+sum v1 -> v3; sums c.bias"},
    {.title = "a layer that sums writes its own bias's gradient itself",
     .graph = "x 8; l linear x out=4; m linear l out=3; n linear m out=2",
     .offers = "linear: sum",
     .want = "linear(wb) v0 -> v1\n"
             "linear+sum(wb) v1 -> v2; sums l.bias\n"
             "linear(wb) v2 -> v3"},
    {.title = "not without a backward",
     .graph = POOL,
     .offers = "maxpool2d: sum",
     .predicts = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "there is no bias",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3 bias=false; p maxpool2d c kernel=2",
     .offers = "maxpool2d: sum",
     .want = "conv2d(w) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "a norm's bias is none that is added to a channel's numbers as they are",
     .graph = "x 3x8x8; b batchnorm2d x; p maxpool2d b kernel=2",
     .offers = "maxpool2d: sum",
     .want = "batchnorm2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "a relu in between",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; r relu c; p maxpool2d r kernel=2",
     .offers = "conv2d: relu; maxpool2d: sum",
     .want = "conv2d+relu(wb) v0 -> v1\n"
             "maxpool2d v1 -> v3"},
    {.title = "two read the layer",
     .graph = "x 3x8x8; c conv2d x out=4 kernel=3; p maxpool2d c kernel=3 stride=1 padding=1; a add p c",
     .offers = "maxpool2d: sum",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2\n"
             "add v2 v1 -> v3"},
    {.title = "what is summed is not the first input",
     .graph = "x 8; l linear x out=8; a add x l",
     .offers = "add: sum",
     .want = "linear(wb) v0 -> v1\n"
             "add v0 v1 -> v2"},
    {.title = "the kernel refuses when asked",
     .graph = POOL,
     .offers = "maxpool2d: sum refuses",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
};

TEST(bias_summed_on_its_way) {
    CHECK_CASES(sums);
}

/* ---- channels of the batch, order of weights ---- */

static const plan_case forms[] = {
    {.title = "the channels of the batch are filled up, and the weights' with them",
     .graph = POOL,
     .offers = "conv2d: fill=4 weights=4",
     .ingests = true,
     .want = "conv2d(wb) v0[4] -> v1; weights 4x9x4\n"
             "maxpool2d v1 -> v2"},
    {.title = "a device that does not ingest",
     .graph = POOL,
     .offers = "conv2d: fill=4",
     .want = "conv2d(wb) v0 -> v1\n"
             "maxpool2d v1 -> v2"},
    {.title = "two layers read the batch",
     .graph = "x 3x8x8; c conv2d x out=3 kernel=3 padding=1; a add c x",
     .offers = "conv2d: fill=4",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1\n"
             "add v1 v0 -> v2"},
    {.title = "an add reads the batch twice",
     .graph = "x 3x8x8; a add x x; c conv2d a out=3 kernel=3 padding=1",
     .offers = "add: fill=4",
     .ingests = true,
     .want = "add v0 v0 -> v1\n"
             "conv2d(wb) v1 -> v2"},
    {.title = "a layer behind the first has no batch to fill up",
     .graph = "x 3x8x8; p maxpool2d x kernel=2; c conv2d p out=4 kernel=3",
     .offers = "conv2d: fill=4",
     .ingests = true,
     .want = "maxpool2d v0 -> v1\n"
             "conv2d(wb) v1 -> v2"},
    {.title = "weights in the kernel's order",
     .graph = "x 8x8x8; c conv2d x out=4 kernel=3; d conv2d c out=8 kernel=[1,3]",
     .offers = "conv2d: weights=8",
     .want = "conv2d(wb) v0 -> v1; weights 4x9x8\n"
             "conv2d(wb) v1 -> v2; weights 8x3x8"},
    {.title = "weights in the order of the features",
     .graph = "x 8x6x6; c conv2d x out=8 kernel=3; f flatten c; l linear f out=2",
     .offers = "conv2d: nhwc",
     .ingests = true,
     .want = "conv2d(wb) v0 -> v1 nhwc\n"
             "flatten v1 -> v2\n"
             "linear(wb) v2 -> v3; weights 2x16x8"},
};

TEST(channels_and_weights) {
    CHECK_CASES(forms);
}

TEST_MAIN(RUN(relu_behind_a_layer); RUN(relu_past_max_pooling); RUN(batch_norm_add_and_relu);
          RUN(bias_past_max_pooling); RUN(bias_summed_on_its_way); RUN(channels_and_weights);)
