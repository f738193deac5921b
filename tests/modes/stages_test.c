/* Replicas of several stages (parallel.stages): the bits of one device with as many micro-batches, for every number of
 * stages, micro-batches and replicas. */
#include <math.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

/* So many replicas of so many stages. */
static law_result run_as(tdm_job *job, const tdm_graph *graph, int mode, int replicas, int stages) {
    job->parallel.mode = mode;
    job->parallel.stages = stages;
    job->parallel.device_ids.count = replicas * stages;
    for (int i = 0; i < replicas * stages; i++) job->parallel.device_ids.item[i] = i;
    return law_run_ok(job, graph);
}

static void check_stages(tdm_job *job, const tdm_graph *graph, int replicas, int most_stages) {
    law_result one = run_as(job, graph, TDM_MODE_SINGLE, replicas, 1);
    CHECK_INT(one.steps, job->train.steps);
    for (int stages = 2; stages <= most_stages; stages++) {
        law_result single = run_as(job, graph, TDM_MODE_SINGLE, replicas, stages);
        law_check_same(&one, &single);
        law_result ddp = run_as(job, graph, TDM_MODE_DDP, replicas, stages);
        law_check_same(&one, &ddp);
    }
}

/* 50 or 26 samples: the last batch of an epoch is smaller, and so are its micro-batches, or there are fewer. */
TEST(stages_have_the_bits_of_one_device) {
    tdm_graph *graph = law_graph(1, 1);
    for (int micro = 1; micro <= 6; micro += micro < 3 ? 1 : 3) {
        tdm_job job;
        law_short_job(&job);
        job.train.steps = 10 / TDM_EVERY(2);
        job.train.accumulate = micro;
        check_stages(&job, graph, 1, 4);
        check_stages(&job, graph, 2, 2);
    }
    tdm_graph_free(graph);
}

/* An input that only a later stage takes crosses the cuts before it. */
TEST(several_inputs) {
    tdm_graph *graph = law_inputs();
    for (int micro = 1; micro <= 3; micro += 2) {
        tdm_job job;
        law_short_job(&job);
        job.train.accumulate = micro;
        check_stages(&job, graph, 1, 4);
        check_stages(&job, graph, 2, 2);
    }
    tdm_graph_free(graph);
}

TEST(with_everything_that_follows_backward) {
    tdm_graph *graph = law_graph(1, 0);
    tdm_job job;
    law_short_job(&job);
    job.train.accumulate = 3;
    job.train.clip_grad_norm = 0.05;
    job.train.clip_grad_value = 0.01;
    job.train.ema_decay = 0.75;
    job.optimizer.groups.count = 1;
    job.optimizer.groups.item[0] =
        (tdm_param_group){.params = {.count = 1, .item = {"conv2.*"}}, .lr = 1e-4, .weight_decay = NAN};
    job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 2};
    job.parallel.ddp.check_reduction = true;
    job.parallel.ddp.bucket_cap_mb = 0.001;
    check_stages(&job, graph, 2, 3);
    job.optimizer.type = TDM_LARS; /* norms of parameters */
    job.optimizer.lr = 4;
    job.optimizer.momentum = 0.9;
    check_stages(&job, graph, 2, 3);
    job.train.clip_grad_norm = 1e9;
    law_result unclipped = run_as(&job, graph, TDM_MODE_SINGLE, 2, 2);
    job.train.clip_grad_norm = 0.05;
    law_result clipped = run_as(&job, graph, TDM_MODE_SINGLE, 2, 2);
    CHECK(strcmp(clipped.params, unclipped.params) != 0); /* so that equality above means something */
    tdm_graph_free(graph);
}

/* ---- options of ddp ---- */

TEST(gradients_of_16_bits) {
    static const int types[] = {TDM_COMPRESS_BF16, TDM_COMPRESS_FP16};
    tdm_graph *graph = law_graph(1, 1);
    for (int i = 0; i < 2; i++) {
        tdm_job job;
        law_short_job(&job);
        job.train.accumulate = 3;
        job.train.clip_grad_norm = 0.5;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.parallel.ddp.check_reduction = true;
        const law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 2, 2);
        job.parallel.ddp.compress.type = types[i];
        check_stages(&job, graph, 2, 4);
        const law_result rounded = run_as(&job, graph, TDM_MODE_SINGLE, 2, 2);
        CHECK(strcmp(plain.params, rounded.params) != 0);
    }
    tdm_graph_free(graph);
}

static void powersgd_job(tdm_job *job) {
    tdm_compress_section *compress = &job->parallel.ddp.compress;
    law_short_job(job);
    job->train.accumulate = 3;
    compress->type = TDM_COMPRESS_POWERSGD;
    compress->rank = 2;
    compress->start_step = 2;
    compress->min_rate = 1;
}

/* A parameter is approximated by itself, so a cut changes nothing. */
TEST(gradients_as_two_factors) {
    tdm_graph *graph = law_graph(1, 0);
    tdm_job job;
    powersgd_job(&job);
    for (int i = 0; i < 3; i++) {
        job.parallel.ddp.bucket_cap_mb = i == 1 ? 0.001 : 25;
        job.parallel.ddp.compress.warm_start = i < 2;
        check_stages(&job, graph, 3, 4);
    }
    tdm_graph_free(graph);
}

/* 50 or 26 samples, 6 a rank: the last batch has 2 rows for 4 ranks, so two of them have none, and 14 or 8 for 3. */
TEST(ranks_without_samples) {
    static const int types[] = {TDM_COMPRESS_NONE, TDM_COMPRESS_FP16};
    tdm_graph *graph = law_graph(0, 1), *normed = law_graph(1, 1);
    for (int i = 0; i < 4; i++) {
        tdm_job job;
        law_short_job(&job);
        job.train.steps = 10 / TDM_EVERY(2);
        job.train.accumulate = 1 + i % 2 * 2;
        job.train.clip_grad_norm = 0.5;
        job.parallel.ddp.join = true;
        job.parallel.ddp.compress.type = types[i / 2];
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        check_stages(&job, graph, 4, 3);
        check_stages(&job, normed, 3, 3);
        job.parallel.sync_batchnorm = true;
        check_stages(&job, normed, 4, 3);
    }
    tdm_graph_free(graph);
    tdm_graph_free(normed);
}

/* Two batch norms, so that two stages have statistics; frozen layers behind one of them. */
static tdm_graph *normed(void) {
    static const tdm_attr conv[] = {{"out", "8", {0}}, {"kernel", "3", {0}}};
    tdm_graph *g = NULL;
    tdm_value y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){3, 8, 8}, &y));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv1", &y, 1, conv, 2, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn1", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "relu", "relu1", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv2", &y, 1, conv, 2, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn2", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "relu", "relu2", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "12", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm1d", "bn3", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc2", &y, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

/* The statistics of a micro-batch on all ranks, whichever stage has the batch norm. 48 samples: 3 replicas have batches
 * of 18, 18 and 12 of them. 46 with join: the last 10 are 4, 3 and 3, in micro-batches of 2, 2 or 1, 1, 1. */
TEST(statistics_of_all_ranks) {
    static const int micro[] = {1, 2, 3, 6};
    tdm_graph *graph = normed();
    for (int i = 0; i < 4; i++) {
        tdm_job job;
        law_short_job(&job);
        job.parallel.ddp.join = i == 1 || i == 2;
        job.data.train.samples = job.parallel.ddp.join ? 46 : 48;
        job.train.accumulate = micro[i];
        job.train.clip_grad_norm = 0.5;
        job.parallel.sync_batchnorm = true;
        job.parallel.ddp.bucket_cap_mb = i % 2 == 0 ? 25 : 0.001;
        job.parallel.ddp.compress.type = i == 3 ? TDM_COMPRESS_BF16 : TDM_COMPRESS_NONE;
        job.train.recompute = i == 2 ? TDM_RECOMPUTE_ALWAYS : TDM_RECOMPUTE_AUTO;
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        check_stages(&job, graph, 3, 4);
        job.freeze = (tdm_texts){.count = 2, .item = {"bn1.*", "conv2.*"}};
        check_stages(&job, graph, 2, 3);
    }
    tdm_graph_free(graph);
}

/* So that equality means something: batches of 2 rows have other statistics than those of 6. */
TEST(statistics_of_all_ranks_are_others) {
    tdm_graph *graph = normed();
    tdm_job job;
    law_job(&job);
    job.data.train.samples = 48;
    job.train.accumulate = 3;
    const law_result own = run_as(&job, graph, TDM_MODE_DDP, 3, 2);
    job.parallel.sync_batchnorm = true;
    const law_result synced = run_as(&job, graph, TDM_MODE_DDP, 3, 2);
    CHECK(strcmp(own.params, synced.params) != 0);
    tdm_graph_free(graph);
}

/* A stage without anything to train sends forward, and gets no gradients back. */
TEST(frozen_stages) {
    tdm_graph *graph = law_graph(1, 0);
    tdm_job job;
    law_short_job(&job);
    job.train.accumulate = 2;
    job.freeze = (tdm_texts){.count = 2, .item = {"conv1.*", "bn1.*"}};
    check_stages(&job, graph, 2, 3);
    job.freeze = (tdm_texts){.count = 2, .item = {"conv2.*", "fc1.bias"}};
    check_stages(&job, graph, 1, 3);
    tdm_graph_free(graph);
}

TEST(outputs_made_again) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    law_short_job(&job);
    job.train.accumulate = 3;
    job.train.recompute = TDM_RECOMPUTE_ALWAYS;
    check_stages(&job, graph, 1, 3);
    tdm_graph_free(graph);
}

TEST(numbers_of_16_bits) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    law_job(&job);
    job.train.steps = 4;
    job.train.accumulate = 3;
    job.train.precision = TDM_BF16;
    job.parallel.kernels = TDM_KERNELS_REF;
    check_stages(&job, graph, 2, 3);
    tdm_graph_free(graph);
}

TEST(a_run_goes_on_in_other_stages) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    char folder[256];
    law_job(&job);
    job.train.steps = 9;
    job.train.accumulate = 3;
    law_result straight = run_as(&job, graph, TDM_MODE_SINGLE, 2, 1);
    test_folder_make(folder);
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = 3;
    (void)run_as(&job, graph, TDM_MODE_DDP, 2, 2);
    job.train.steps = 5;
    (void)run_as(&job, graph, TDM_MODE_SINGLE, 2, 1);
    job.train.steps = 7;
    (void)run_as(&job, graph, TDM_MODE_SINGLE, 2, 3);
    job.train.steps = 9;
    law_result end = run_as(&job, graph, TDM_MODE_DDP, 2, 2);
    CHECK_TEXT(end.params, straight.params);
    CHECK(memcmp(end.buffers, straight.buffers, sizeof(straight.buffers)) == 0);
    CHECK(end.loss[8] == straight.loss[8] && end.eval_loss == straight.eval_loss);
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* What compression has kept back belongs to parameters, not to stages. */
TEST(a_compressed_run_goes_on_in_other_stages) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    char folder[256];
    powersgd_job(&job);
    job.train.steps = 9;
    const law_result straight = run_as(&job, graph, TDM_MODE_DDP, 2, 1);
    test_folder_make(folder);
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = 4;
    (void)run_as(&job, graph, TDM_MODE_DDP, 2, 3);
    job.train.steps = 6;
    (void)run_as(&job, graph, TDM_MODE_DDP, 2, 1);
    job.train.steps = 9;
    const law_result end = run_as(&job, graph, TDM_MODE_DDP, 2, 2);
    CHECK_TEXT(end.params, straight.params);
    CHECK(end.loss[8] == straight.loss[8]);
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* ---- stages that the layers name ---- */

/* Two branches from one value: it crosses both cuts, and three layers add to its gradient. */
static tdm_graph *named(int last) {
    tdm_graph *g = NULL;
    tdm_value x, a, b, c, y;
    const tdm_attr same[] = {{"out", "8", {0}}};
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){8}, &x));
    CHECK_OK(tdm_graph_add(g, "linear", "first", &x, 1, same, 1, &a));
    CHECK_OK(tdm_graph_set_stage(g, a, 0));
    CHECK_OK(tdm_graph_add(g, "linear", "second", &a, 1, same, 1, &b));
    CHECK_OK(tdm_graph_set_stage(g, b, 1));
    CHECK_OK(tdm_graph_add(g, "linear", "branch", &a, 1, same, 1, &c));
    CHECK_OK(tdm_graph_add(g, "add", "join", (tdm_value[]){a, b, c}, 3, NULL, 0, &y));
    CHECK_OK(tdm_graph_set_stage(g, y, 2));
    CHECK_OK(tdm_graph_add(g, "linear", "last", (tdm_value[]){y}, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &y));
    if (last >= 0) CHECK_OK(tdm_graph_set_stage(g, y, last));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

TEST(stages_that_layers_name) {
    tdm_graph *graph = named(-1);
    tdm_job job;
    law_job(&job);
    job.train.accumulate = 6;
    law_result one = run_as(&job, graph, TDM_MODE_SINGLE, 2, 1);
    law_result three = run_as(&job, graph, TDM_MODE_SINGLE, 2, 3);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2, 3);
    law_check_same(&one, &three);
    law_check_same(&one, &ddp);
    tdm_graph_free(graph);
}

/* ---- what is refused ---- */

static void check_refused(tdm_job *job, const tdm_graph *graph, const char *says) {
    law_result result = law_run(job, graph);
    CHECK_INT(result.status, TDM_E_CONFIG);
    CHECK_HAS(result.message, says);
}

static void check_graph_refused(int last, int stages, const char *says) {
    tdm_graph *graph = named(last);
    tdm_job job;
    law_job(&job);
    job.parallel.stages = stages;
    job.parallel.device_ids.count = stages;
    check_refused(&job, graph, says);
    tdm_graph_free(graph);
}

TEST(jobs_that_cannot_be_cut) {
    tdm_graph *graph = law_graph(0, 0);
    tdm_job job;
    law_job(&job);
    job.parallel.stages = 2;
    check_refused(&job, graph, "parallel.device_ids: a replica of 2 stages needs as many devices");
    job.parallel.device_ids.count = 2;
    job.train.accumulate = 4;
    check_refused(&job, graph, "train.accumulate: the 6 samples of a replica do not divide into 4 micro-batches");
    job.train.accumulate = 2;
    job.parallel.mode = TDM_MODE_DP;
    check_refused(&job, graph, "dp keeps a whole replica on each device");
    job.parallel.mode = TDM_MODE_SINGLE;
    job.parallel.stages = job.parallel.device_ids.count = 5;
    check_refused(&job, graph, "the model has 4 of them for 5 stages; write at most 4");
    tdm_graph_free(graph);
    check_graph_refused(1, 3, "linear 'last' is in stage 1, but add 'join' before it is in stage 2");
    check_graph_refused(-1, 2, "add 'join' is in stage 2, but parallel.stages is 2");
    check_graph_refused(3, 4, "stage 2 has no layer with parameters: add 'join'");
    check_graph_refused(-1, 4, "no layer is in stage 3 of 4");
}

TEST(stages_of_a_graph) {
    tdm_graph *g = NULL;
    tdm_value x, y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){4}, &x));
    CHECK_OK(tdm_graph_add(g, "linear", NULL, &x, 1, (tdm_attr[]){{"out", "4", {0}}}, 1, &y));
    CHECK_STATUS(tdm_graph_set_stage(NULL, y, 0), TDM_E_USAGE);
    CHECK_STATUS(tdm_graph_set_stage(g, x, 0), TDM_E_USAGE); /* no layer makes the input */
    CHECK_STATUS(tdm_graph_set_stage(g, 7, 0), TDM_E_USAGE);
    CHECK_STATUS(tdm_graph_set_stage(g, y, -1), TDM_E_USAGE);
    CHECK_STATUS(tdm_graph_set_stage(g, y, 64), TDM_E_USAGE);
    CHECK_OK(tdm_graph_finish(g, y));
    CHECK_STATUS(tdm_graph_set_stage(g, y, 0), TDM_E_USAGE);
    tdm_graph_free(g);
}

/* As on one device. */
TEST(a_loss_that_is_not_finite) {
    tdm_graph *graph = law_graph(0, 0);
    tdm_job job;
    law_job(&job);
    job.train.accumulate = 3;
    job.optimizer.type = TDM_SGD;
    job.optimizer.lr = 1e5;
    job.parallel.stages = job.parallel.device_ids.count = 2;
    job.parallel.device_ids.item[1] = 1;
    law_result result = law_run(&job, graph);
    CHECK_INT(result.status, TDM_E_NUMERIC);
    CHECK_HAS(result.message, "loss");
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(stages_have_the_bits_of_one_device); RUN(several_inputs); RUN(with_everything_that_follows_backward);
          RUN(gradients_of_16_bits); RUN(gradients_as_two_factors); RUN(ranks_without_samples);
          RUN(statistics_of_all_ranks); RUN(statistics_of_all_ranks_are_others);
          RUN(a_compressed_run_goes_on_in_other_stages); RUN(frozen_stages); RUN(outputs_made_again);
          RUN(numbers_of_16_bits); RUN(a_run_goes_on_in_other_stages); RUN(stages_that_layers_name);
          RUN(jobs_that_cannot_be_cut); RUN(stages_of_a_graph); RUN(a_loss_that_is_not_finite);)
