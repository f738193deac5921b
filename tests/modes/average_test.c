/* parallel.ddp.average against torch's DistributedDataParallel over gloo, where labels are ignored and each rank has
 * another number of those that count. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "average_golden.h"
#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

static char folder[256], x_path[264], y_path[264];

static void write_npy(const char *path, const char *type, const char *shape, const void *numbers, size_t bytes) {
    char head[129];
    snprintf(head, sizeof(head), "\x93NUMPY\x01%c\x76%c{'descr': '%s', 'fortran_order': False, 'shape': %s, }", 1, 1,
             type, shape);
    size_t used = strlen(head);
    memset(head + used, ' ', 127 - used);
    head[127] = '\n';
    head[7] = head[9] = '\0'; /* version 1.0, and the high byte of the length */
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    CHECK(fwrite(head, 1, 128, file) == 128 && fwrite(numbers, 1, bytes, file) == bytes);
    fclose(file);
}

static void write_data(void) {
    char shape[32];
    test_folder_make(folder);
    snprintf(x_path, sizeof(x_path), "%s/x.npy", folder);
    snprintf(y_path, sizeof(y_path), "%s/y.npy", folder);
    snprintf(shape, sizeof(shape), "(%d, %d)", AVERAGE_SAMPLES, AVERAGE_INPUTS);
    write_npy(x_path, "<f4", shape, average_x, sizeof(average_x));
    snprintf(shape, sizeof(shape), "(%d,)", AVERAGE_SAMPLES);
    write_npy(y_path, "<i8", shape, average_y, sizeof(average_y));
}

static tdm_graph *new_graph(void) {
    tdm_graph *g = NULL;
    tdm_value v;
    const int64_t inputs = AVERAGE_INPUTS;
    char classes[8];
    snprintf(classes, sizeof(classes), "%d", AVERAGE_CLASSES);
    if (tdm_graph_new(&g, NULL) != TDM_OK) exit(1);
    CHECK_OK(tdm_graph_input(g, 1, &inputs, &v));
    CHECK_OK(tdm_graph_add(g, "linear", NULL, &v, 1, (tdm_attr[]){{.key = "out", .text = "8"}}, 1, &v));
    CHECK_OK(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", NULL, &v, 1, (tdm_attr[]){{.key = "out", .text = classes}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

static void set_job(tdm_job *job, int mode, int average) {
    law_job(job);
    job->seed = AVERAGE_SEED;
    job->data.train = (tdm_data_spec){.format = TDM_DATA_NPY, .x = x_path, .y = y_path};
    job->data.eval = (tdm_data_spec){.format = TDM_DATA_NONE};
    job->data.shuffle = false;
    job->optimizer.type = TDM_SGD;
    job->optimizer.lr = average_lr;
    job->train.steps = AVERAGE_STEPS;
    job->train.per_device = AVERAGE_PER_DEVICE;
    job->parallel.mode = mode;
    job->parallel.device_ids = (tdm_ints){.count = AVERAGE_RANKS};
    for (int i = 0; i < AVERAGE_RANKS; i++) job->parallel.device_ids.item[i] = i;
    job->parallel.ddp.average = average;
}

static void check_losses(const law_result *result, const double *want) {
    CHECK_INT(result->steps, AVERAGE_STEPS);
    for (int i = 0; i < AVERAGE_STEPS; i++) CHECK_NEAR(result->loss[i], want[i], 2e-6 * want[i]);
}

TEST(as_torch_over_gloo) {
    tdm_graph *graph = new_graph();
    tdm_job job;
    double apart = 0;
    for (int i = 0; i < AVERAGE_STEPS; i++) apart = fmax(apart, fabs(average_by_ranks[i] - average_by_samples[i]));
    CHECK(apart > 0.01); /* else the test would see nothing */
    set_job(&job, TDM_MODE_DDP, TDM_AVERAGE_RANKS);
    law_result ranks = law_run_ok(&job, graph);
    check_losses(&ranks, average_by_ranks);
    set_job(&job, TDM_MODE_DDP, TDM_AVERAGE_SAMPLES);
    law_result samples = law_run_ok(&job, graph);
    check_losses(&samples, average_by_samples);
    tdm_graph_free(graph);
}

/* In dp and single there is only one mean; there ranks' means are refused, unless there is one rank. */
TEST(other_modes) {
    tdm_graph *graph = new_graph();
    tdm_job job;
    set_job(&job, TDM_MODE_DDP, TDM_AVERAGE_SAMPLES);
    law_result ddp = law_run_ok(&job, graph);
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DP; mode++) {
        set_job(&job, mode, TDM_AVERAGE_SAMPLES);
        law_result same = law_run_ok(&job, graph);
        law_check_same(&ddp, &same);
        set_job(&job, mode, TDM_AVERAGE_RANKS);
        law_result refused = law_run(&job, graph);
        CHECK_INT(refused.status, TDM_E_CONFIG);
        CHECK_HAS(refused.message, "parallel.ddp.average: ranks needs mode ddp");
        job.parallel.device_ids.count = 1;
        law_result one = law_run_ok(&job, graph);
        job.parallel.ddp.average = TDM_AVERAGE_SAMPLES;
        law_result other = law_run_ok(&job, graph);
        law_check_same(&one, &other);
    }
    tdm_graph_free(graph);
}

/* Without ignored labels both are the same to the bit. */
TEST(nothing_ignored) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    law_job(&job);
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){3, {0, 1, 2}};
    law_result samples = law_run_ok(&job, graph);
    job.parallel.ddp.average = TDM_AVERAGE_RANKS;
    law_result ranks = law_run_ok(&job, graph);
    CHECK_TEXT(samples.params, ranks.params);
    for (int i = 0; i < samples.steps; i++) CHECK_NEAR(samples.loss[i], ranks.loss[i], 1e-15 * fabs(samples.loss[i]));
    tdm_graph_free(graph);
}

/* Ranks have labels of different weights together. */
TEST(classes_of_different_weights) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    static const double weight[] = {1, 2, 3, 4, 5};
    law_job(&job);
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){3, {0, 1, 2}};
    job.loss.weight = (tdm_numbers){.count = 5, .item = weight};
    law_result samples = law_run_ok(&job, graph);
    job.parallel.ddp.average = TDM_AVERAGE_RANKS;
    law_result ranks = law_run_ok(&job, graph);
    CHECK(strcmp(samples.params, ranks.params) != 0);
    tdm_graph_free(graph);
}

static void write_labels(const int64_t *y) {
    char shape[32];
    snprintf(shape, sizeof(shape), "(%d,)", AVERAGE_SAMPLES);
    write_npy(y_path, "<i8", shape, y, AVERAGE_SAMPLES * sizeof(*y));
}

/* Of the first step's rows only rank 1's have labels that count: the mean over the ranks that have a mean is the mean
 * over samples then. */
TEST(a_rank_without_any) {
    tdm_graph *graph = new_graph();
    tdm_job job;
    int64_t y[AVERAGE_SAMPLES];
    memcpy(y, average_y, sizeof(y));
    for (int i = 0; i < AVERAGE_RANKS * AVERAGE_PER_DEVICE; i++) y[i] = i % AVERAGE_RANKS == 0 ? -100 : 1;
    write_labels(y);
    set_job(&job, TDM_MODE_DDP, TDM_AVERAGE_RANKS);
    law_result ranks = law_run_ok(&job, graph);
    set_job(&job, TDM_MODE_DDP, TDM_AVERAGE_SAMPLES);
    law_result samples = law_run_ok(&job, graph);
    CHECK_NEAR(ranks.loss[0], samples.loss[0], 1e-12 * samples.loss[0]);
    write_labels(average_y);
    tdm_graph_free(graph);
}

/* The first of each epoch's three steps has no label that counts, on either rank: it has no loss, in both means, and
 * the weights stay. */
TEST(all_ignored) {
    tdm_graph *graph = new_graph();
    tdm_job job;
    int64_t y[AVERAGE_SAMPLES];
    memcpy(y, average_y, sizeof(y));
    for (int i = 0; i < AVERAGE_RANKS * AVERAGE_PER_DEVICE; i++) y[i] = -100;
    write_labels(y);
    for (int average = TDM_AVERAGE_SAMPLES; average <= TDM_AVERAGE_RANKS; average++) {
        set_job(&job, TDM_MODE_DDP, average);
        law_result result = law_run_ok(&job, graph);
        CHECK_INT(result.steps, AVERAGE_STEPS);
        for (int i = 0; i < AVERAGE_STEPS; i++) CHECK(i % 3 == 0 ? isnan(result.loss[i]) : isfinite(result.loss[i]));
        job.train.steps = 1;
        law_result first = law_run_ok(&job, graph);
        job.optimizer.lr = 0;
        law_result still = law_run_ok(&job, graph);
        CHECK_TEXT(first.params, still.params);
    }
    tdm_graph_free(graph);
}

TEST_MAIN(write_data(); RUN(as_torch_over_gloo); RUN(other_modes); RUN(nothing_ignored);
          RUN(classes_of_different_weights); RUN(a_rank_without_any); RUN(all_ignored); test_folder_remove(folder);)
