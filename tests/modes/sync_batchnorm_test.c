/* parallel.sync_batchnorm: the same bits in single, dp and ddp; and, within rounding, the numbers of one device that
 * has all rows. */
#include <math.h>

#include "law.h"
#include "tests/support/tdm_test.h"

/* Where a convolution with a bias stands in front of batch norm, the bias has a gradient of rounding noise, and Adam
 * makes steps of it. So: none there, and SGD. One norm has an added input and a relu behind it, one sees 1x1 planes,
 * one features. */
static tdm_graph *net(void) {
    const tdm_attr conv[] = {{"out", "16", {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}, {"bias", "false", {0}}};
    tdm_graph *g = NULL;
    tdm_value x, a, b, y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){3, 8, 8}, &x));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv1", &x, 1, conv, 4, &a));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn1", &a, 1, NULL, 0, &a));
    CHECK_OK(tdm_graph_add(g, "relu", "relu1", &a, 1, NULL, 0, &a));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv2", &a, 1, conv, 4, &b));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn2", &b, 1, NULL, 0, &b));
    CHECK_OK(tdm_graph_add(g, "add", "join", (tdm_value[]){b, a}, 2, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "relu", "relu2", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "adaptive_avgpool2d", "pool", &y, 1, (tdm_attr[]){{"out", "1", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn3", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc", &y, 1, (tdm_attr[]){{"out", "16", {0}}, {"bias", "false", {0}}}, 2, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm1d", "bn4", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "relu", "relu4", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "head", &y, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

static void job_of(tdm_job *job) {
    law_job(job);
    job->data.train.samples = 96;
    job->data.drop_last = true;
    job->optimizer.type = TDM_SGD;
    job->optimizer.momentum = 0.9;
    job->optimizer.lr = 0.05;
    job->train.steps = 20;
    job->train.per_device = 6;
    job->parallel.sync_batchnorm = true;
}

static law_result run_as(tdm_job *job, const tdm_graph *graph, int mode, int devices) {
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
    return law_run_ok(job, graph);
}

static void check_modes(tdm_job *job, const tdm_graph *graph, int devices) {
    law_result single = run_as(job, graph, TDM_MODE_SINGLE, devices);
    law_result dp = run_as(job, graph, TDM_MODE_DP, devices);
    law_result ddp = run_as(job, graph, TDM_MODE_DDP, devices);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    job->parallel.sync_batchnorm = false;
    law_result apart = run_as(job, graph, TDM_MODE_SINGLE, devices);
    job->parallel.sync_batchnorm = true;
    CHECK_INT(strcmp(apart.params, single.params) != 0, devices > 1); /* so that equality above means something */
}

TEST(modes_are_equal) {
    tdm_graph *graph = net();
    for (int n = 1; n <= 9; n += n <= 4 ? 1 : TDM_EVERY(2)) {
        tdm_job job;
        job_of(&job);
        job.train.steps = 20 / TDM_EVERY(4); /* 4 replicas begin the next epoch in the fifth */
        if (n > 4) job.train.steps = 3 / TDM_EVERY(2), job.train.per_device = 2;
        check_modes(&job, graph, n);
    }
    tdm_graph_free(graph);
}

/* The last batch of an epoch has 4 rows on each device, so two micro-batches instead of three; frozen norms evaluate;
 * outputs are made again. */
TEST(variants_are_equal) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    job.data.drop_last = false;
    job.data.train.samples = 48;
    job.train.accumulate = 3;
    job.train.steps = 12 / TDM_EVERY(2);
    job.train.recompute = TDM_RECOMPUTE_ALWAYS;
    job.parallel.ddp.bucket_cap_mb = 0.001;
    check_modes(&job, graph, 3);
    job.data.train.samples = 44;
    job.freeze = (tdm_texts){.count = 2, .item = {"conv1.*", "bn2.*"}};
    check_modes(&job, graph, 2);
    job.parallel.kernels = TDM_KERNELS_REF;
    check_modes(&job, graph, 2);
    job.train.precision = TDM_BF16;
    check_modes(&job, graph, 2);
    tdm_graph_free(graph);
}

TEST(variants_of_dp_are_equal) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    law_result usual = run_as(&job, graph, TDM_MODE_DP, 3);
    job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
    law_result own = run_as(&job, graph, TDM_MODE_DP, 3);
    law_check_same(&usual, &own);
    job.parallel.dp.update = TDM_DP_UPDATE_ALL;
    law_result all = run_as(&job, graph, TDM_MODE_DP, 3);
    CHECK_TEXT(all.params, usual.params);
    tdm_graph_free(graph);
}

/* DataParallel's chunks: 5 rows on 4 devices are 2, 2, 1 and none. */
TEST(a_replica_without_rows_takes_no_part) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    job.parallel.dp.scatter = TDM_SCATTER_CHUNK;
    job.data.train.samples = 5;
    job.data.drop_last = false;
    job.train.per_device = 1;
    job.train.steps = 4;
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 4);
    CHECK_INT(dp.steps, 4);
    for (int i = 0; i < 4; i++) CHECK(isfinite(dp.loss[i]));
    tdm_graph_free(graph);
}

/* One device with n times the rows: within 1e-6 over 20 steps. */
TEST(one_big_batch_has_the_same_numbers) {
    tdm_graph *graph = net();
    for (int n = 2; n <= 4; n += 2) {
        tdm_job job;
        job_of(&job);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        job.train.per_device *= n;
        law_result big = run_as(&job, graph, TDM_MODE_SINGLE, 1);
        double worst = 0;
        CHECK_INT(ddp.steps, 20);
        for (int i = 0; i < 20; i++) {
            const double off = fabs(ddp.loss[i] - big.loss[i]) / fabs(big.loss[i]);
            if (off > worst) worst = off;
        }
        CHECK_NEAR(worst, 0, 1e-6);
        for (int i = 0; i < 64; i++) CHECK_NEAR(ddp.buffers[i], big.buffers[i], 1e-5 * (1 + fabs(big.buffers[i])));
        tdm_job apart = job;
        apart.train.per_device /= n;
        apart.parallel.sync_batchnorm = false;
        law_result other = run_as(&apart, graph, TDM_MODE_DDP, n);
        CHECK(fabs(other.loss[19] - big.loss[19]) > 1e-4);
    }
    tdm_graph_free(graph);
}

/* A plane of one point needs two rows: one on each of two devices is enough, if they share statistics. */
TEST(a_row_on_each_device_is_enough) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    job.train.per_device = 1;
    job.train.steps = 3;
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    job.parallel.sync_batchnorm = false;
    law_result refused = law_run(&job, graph);
    CHECK_INT(refused.status, TDM_E_CONFIG);
    CHECK(strstr(refused.message, "bn3") != NULL);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(modes_are_equal); RUN(variants_are_equal); RUN(variants_of_dp_are_equal);
          RUN(a_replica_without_rows_takes_no_part); RUN(one_big_batch_has_the_same_numbers);
          RUN(a_row_on_each_device_is_enough);)
