/* The optimizers in a training that PyTorch 1.13.1 recorded: losses of ten steps and the sums of the parameters. */
#include "runtime/base/random/rng.h"
#include "tests/ops/flat_case.h"
#include "runtime/base/isa.h"

/* The network: full batch of 64, Linear 10-32, ReLU, Linear 32-3, seed 0. */

enum { ROWS = 64, IN = 10, HIDDEN = 32, OUT = 3, W1 = 0, B1 = HIDDEN * IN, W2 = B1 + HIDDEN, B2 = W2 + OUT * HIDDEN };
enum { MLP = B2 + OUT, TRACE = 10 };

typedef struct {
    tdm_optimizer_section section;
    double loss[TRACE], sum[4]; /* sum: of the four parameter tensors after the last step */
} trace_case;

static const trace_case traces[] = {
    {{.type = TDM_SGD, .lr = 0.1, .momentum = 0.9},
     {1.0853787660598755, 1.056037187576294, 1.0140131711959839, 0.9787843227386475, 0.9607143998146057,
      0.9567821621894836, 0.9557616710662842, 0.9477036595344543, 0.9293932318687439, 0.9040754437446594},
     {-3.60644050326664, 2.135054251179099, 0.28911053529009223, -0.004735380411148071}},
    {{.type = TDM_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3},
     {1.0853787660598755, 1.033160924911499, 0.9898892641067505, 0.9641534090042114, 0.9511665105819702,
      0.9415386319160461, 0.9290161728858948, 0.9123867154121399, 0.8933921456336975, 0.8742108941078186},
     {-3.5093231118516997, 2.178159261122346, 0.2877462989963533, -0.004712970927357674}},
    {{.type = TDM_ADAM, .lr = 1e-2, .betas = {2, {0.9, 0.999}}, .eps = 1e-8, .form = TDM_ADAM_MULADD},
     {1.0853787660598755, 1.0264476537704468, 0.982962965965271, 0.9530840516090393, 0.9326640367507935,
      0.9174761772155762, 0.9041251540184021, 0.8902864456176758, 0.874787449836731, 0.8579485416412354},
     {-3.070184635464102, 2.4761248072609305, -0.5814914703369141, -0.05560160055756569}},
    {{.type = TDM_ADAMW,
      .lr = 1e-2,
      .betas = {2, {0.9, 0.999}},
      .eps = 1e-8,
      .weight_decay = 0.05,
      .form = TDM_ADAM_MULADD},
     {1.0853787660598755, 1.0264798402786255, 0.9830477833747864, 0.9531939625740051, 0.9327663779258728,
      0.9175602197647095, 0.9042164087295532, 0.8904141187667847, 0.875003457069397, 0.8582719564437866},
     {-3.0496814427897334, 2.469525552354753, -0.5848341537639499, -0.055638350546360016}},
};

typedef struct {
    float x[ROWS * IN];
    int64_t label[ROWS];
    float p[MLP], g[MLP], m[MLP], v[MLP];
} network;

static void network_init(network *net) {
    tdm_rng rng;
    tdm__rng_seed(&rng, 0, TDM_RNG_TORCH_AVX2);
    const double bound1 = 1 / sqrt(IN), bound2 = 1 / sqrt(HIDDEN);
    memset(net, 0, sizeof *net);
    tdm__rng_uniform(&rng, net->p + W1, HIDDEN * IN, -bound1, bound1);
    tdm__rng_uniform(&rng, net->p + B1, HIDDEN, -bound1, bound1);
    tdm__rng_uniform(&rng, net->p + W2, OUT * HIDDEN, -bound2, bound2);
    tdm__rng_uniform(&rng, net->p + B2, OUT, -bound2, bound2);
    tdm__rng_normal(&rng, net->x, ROWS * IN, 0, 1);
    tdm__rng_randint(&rng, net->label, ROWS, 0, OUT);
}

/* Adds row r's part of the mean cross entropy to `g`; returns its loss. All in double. */
static double network_row(const network *net, int r, double *g) {
    double h[HIDDEN], y[OUT], dy[OUT], total = 0, loss;
    const float *x = net->x + r * IN, *p = net->p;
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = p[B1 + j];
        for (int i = 0; i < IN; i++) h[j] += (double)p[W1 + j * IN + i] * x[i];
        if (h[j] < 0) h[j] = 0;
    }
    for (int k = 0; k < OUT; k++) {
        y[k] = p[B2 + k];
        for (int j = 0; j < HIDDEN; j++) y[k] += p[W2 + k * HIDDEN + j] * h[j];
        total += exp(y[k]);
    }
    loss = log(total) - y[net->label[r]];
    for (int k = 0; k < OUT; k++) {
        dy[k] = (exp(y[k]) / total - (k == net->label[r])) / ROWS;
        g[B2 + k] += dy[k];
        for (int j = 0; j < HIDDEN; j++) g[W2 + k * HIDDEN + j] += dy[k] * h[j];
    }
    for (int j = 0; j < HIDDEN; j++) {
        double dh = 0;
        for (int k = 0; k < OUT; k++) dh += dy[k] * p[W2 + k * HIDDEN + j];
        if (h[j] <= 0) continue;
        g[B1 + j] += dh;
        for (int i = 0; i < IN; i++) g[W1 + j * IN + i] += dh * x[i];
    }
    return loss / ROWS;
}

static double network_step(network *net) {
    double g[MLP] = {0}, loss = 0;
    for (int r = 0; r < ROWS; r++) loss += network_row(net, r, g);
    for (int i = 0; i < MLP; i++) net->g[i] = (float)g[i];
    return loss;
}

static double part_sum(const float *p, int from, int to) {
    double total = 0;
    for (int i = from; i < to; i++) total += p[i];
    return total;
}

/* Tolerances: PyTorch's float32 sums against ours in double. */
TEST(traces_follow_pytorch_1_13) {
    static const int edge[5] = {W1, B1, W2, B2, MLP};
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        network net;
        network_init(&net);
        flat_run run = {&traces[i].section, 0, net.p, net.g, {net.m, net.v}, MLP};
        for (int step = 0; step < TRACE; step++) {
            CHECK_NEAR(network_step(&net), traces[i].loss[step], 2e-6);
            optimize(tdm__isa(), &run);
        }
        for (int k = 0; k < 4; k++) CHECK_NEAR(part_sum(net.p, edge[k], edge[k + 1]), traces[i].sum[k], 2e-4);
    }
}

TEST_MAIN(RUN(traces_follow_pytorch_1_13);)
