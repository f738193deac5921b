/* A run that is interrupted and resumed, in the same mode or another, ends with the bits of the uninterrupted one. */
#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

static char folder[256];

static void fresh_folder(void) {
    if (folder[0] != '\0') test_folder_remove(folder);
    test_folder_make(folder);
}

static void set_mode(tdm_job *job, int mode, int devices) {
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

static void interrupted(int optimizer, int mode_a, int mode_b, int devices, int64_t at) {
    tdm_job job;
    law_job(&job);
    job.optimizer.type = optimizer;
    job.optimizer.momentum = optimizer == TDM_SGD || optimizer == TDM_RMSPROP || optimizer == TDM_LARS ? 0.9 : 0;
    job.optimizer.centered = job.optimizer.amsgrad = true; /* every state that there is */
    job.optimizer.lr = optimizer == TDM_SGD ? 0.02 : optimizer == TDM_LARS ? 2 : 1e-2;
    job.schedule.type = TDM_SCHEDULE_COSINE;
    job.schedule.per = TDM_SCHEDULE_PER_STEP;
    job.schedule.total = 12;
    job.schedule.warmup_steps = 2;
    job.train.steps = 12; /* 50 samples, 6 a device: the interruption is in the middle of an epoch */
    set_mode(&job, mode_a, devices);
    tdm_graph *graph = law_graph(1, 1);
    law_result straight = law_run_ok(&job, graph);

    fresh_folder();
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = at;
    law_result first = law_run_ok(&job, graph);
    CHECK_INT(first.steps, at);
    job.train.steps = 12;
    set_mode(&job, mode_b, devices);
    law_result second = law_run_ok(&job, graph);
    CHECK_INT(second.steps, 12);
    CHECK_TEXT(second.params, straight.params);
    CHECK(memcmp(second.buffers, straight.buffers, sizeof(straight.buffers)) == 0);
    for (int64_t i = 0; i < at; i++) CHECK(first.loss[i] == straight.loss[i]);
    for (int64_t i = at; i < 12; i++) CHECK(second.loss[i] == straight.loss[i]);
    tdm_graph_free(graph);
}

TEST(same_mode) {
    interrupted(TDM_ADAM, TDM_MODE_SINGLE, TDM_MODE_SINGLE, 1, 3);
    interrupted(TDM_SGD, TDM_MODE_DP, TDM_MODE_DP, 2, 7);
    interrupted(TDM_ADAMW, TDM_MODE_DDP, TDM_MODE_DDP, 2, 5);
    interrupted(TDM_RMSPROP, TDM_MODE_SINGLE, TDM_MODE_SINGLE, 1, 7);
    interrupted(TDM_LARS, TDM_MODE_DP, TDM_MODE_DP, 2, 7);
}

TEST(another_mode) {
    interrupted(TDM_ADAM, TDM_MODE_DP, TDM_MODE_DDP, 2, 5);
    interrupted(TDM_SGD, TDM_MODE_DDP, TDM_MODE_SINGLE, 2, 4);
    interrupted(TDM_ADAM, TDM_MODE_SINGLE, TDM_MODE_DP, 3, 1);
    interrupted(TDM_RMSPROP, TDM_MODE_DDP, TDM_MODE_DP, 2, 5);
    interrupted(TDM_LARS, TDM_MODE_DDP, TDM_MODE_SINGLE, 2, 5);
}

/* Other numbers of devices see the same samples: the position is a number of samples. */
TEST(another_number_of_devices) {
    tdm_job job;
    law_job(&job);
    job.train.steps = 4;
    job.train.per_device = 6;
    set_mode(&job, TDM_MODE_DP, 2);
    tdm_graph *graph = law_graph(0, 1);
    fresh_folder();
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    (void)law_run_ok(&job, graph);
    job.train.steps = 6;
    set_mode(&job, TDM_MODE_SINGLE, 1);
    job.train.per_device = 12; /* the same global batch */
    law_result one = law_run_ok(&job, graph);
    CHECK_INT(one.steps, 6);

    law_job(&job);
    job.train.steps = 6;
    set_mode(&job, TDM_MODE_DP, 2);
    law_result straight = law_run_ok(&job, graph);
    for (int i = 4; i < 6; i++) CHECK_NEAR(one.loss[i], straight.loss[i], 1e-4 * straight.loss[i]);
    tdm_graph_free(graph);
}

/* Two ranks stop, and three go on, with the same global batch, which is what a launcher does that has lost or found a
 * host. */
static law_result after_two_ranks(tdm_job *job, const tdm_graph *graph, int mode) {
    fresh_folder();
    job->run.dir = folder;
    job->checkpoint.resume = "auto";
    job->train.steps = 4;
    set_mode(job, TDM_MODE_DDP, 2);
    (void)law_run_ok(job, graph);
    job->train.steps = 10;
    set_mode(job, mode, 3);
    return law_run_ok(job, graph);
}

TEST(another_number_of_ranks_has_the_bits_of_any_mode_with_it) {
    tdm_job job;
    law_job(&job);
    job.train.per_device = TDM_INT_NULL;
    job.train.global_batch = 12;
    tdm_graph *graph = law_graph(0, 1);
    const law_result ranks = after_two_ranks(&job, graph, TDM_MODE_DDP);
    const law_result one = after_two_ranks(&job, graph, TDM_MODE_SINGLE);
    const law_result threads = after_two_ranks(&job, graph, TDM_MODE_DP);
    CHECK_INT(ranks.steps, 10);
    CHECK_TEXT(ranks.params, one.params);
    CHECK_TEXT(ranks.params, threads.params);
    tdm_graph_free(graph);
}

TEST(another_model_is_refused) {
    tdm_job job;
    law_job(&job);
    job.train.steps = 2;
    fresh_folder();
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    tdm_graph *graph = law_graph(1, 1), *other = law_graph(0, 1);
    (void)law_run_ok(&job, graph);
    job.train.steps = 4;
    law_result result = law_run(&job, other);
    CHECK_INT(result.status, TDM_E_CHECKPOINT);
    CHECK_HAS(result.message, "bn1");
    job.optimizer.type = TDM_SGD;
    result = law_run(&job, graph);
    CHECK_INT(result.status, TDM_E_CHECKPOINT);
    CHECK_HAS(result.message, "adam");
    tdm_graph_free(graph);
    tdm_graph_free(other);
}

TEST_MAIN(RUN(same_mode); RUN(another_mode); RUN(another_number_of_devices);
          RUN(another_number_of_ranks_has_the_bits_of_any_mode_with_it); RUN(another_model_is_refused);
          if (folder[0] != '\0') test_folder_remove(folder);)
