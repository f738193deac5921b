/* Options of DistributedDataParallel: what each does to numbers. */
#include <math.h>
#include <string.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

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

/* ---- compression ---- */

/* Each rank's gradient is rounded, the sum is made of floats and rounded once; single and dp do the same. Of one
 * replica nothing is sent, and nothing rounded. */
TEST(gradients_of_16_bits_are_equal_in_all_modes) {
    static const int types[] = {TDM_COMPRESS_BF16, TDM_COMPRESS_FP16};
    tdm_job job;
    law_job(&job);
    job.train.accumulate = 2;
    job.train.clip_grad_norm = 0.5;
    job.parallel.ddp.bucket_cap_mb = 0.001;
    job.parallel.ddp.check_reduction = true;
    tdm_graph *graph = law_graph(1, 1);
    const law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 3), alone = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    for (int i = 0; i < 2; i++) {
        job.parallel.ddp.compress.type = types[i];
        job.parallel.sync_batchnorm = i == 1;
        const law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 3), dp = run_as(&job, graph, TDM_MODE_DP, 3);
        const law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 3), one = run_as(&job, graph, TDM_MODE_DDP, 1);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        law_check_same(&alone, &one);
        CHECK(strcmp(plain.params, single.params) != 0);
        if (i == 0) CHECK(plain.loss[0] == single.loss[0]);
        if (i == 0) CHECK_NEAR(single.loss[7], plain.loss[7], 0.02 * plain.loss[7]);
    }
    tdm_graph_free(graph);
}

static void set_powersgd(tdm_job *job, int64_t rank, int64_t start) {
    tdm_compress_section *compress = &job->parallel.ddp.compress;
    compress->type = TDM_COMPRESS_POWERSGD;
    compress->rank = rank;
    compress->start_step = start;
    compress->min_rate = 1;
}

/* Before it begins it changes nothing. Then it repeats, and buckets, threads and the size of a bucket change no bit. */
TEST(powersgd_repeats_and_knows_no_buckets) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(1, 0);
    const law_result plain = run_as(&job, graph, TDM_MODE_DDP, 3);
    set_powersgd(&job, 2, 3);
    const law_result a = run_as(&job, graph, TDM_MODE_DDP, 3);
    job.parallel.ddp.bucket_cap_mb = 0.001;
    job.parallel.ddp.check_reduction = true;
    job.parallel.threads_per_device = 2;
    const law_result b = run_as(&job, graph, TDM_MODE_DDP, 3);
    law_check_same(&a, &b);
    for (int i = 0; i < 4; i++) CHECK(a.loss[i] == plain.loss[i]); /* the fourth step still has exact weights */
    CHECK(a.loss[4] != plain.loss[4]);
    CHECK_NEAR(a.loss[7], plain.loss[7], 0.2 * plain.loss[7]);
    tdm_graph_free(graph);
}

/* A factor for each column has all of the matrix: the gradients are those without compression, but for rounding. */
TEST(powersgd_of_full_rank_is_exact) {
    tdm_job job;
    law_job(&job);
    job.optimizer.type = TDM_SGD;
    tdm_graph *graph = branched(false);
    const law_result plain = run_as(&job, graph, TDM_MODE_DDP, 2);
    set_powersgd(&job, 8, 0);
    job.parallel.ddp.compress.min_rate = 1e-9; /* factors may be larger than the matrix */
    const law_result full = run_as(&job, graph, TDM_MODE_DDP, 2);
    CHECK(strcmp(plain.params, full.params) != 0);
    for (int i = 0; i < 8; i++) CHECK_NEAR(full.loss[i], plain.loss[i], 1e-5 * plain.loss[i]);
    tdm_graph_free(graph);
}

/* What one step keeps back the next ones send. Without it the loss falls less. */
TEST(error_feedback_and_warm_start_do_something) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    set_powersgd(&job, 1, 0);
    const law_result both = run_as(&job, graph, TDM_MODE_DDP, 2);
    job.parallel.ddp.compress.warm_start = false;
    const law_result cold = run_as(&job, graph, TDM_MODE_DDP, 2), again = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&cold, &again);
    job.parallel.ddp.compress.error_feedback = false;
    const law_result none = run_as(&job, graph, TDM_MODE_DDP, 2);
    CHECK(strcmp(both.params, cold.params) != 0);
    CHECK(strcmp(cold.params, none.params) != 0);
    tdm_graph_free(graph);
}

/* single and dp keep for each replica what a rank of ddp keeps. 50 or 26 samples, 6 a device; with join the last batch
 * has 2 rows on 2 and 4 devices, so that some have none, and then what they kept back is all that they have. */
TEST(powersgd_is_equal_in_all_modes) {
    static const int devices[] = {2, 3, 4, 5};
    tdm_graph *graph = law_graph(1, 1);
    for (int i = 0; i < 4; i += TDM_EVERY(2)) {
        tdm_job job;
        law_short_job(&job);
        set_powersgd(&job, 2, i == 0 ? 0 : 2);
        job.parallel.ddp.compress.error_feedback = i != 1;
        job.parallel.ddp.compress.warm_start = i != 2;
        job.parallel.ddp.join = i % 2 == 0;
        job.parallel.sync_batchnorm = i >= 2;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.train.accumulate = 1 + i % 3;
        job.train.clip_grad_norm = 0.5;
        const law_result single = run_as(&job, graph, TDM_MODE_SINGLE, devices[i]);
        const law_result ddp = run_as(&job, graph, TDM_MODE_DDP, devices[i]);
        const law_result dp = run_as(&job, graph, TDM_MODE_DP, devices[i]);
        law_check_same(&single, &ddp);
        law_check_same(&single, &dp);
        job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        const law_result all = run_as(&job, graph, TDM_MODE_DP, devices[i]);
        CHECK_TEXT(all.params, single.params);
        job.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
        const law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, devices[i]);
        CHECK(strcmp(plain.params, single.params) != 0); /* so that equality above means something */
    }
    tdm_graph_free(graph);
}

/* Of one device nothing is sent, so nothing is approximated. */
TEST(powersgd_of_one_device_is_none) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    const law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    set_powersgd(&job, 1, 0);
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        const law_result one = run_as(&job, graph, mode, 1);
        law_check_same(&plain, &one);
    }
    tdm_graph_free(graph);
}

/* ---- a resumed run ---- */

static void resume(tdm_job job, const tdm_graph *graph, int64_t at) {
    char folder[256];
    const law_result straight = run_as(&job, graph, TDM_MODE_DDP, 2);
    test_folder_make(folder);
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = at;
    (void)run_as(&job, graph, TDM_MODE_DDP, 2);
    job.train.steps = 8;
    const law_result second = run_as(&job, graph, TDM_MODE_DDP, 2);
    CHECK_TEXT(second.params, straight.params);
    for (int64_t i = at; i < 8; i++) CHECK(second.loss[i] == straight.loss[i]);
    test_folder_remove(folder);
}

TEST(compressed_runs_resume_with_the_same_bits) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    job.parallel.ddp.compress.type = TDM_COMPRESS_BF16;
    resume(job, graph, 5);
    job.parallel.ddp.compress.type = TDM_COMPRESS_FP16;
    resume(job, graph, 5);
    set_powersgd(&job, 2, 2);
    resume(job, graph, 1); /* before compression begins */
    resume(job, graph, 2);
    resume(job, graph, 5);
    job.parallel.ddp.compress.warm_start = false;
    resume(job, graph, 5);
    job.parallel.ddp.compress.error_feedback = false;
    resume(job, graph, 5);
    tdm_graph_free(graph);
}

/* What is kept of each replica is kept in every mode, in one form. */
TEST(powersgd_goes_on_in_another_mode) {
    static const int modes[][2] = {{TDM_MODE_DDP, TDM_MODE_DP},
                                   {TDM_MODE_DP, TDM_MODE_SINGLE},
                                   {TDM_MODE_SINGLE, TDM_MODE_DDP},
                                   {TDM_MODE_DP, TDM_MODE_DP}};
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    law_job(&job);
    set_powersgd(&job, 2, 1);
    const law_result straight = run_as(&job, graph, TDM_MODE_DDP, 3);
    for (int i = 0; i < 4; i += TDM_EVERY(2)) {
        char folder[256];
        test_folder_make(folder);
        job.run.dir = folder;
        job.checkpoint.resume = "auto";
        job.train.steps = 4;
        (void)run_as(&job, graph, modes[i][0], 3);
        job.train.steps = 8;
        const law_result second = run_as(&job, graph, modes[i][1], 3);
        CHECK_TEXT(second.params, straight.params);
        test_folder_remove(folder);
    }
    tdm_graph_free(graph);
}

/* On another number of ranks, or with another rank of the factors, the run goes on. */
TEST(what_was_kept_back_may_be_of_other_ranks) {
    char folder[256];
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(1, 0);
    set_powersgd(&job, 2, 1);
    test_folder_make(folder);
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = 3;
    (void)run_as(&job, graph, TDM_MODE_DDP, 2);
    job.train.steps = 5;
    CHECK_INT(run_as(&job, graph, TDM_MODE_DDP, 3).steps, 5);
    job.train.steps = 6;
    job.parallel.ddp.compress.rank = 1;
    CHECK_INT(run_as(&job, graph, TDM_MODE_DDP, 3).steps, 6);
    job.train.steps = 7;
    job.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
    CHECK_INT(run_as(&job, graph, TDM_MODE_DP, 2).steps, 7);
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* ---- uneven inputs ---- */

/* 50 samples, 6 a rank: the last batch of an epoch has 2 rows for 2 and for 4 ranks, 14 for 3 and 8 for 7. */
TEST(join_is_equal_in_all_modes) {
    static const int devices[] = {2, 3, 4, 7};
    static const int types[] = {TDM_COMPRESS_NONE, TDM_COMPRESS_FP16};
    tdm_graph *graph = law_graph(1, 1), *row_by_row = law_graph(0, 1);
    for (int i = 0; i < 8; i++) {
        tdm_job job;
        law_job(&job);
        job.parallel.ddp.join = true;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.parallel.ddp.check_reduction = i % 2 == 1;
        job.parallel.ddp.compress.type = types[i / 4];
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        job.train.accumulate = 1 + i % 3;
        job.train.clip_grad_norm = 0.5;
        job.train.steps = 10;
        const tdm_graph *g = devices[i % 4] == 7 ? row_by_row : graph;
        const law_result single = run_as(&job, g, TDM_MODE_SINGLE, devices[i % 4]);
        const law_result dp = run_as(&job, g, TDM_MODE_DP, devices[i % 4]);
        const law_result ddp = run_as(&job, g, TDM_MODE_DDP, devices[i % 4]);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
    }
    tdm_graph_free(graph);
    tdm_graph_free(row_by_row);
}

/* The mean is over the samples that are there: an epoch on several ranks is that of one device with the whole batch. */
TEST(join_gives_the_exact_mean) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    job.data.shuffle = false;
    job.train.steps = 6;
    job.parallel.ddp.join = true;
    const law_result many = run_as(&job, graph, TDM_MODE_DDP, 4);
    job.train.per_device = 24;
    const law_result one = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    for (int i = 0; i < 6; i++) CHECK_NEAR(many.loss[i], one.loss[i], 1e-5 * one.loss[i]);
    job.train.per_device = 6;
    job.parallel.ddp.join = false;
    const law_result padded = run_as(&job, graph, TDM_MODE_DDP, 4);
    CHECK(padded.loss[1] == many.loss[1]); /* a full batch */
    CHECK(padded.loss[2] != many.loss[2]); /* 4 rows with 2 rows instead of 2 */
    tdm_graph_free(graph);
}

/* DataParallel behind a DataLoader: the last batch has the rows that are left, here 5, which are cut into 2, 2 and 1
 * for four devices. The numbers are those of one device. Without join it is filled up to 8, as DistributedSampler does. */
TEST(join_is_the_short_batch_of_data_parallel) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    job.data.train.samples = 13;
    job.train.steps = 6;
    job.parallel.dp.scatter = TDM_SCATTER_CHUNK;
    job.parallel.ddp.join = true;
    job.train.per_device = 2;
    const law_result dp = run_as(&job, graph, TDM_MODE_DP, 4);
    job.parallel.ddp.join = false;
    const law_result filled = run_as(&job, graph, TDM_MODE_DP, 4);
    job.train.per_device = 8;
    const law_result one = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    for (int i = 0; i < 6; i++) CHECK_NEAR(dp.loss[i], one.loss[i], 1e-5 * one.loss[i]);
    CHECK(filled.loss[0] == dp.loss[0]);
    CHECK(fabs(filled.loss[1] - dp.loss[1]) > 1e-3);
    tdm_graph_free(graph);
}

TEST(joined_runs_resume_with_the_same_bits) {
    tdm_job job;
    law_job(&job);
    tdm_graph *graph = law_graph(0, 1);
    job.train.per_device = 7;
    job.data.train.samples = 43; /* batches of 14, 14, 14 and 1: there rank 1 has none */
    job.parallel.ddp.join = true;
    resume(job, graph, 3);
    resume(job, graph, 4);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(join_is_equal_in_all_modes); RUN(join_gives_the_exact_mean);
          RUN(join_is_the_short_batch_of_data_parallel); RUN(joined_runs_resume_with_the_same_bits);
          RUN(gradients_of_16_bits_are_equal_in_all_modes); RUN(powersgd_repeats_and_knows_no_buckets);
          RUN(powersgd_of_full_rank_is_exact); RUN(error_feedback_and_warm_start_do_something);
          RUN(powersgd_is_equal_in_all_modes); RUN(powersgd_of_one_device_is_none);
          RUN(powersgd_goes_on_in_another_mode); RUN(compressed_runs_resume_with_the_same_bits);
          RUN(what_was_kept_back_may_be_of_other_ranks); RUN(buckets_change_no_bit); RUN(unused_layers_change_no_step);
          RUN(unused_parameters_stay_as_they_are); RUN(unused_parameters_are_named_on_every_rank);)
