/* parallel.ddp.compress against the communication hooks of torch's DistributedDataParallel over gloo. */
#include <math.h>
#include <stdlib.h>

#include "compress_golden.h"
#include "law.h"
#include "tests/support/tdm_test.h"

static tdm_graph *new_graph(void) {
    tdm_graph *g = NULL;
    tdm_value v;
    const int64_t inputs = COMPRESS_INPUTS;
    if (tdm_graph_new(&g, NULL) != TDM_OK) exit(1);
    CHECK_OK(tdm_graph_input(g, 1, &inputs, &v));
    CHECK_OK(tdm_graph_add(g, "linear", NULL, &v, 1, (tdm_attr[]){{.key = "out", .text = "24"}}, 1, &v));
    CHECK_OK(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", NULL, &v, 1, (tdm_attr[]){{.key = "out", .text = "5"}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

static law_result run_with(const tdm_graph *graph, int type) {
    tdm_job job;
    law_job(&job);
    job.seed = COMPRESS_SEED;
    job.data.train.samples = COMPRESS_SAMPLES;
    job.data.train.seed = COMPRESS_DATA_SEED;
    job.data.eval.format = TDM_DATA_NONE;
    job.data.shuffle = false;
    job.optimizer.type = TDM_SGD;
    job.optimizer.lr = compress_lr;
    job.optimizer.momentum = 0.9;
    job.train.steps = COMPRESS_STEPS;
    job.train.per_device = COMPRESS_PER_DEVICE;
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){.count = COMPRESS_RANKS, .item = {0, 1}};
    job.parallel.ddp.compress.type = type;
    job.parallel.ddp.compress.rank = COMPRESS_RANK;
    job.parallel.ddp.compress.start_step = COMPRESS_START;
    job.parallel.ddp.compress.min_rate = 1;
    return law_run_ok(&job, graph);
}

static void check_losses(const law_result *result, const double *want, double relative) {
    CHECK_INT(result->steps, COMPRESS_STEPS);
    for (int i = 0; i < COMPRESS_STEPS; i++) CHECK_NEAR(result->loss[i], want[i], relative * want[i]);
}

static double apart(const double *a) {
    double most = 0;
    for (int i = 0; i < COMPRESS_STEPS; i++) most = fmax(most, fabs(a[i] - compress_none[i]));
    return most;
}

TEST(without) {
    tdm_graph *graph = new_graph();
    const law_result result = run_with(graph, TDM_COMPRESS_NONE);
    check_losses(&result, compress_none, 2e-6);
    tdm_graph_free(graph);
}

/* The same formulas, with other orders of sums. */
TEST(powersgd_as_torch) {
    tdm_graph *graph = new_graph();
    CHECK(apart(compress_powersgd) > 0.01); /* else the test would see nothing */
    const law_result result = run_with(graph, TDM_COMPRESS_POWERSGD);
    check_losses(&result, compress_powersgd, 1e-5);
    tdm_graph_free(graph);
}

/* torch rounds at more places: both are away from the exact curve by roundings of one size. */
TEST(sixteen_bits_are_as_near_as_torch) {
    tdm_graph *graph = new_graph();
    const law_result bf16 = run_with(graph, TDM_COMPRESS_BF16), fp16 = run_with(graph, TDM_COMPRESS_FP16);
    CHECK(apart(compress_bf16) < 2e-4 && apart(compress_fp16) < 2e-5);
    CHECK(apart(bf16.loss) < 2e-4 && apart(fp16.loss) < 2e-5);
    CHECK(apart(bf16.loss) > 1e-6 && apart(fp16.loss) > 1e-7);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(without); RUN(powersgd_as_torch); RUN(sixteen_bits_are_as_near_as_torch);)
