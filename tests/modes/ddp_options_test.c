/* Options of DistributedDataParallel: what each does to numbers. */
#include <math.h>
#include <string.h>

#include "law.h"
#include "tests/support/tdm_test.h"

static law_result run_as(const tdm_job *base, const tdm_graph *graph, int mode, int devices) {
    tdm_job job = *base;
    job.parallel.mode = mode;
    job.parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job.parallel.device_ids.item[i] = i;
    return law_run_ok(&job, graph);
}

/* Buckets decide when a sum begins, never what it is. */
TEST(buckets_change_no_bit) {
    static const double first[] = {NAN, 1e-6, 0.002, 30}, cap[] = {25, 0.001, 1e-6, 0.02};
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    const law_result whole = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    for (int i = 0; i < 4; i++) {
        job.parallel.ddp.first_bucket_mb = first[i];
        job.parallel.ddp.bucket_cap_mb = cap[i];
        job.parallel.ddp.static_graph = i % 2 == 1;
        const law_result cut = run_as(&job, graph, TDM_MODE_DDP, 3);
        law_check_same(&whole, &cut);
    }
    tdm_graph_free(graph);
}

/* ---- layers that the loss does not depend on ---- */

/* `side`: with a branch behind the first layer that ends nowhere. Its layers come last, so that all others have the
 * same first weights with and without it. */
static tdm_graph *branched(bool side) {
    static const tdm_attr out8[] = {{"out", "8", {0}}}, out5[] = {{"out", "5", {0}}};
    tdm_graph *g = NULL;
    tdm_value x, a, y, s;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){12}, &x));
    CHECK_OK(tdm_graph_add(g, "linear", "a", &x, 1, out8, 1, &a));
    CHECK_OK(tdm_graph_add(g, "relu", "r", &a, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "b", &y, 1, out5, 1, &y));
    if (side) CHECK_OK(tdm_graph_add(g, "linear", "side", &a, 1, out8, 1, &s));
    if (side) CHECK_OK(tdm_graph_add(g, "linear", "end", &s, 1, out5, 1, &s));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

TEST(unused_layers_change_no_step) {
    static const int optimizers[] = {TDM_SGD, TDM_ADAMW};
    tdm_graph *with = branched(true), *without = branched(false);
    for (int i = 0; i < 2; i++) {
        tdm_job job;
        law_job(&job);
        job.optimizer.type = optimizers[i];
        job.optimizer.momentum = 0.9;
        job.optimizer.weight_decay = 0.1;
        job.train.clip_grad_norm = 0.5;
        const law_result plain = run_as(&job, without, TDM_MODE_SINGLE, 2);
        job.parallel.ddp.find_unused_parameters = true;
        const law_result single = run_as(&job, with, TDM_MODE_SINGLE, 2);
        const law_result dp = run_as(&job, with, TDM_MODE_DP, 2);
        const law_result ddp = run_as(&job, with, TDM_MODE_DDP, 2);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        for (int s = 0; s < 8; s++) CHECK(single.loss[s] == plain.loss[s]);
    }
    tdm_graph_free(with);
    tdm_graph_free(without);
}

/* As torch.optim, which skips a parameter whose gradient is None: no weight decay either. */
TEST(unused_parameters_stay_as_they_are) {
    tdm_graph *graph = branched(true);
    tdm_job job;
    float before[64], after[64];
    law_job(&job);
    job.optimizer.type = TDM_ADAMW;
    job.optimizer.weight_decay = 0.1;
    job.parallel.ddp.find_unused_parameters = true;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    CHECK_OK(tdm_run_read(run, "side.weight", before, sizeof(before)));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_read(run, "side.weight", after, sizeof(after)));
    CHECK(memcmp(before, after, sizeof(before)) == 0);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

/* Before a step, and on every rank with the same words. */
TEST(unused_parameters_are_named_on_every_rank) {
    static const int modes[] = {TDM_MODE_SINGLE, TDM_MODE_DP, TDM_MODE_DDP};
    tdm_graph *graph = branched(true);
    for (int i = 0; i < 3; i++) {
        tdm_job job;
        law_job(&job);
        job.parallel.mode = modes[i];
        job.parallel.device_ids = (tdm_ints){.count = 2, .item = {0, 1}};
        const law_result result = law_run(&job, graph);
        CHECK_INT(result.status, TDM_E_CONFIG);
        CHECK(result.alike);
        CHECK_INT(result.steps, 0);
        CHECK_HAS(result.message, "linear 'side': no gradient reaches side.weight, side.bias, end.weight, end.bias");
    }
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(buckets_change_no_bit); RUN(unused_layers_change_no_step); RUN(unused_parameters_stay_as_they_are);
          RUN(unused_parameters_are_named_on_every_rank);)
