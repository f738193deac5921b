/* The laws of the modes: dp(N) = ddp(N) = single playing N replicas, to the bit, for N from 1 to 9, with batch norm,
 * dropout and a residual addition; k micro-batches = one; threads change nothing; every variant of dp gives the same. */
#include <math.h>

#include "law.h"
#include "runtime/base/isa.h"
#include "tests/support/tdm_test.h"

static void set_devices(tdm_job *job, int count) {
    job->parallel.device_ids.count = count;
    for (int i = 0; i < count; i++) job->parallel.device_ids.item[i] = i;
}

static law_result run_as(tdm_job *job, const tdm_graph *graph, int mode, int devices) {
    job->parallel.mode = mode;
    set_devices(job, devices);
    return law_run_ok(job, graph);
}

/* Many replicas take few rows: what is new with them is how their sums are made. */
TEST(modes_are_equal) {
    for (int n = 1; n <= 9; n += n <= 4 ? 1 : TDM_EVERY(2)) {
        tdm_job job;
        law_short_job(&job);
        if (n > 4) job.train.steps = 2 / TDM_EVERY(2), job.train.per_device = 2;
        tdm_graph *graph = law_graph(1, 1);
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        CHECK_INT(single.steps, job.train.steps);
        CHECK(single.params[0] != '\0');
        CHECK(single.loss[0] > 1.0 && single.loss[0] < 3.0);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        tdm_graph_free(graph);
    }
}

TEST(series_are_equal_in_all_modes) {
    tdm_graph *graph = law_series();
    for (int n = 2; n <= 3; n++) {
        tdm_job job;
        law_short_job(&job);
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        job.parallel.threads_per_device = 3;
        law_result threads = run_as(&job, graph, TDM_MODE_DP, n);
        CHECK_INT(single.steps, job.train.steps);
        CHECK(single.loss[single.steps - 1] < single.loss[0]);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        law_check_same(&single, &threads);
    }
    tdm_graph_free(graph);
}

/* With micro-batches, and with numbers of 16 bits, too. */
TEST(several_inputs_are_equal_in_all_modes) {
    tdm_graph *graph = law_inputs();
    for (int n = 2; n <= 3; n++) {
        for (int narrow = 0; narrow < 2; narrow++) {
            tdm_job job;
            law_short_job(&job);
            job.train.accumulate = n == 3 ? 2 : 1;
            job.train.precision = narrow ? TDM_BF16 : TDM_F32;
            if (narrow) job.parallel.kernels = TDM_KERNELS_REF;
            law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
            law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
            law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
            CHECK_INT(single.steps, job.train.steps);
            law_check_same(&single, &dp);
            law_check_same(&single, &ddp);
        }
    }
    tdm_graph_free(graph);
}

/* Of every collective around a step: buffers, the number of samples that count, the check, the results. */
TEST(exposed_time_is_part_of_comm) {
    tdm_job job;
    law_short_job(&job);
    job.loss.ignore_index = 1;
    tdm_graph *graph = law_graph(1, 0);
    for (int checks = 0; checks < 2; checks++) {
        job.parallel.ddp.check_reduction = checks;
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
        CHECK_INT(ddp.steps, job.train.steps);
        CHECK_INT(ddp.comm_steps, ddp.steps);
    }
    tdm_graph_free(graph);
}

TEST(a_run_repeats) {
    tdm_job job;
    law_short_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    law_result a = run_as(&job, graph, TDM_MODE_DP, 3), b = run_as(&job, graph, TDM_MODE_DP, 3);
    law_check_same(&a, &b);
    job.seed = 8;
    law_result c = run_as(&job, graph, TDM_MODE_DP, 3);
    CHECK(strcmp(a.params, c.params) != 0); /* so that equality above means something */
    tdm_graph_free(graph);
}

TEST(loader_threads_change_nothing) {
    tdm_job job;
    law_short_job(&job);
    tdm_graph *graph = law_graph(0, 1);
    law_result first = run_as(&job, graph, TDM_MODE_DP, 2);
    for (int workers = 0; workers <= 4; workers += 2) {
        job.data.workers = workers;
        law_result other = run_as(&job, graph, TDM_MODE_DP, 2);
        law_check_same(&first, &other);
    }
    tdm_graph_free(graph);
}

TEST(mixed_samples_are_equal) {
    tdm_job job;
    tdm_graph *graph = law_mixing(&job);
    for (int n = 1; n <= 3; n++) {
        job.data.workers = n - 1;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        job.data.workers = 4;
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        job.data.transform.step_count = 0;
        law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, n);
        CHECK(strcmp(single.params, plain.params) != 0); /* so that equality above means something */
        job.data.transform.step_count = 2;
    }
    tdm_graph_free(graph);
}

/* The mean divides by the weights of the labels, which are added over the replicas. */
TEST(weights_of_classes_are_equal_in_all_modes) {
    static const int kinds[] = {TDM_CROSS_ENTROPY, TDM_NLL};
    for (int k = 0; k < 2; k++) {
        tdm_graph *graph = kinds[k] == TDM_NLL ? law_log_softmax() : law_graph(1, 1);
        for (int n = 1; n <= 5; n += 2) {
            tdm_job job;
            law_job(&job); /* 5 replicas have whole batches, too, which takes more than 26 samples */
            job.train.steps = 8 / TDM_EVERY(2);
            job.loss.type = kinds[k];
            law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, n);
            job.loss.weight = (tdm_numbers){5, (const double[]){0.1, 3.7, 0.7, 1.3, 0.01}};
            job.loss.ignore_index = 3;
            job.train.accumulate = n;
            law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
            law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
            law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
            law_check_same(&single, &dp);
            law_check_same(&single, &ddp);
            CHECK(strcmp(plain.params, single.params) != 0);
        }
        tdm_graph_free(graph);
    }
}

/* Mixed labels stand for probabilities: the mean is over the rows, so equal weights scale the gradient. */
TEST(weights_of_mixed_samples_are_equal) {
    tdm_job job;
    tdm_graph *graph = law_mixing(&job);
    job.loss.weight = (tdm_numbers){10, (const double[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2}};
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    job.loss.weight.count = 0;
    law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    CHECK_NEAR(single.loss[0], 2 * plain.loss[0], 1e-6 * plain.loss[0]);
    CHECK_NEAR(single.eval_loss, plain.eval_loss, 0.5 * plain.eval_loss); /* labels of data.eval are not mixed */
    tdm_graph_free(graph);
}

TEST(soft_targets_are_equal_in_all_modes) {
    tdm_graph *graph = law_graph(1, 1);
    for (int n = 1; n <= 3; n++) {
        tdm_job job;
        law_short_job(&job);
        job.loss.type = TDM_SOFT_CROSS_ENTROPY;
        job.loss.weight = (tdm_numbers){5, (const double[]){0.1, 3.7, 0.7, 1.3, 0.01}};
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        single.accuracy = dp.accuracy = ddp.accuracy = 0; /* NaN: targets are no labels */
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
    }
    tdm_graph_free(graph);
}

/* Layers that are large enough for threads to share. */
static tdm_graph *wide_graph(void) {
    const tdm_attr conv[] = {{"out", "64", {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}};
    tdm_graph *g = NULL;
    tdm_value y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){3, 32, 32}, &y));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv1", &y, 1, conv, 3, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm2d", "bn1", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "relu", "relu1", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "maxpool2d", "pool1", &y, 1, (tdm_attr[]){{"kernel", "4", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "128", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc2", &y, 1, (tdm_attr[]){{"out", "10", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

TEST(threads_change_nothing) {
    tdm_job job;
    law_job(&job);
    job.train.steps = 4 / TDM_EVERY(2);
    job.train.per_device = 16;
    job.parallel.threads_per_device = 1;
    tdm_graph *graph = wide_graph();
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    job.parallel.threads_per_device = 3;
    law_result shared = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 3);
    job.parallel.mode = TDM_MODE_DDP;
    law_result uneven = law_run_threads(&job, graph, (const int[]){2, 1, 4});
    CHECK_INT(uneven.status, TDM_OK);
    CHECK_TEXT(uneven.message, "");
    law_check_same(&single, &shared);
    law_check_same(&single, &dp);
    law_check_same(&single, &uneven);
    tdm_graph_free(graph);
}

/* Outputs that are made again have the bits of those that are kept, in parts of several sizes. */
TEST(recomputing_changes_nothing) {
    for (int precision = TDM_F32; precision <= TDM_BF16; precision += TDM_BF16 - TDM_F32) {
        tdm_job job;
        law_job(&job);
        job.train.steps = 4 / TDM_EVERY(2);
        job.train.per_device = 16;
        job.train.accumulate = 3;
        job.train.precision = precision;
        if (precision == TDM_BF16 && !tdm__has_fast_bf16()) continue;
        tdm_graph *graph = wide_graph();
        job.train.recompute = TDM_RECOMPUTE_NEVER;
        law_result kept = run_as(&job, graph, TDM_MODE_SINGLE, 2);
        job.train.recompute = TDM_RECOMPUTE_ALWAYS;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
        law_check_same(&kept, &single);
        law_check_same(&kept, &dp);
        law_check_same(&kept, &ddp);
        tdm_graph_free(graph);
    }
}

/* With the kernels that run on every processor, and with those of processors with fast bf16. */
TEST(bf16_is_equal_in_all_modes) {
    for (int kernels = TDM_KERNELS_AUTO; kernels <= TDM_KERNELS_REF; kernels++) {
        tdm_job job;
        law_short_job(&job);
        job.train.steps = 8 / TDM_EVERY(2);
        job.parallel.kernels = kernels;
        tdm_graph *graph = law_graph(1, 1);
        if (kernels == TDM_KERNELS_REF || tdm__has_fast_bf16()) {
            law_result f32 = run_as(&job, graph, TDM_MODE_SINGLE, 1);
            job.train.precision = TDM_BF16;
            for (int n = 1; n <= 3; n++) {
                job.train.accumulate = n == 2 ? 2 : 1;
                law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
                law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
                law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
                law_check_same(&single, &dp);
                law_check_same(&single, &ddp);
                if (n == 1) CHECK(strcmp(single.params, f32.params) != 0);
            }
        }
        tdm_graph_free(graph);
    }
}

TEST(variants_of_dp_are_equal) {
    for (int scatter = 0; scatter < 2; scatter++) {
        tdm_job job;
        law_short_job(&job);
        job.parallel.dp.scatter = scatter;
        tdm_graph *graph = law_graph(1, 1);
        law_result classic = run_as(&job, graph, TDM_MODE_DP, 3);
        job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        law_result replica = run_as(&job, graph, TDM_MODE_DP, 3);
        job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        law_result all = run_as(&job, graph, TDM_MODE_DP, 3);
        job.parallel.dp.loss = TDM_DP_LOSS_GATHERED;
        job.parallel.dp.output_device = 2;
        law_result elsewhere = run_as(&job, graph, TDM_MODE_DP, 3);
        law_check_same(&classic, &replica);
        law_check_same(&classic, &all);
        law_check_same(&classic, &elsewhere);
        tdm_graph_free(graph);
    }
}

/* Without batch norm the gradient of the whole batch does not depend on how it is cut, up to rounding. */
TEST(cutting_the_batch_changes_only_rounding) {
    tdm_job job;
    law_job(&job);
    job.optimizer.type = TDM_SGD;
    job.optimizer.lr = 0.05;
    job.train.per_device = TDM_INT_NULL;
    job.train.global_batch = 12;
    tdm_graph *graph = law_graph(0, 1);
    law_result one = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    for (int n = 2; n <= 4; n++) {
        law_result many = run_as(&job, graph, TDM_MODE_DP, n);
        for (int64_t i = 0; i < 3; i++) CHECK_NEAR(many.loss[i], one.loss[i], 2e-6 * one.loss[i]);
    }
    for (int k = 2; k <= 5; k++) {
        job.train.accumulate = k;
        law_result cut = run_as(&job, graph, TDM_MODE_SINGLE, 1);
        for (int64_t i = 0; i < 8; i++) CHECK_NEAR(cut.loss[i], one.loss[i], 1e-5 * one.loss[i]);
    }
    tdm_graph_free(graph);
}

TEST(accumulation_is_equal_in_all_modes) {
    tdm_job job;
    law_short_job(&job);
    job.train.accumulate = 4;
    job.train.clip_grad_norm = 0.5;
    tdm_graph *graph = law_graph(1, 1);
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    tdm_graph_free(graph);
}

TEST(clipping_by_value_is_equal_in_all_modes) {
    tdm_job job;
    law_short_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    job.train.clip_grad_value = 0.01;
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    CHECK(strcmp(plain.params, single.params) != 0);
    tdm_graph_free(graph);
}

TEST(small_buckets_are_equal) {
    tdm_job job;
    law_short_job(&job);
    job.parallel.ddp.bucket_cap_mb = 0.001;
    job.parallel.ddp.check_reduction = true;
    tdm_graph *graph = law_graph(1, 0);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 3);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 3);
    law_check_same(&dp, &ddp);
    tdm_graph_free(graph);
}

/* Frozen layers in front, in the middle and in part, with a batch norm that only evaluates. */
TEST(frozen_parameters_are_equal_in_all_modes) {
    static const tdm_texts frozen[] = {{.count = 2, .item = {"conv1.*", "bn1.*"}},
                                       {.count = 2, .item = {"bn1.*", "conv2.weight"}},
                                       {.count = 2, .item = {"*.bias", "fc1.*"}}};
    for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
        tdm_job job;
        law_short_job(&job);
        tdm_graph *graph = law_graph(1, 1);
        law_result all = run_as(&job, graph, TDM_MODE_SINGLE, 3);
        job.freeze = frozen[i];
        job.train.accumulate = 2;
        job.train.clip_grad_norm = 0.5;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 3);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, 3);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 3);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        CHECK(strcmp(all.params, single.params) != 0);
        for (int c = 0; c < 32; c++) /* running mean and variance of 16 channels, as they began */
            CHECK(i == 2 || single.buffers[c] == (c < 16 ? 0.0f : 1.0f));
        CHECK(all.buffers[0] != 0.0f);
        tdm_graph_free(graph);
    }
}

TEST(groups_are_equal_in_all_modes) {
    tdm_job job;
    law_short_job(&job);
    job.freeze = (tdm_texts){.count = 1, .item = {"conv1.*"}};
    job.schedule.type = TDM_SCHEDULE_COSINE;
    job.schedule.per = TDM_SCHEDULE_PER_STEP;
    tdm_graph *graph = law_graph(1, 1);
    law_result plain = run_as(&job, graph, TDM_MODE_DP, 2);
    job.optimizer.groups.count = 2;
    job.optimizer.groups.item[0] =
        (tdm_param_group){.params = {.count = 2, .item = {"*.bias", "bn1.*"}}, .lr = NAN, .weight_decay = NAN};
    job.optimizer.groups.item[1] =
        (tdm_param_group){.params = {.count = 1, .item = {"fc*"}}, .lr = 1e-2, .weight_decay = 0};
    law_result same = run_as(&job, graph, TDM_MODE_DP, 2);
    law_check_same(&plain, &same); /* groups with the optimizer's own settings are no groups */
    job.optimizer.groups.item[0].weight_decay = 0.1;
    job.optimizer.groups.item[1].lr = 1e-3;
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    CHECK(strcmp(plain.params, single.params) != 0);
    tdm_graph_free(graph);
}

/* Norms of parameters are the same whoever takes them, and however many threads there are. */
TEST(layerwise_steps_are_equal_in_all_modes) {
    tdm_job job;
    law_job(&job);
    job.optimizer.type = TDM_LARS;
    job.optimizer.lr = 4;
    job.optimizer.momentum = 0.9;
    job.optimizer.weight_decay = 1e-3;
    job.train.clip_grad_norm = 0.5;
    job.train.per_device = 16;
    job.train.steps = 4 / TDM_EVERY(2);
    job.parallel.threads_per_device = 1;
    job.freeze = (tdm_texts){.count = 1, .item = {"conv1.weight"}};
    tdm_graph *graph = wide_graph();
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    job.parallel.threads_per_device = 3;
    law_result shared = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 3);
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 3);
    law_check_same(&single, &shared);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    job.optimizer.exclude_1d = false;
    law_result all = run_as(&job, graph, TDM_MODE_DP, 3);
    job.optimizer.type = TDM_SGD;
    law_result plain = run_as(&job, graph, TDM_MODE_DP, 3);
    CHECK(strcmp(all.params, single.params) != 0 && strcmp(plain.params, single.params) != 0);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(modes_are_equal); RUN(series_are_equal_in_all_modes); RUN(several_inputs_are_equal_in_all_modes);
          RUN(exposed_time_is_part_of_comm); RUN(a_run_repeats); RUN(loader_threads_change_nothing);
          RUN(mixed_samples_are_equal); RUN(weights_of_classes_are_equal_in_all_modes);
          RUN(weights_of_mixed_samples_are_equal); RUN(soft_targets_are_equal_in_all_modes);
          RUN(threads_change_nothing); RUN(recomputing_changes_nothing); RUN(bf16_is_equal_in_all_modes);
          RUN(variants_of_dp_are_equal); RUN(cutting_the_batch_changes_only_rounding);
          RUN(accumulation_is_equal_in_all_modes); RUN(clipping_by_value_is_equal_in_all_modes);
          RUN(small_buckets_are_equal); RUN(frozen_parameters_are_equal_in_all_modes);
          RUN(groups_are_equal_in_all_modes); RUN(layerwise_steps_are_equal_in_all_modes);)
