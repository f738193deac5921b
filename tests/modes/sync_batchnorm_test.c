/* parallel.sync_batchnorm: the same bits in single, dp and ddp; and, within rounding, the numbers of one device that
 * has all rows. */
#include <math.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

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

static law_result check_synced(tdm_job *job, const tdm_graph *graph, int devices) {
    law_result single = run_as(job, graph, TDM_MODE_SINGLE, devices);
    law_result dp = run_as(job, graph, TDM_MODE_DP, devices);
    law_result ddp = run_as(job, graph, TDM_MODE_DDP, devices);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    return single;
}

static void check_modes(tdm_job *job, const tdm_graph *graph, int devices) {
    const law_result single = check_synced(job, graph, devices);
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
    job.parallel.ddp.join = true;
    job.data.train.samples = 5;
    job.data.drop_last = false;
    job.train.per_device = 2;
    job.train.steps = 4;
    const law_result dp = run_as(&job, graph, TDM_MODE_DP, 4);
    job.train.per_device = 8;
    const law_result whole = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    CHECK_INT(dp.steps, 4);
    for (int i = 0; i < 4; i++) CHECK_NEAR(dp.loss[i], whole.loss[i], 1e-6 * whole.loss[i]);
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

/* ---- with parallel.ddp.join: the rows that are there ---- */

/* 6 rows a device, and the last batch's are 6 and 5 on two devices; on three 2, 2 and 1, in three micro-batches of one
 * row, of which the last device runs out first; on four 2, 2, 2 and 1; and 5, 4 and 4, where the first device has three
 * micro-batches and the others four. */
TEST(uneven_modes_are_equal) {
    static const struct { int devices, micro, samples; } cases[] = {{2, 1, 23}, {3, 3, 23}, {4, 2, 31}, {3, 4, 31}};
    tdm_graph *graph = net();
    for (int i = 0; i < 4; i++) {
        tdm_job job;
        job_of(&job);
        job.data.drop_last = false;
        job.data.train.samples = cases[i].samples;
        job.train.steps = 6 / TDM_EVERY(2); /* an epoch has two */
        job.train.accumulate = cases[i].micro;
        job.train.clip_grad_norm = 0.5;
        job.parallel.ddp.join = true;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.parallel.ddp.check_reduction = i % 2 == 1;
        job.parallel.ddp.broadcast_buffers = i < 2;
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        (void)check_synced(&job, graph, cases[i].devices);
    }
    tdm_graph_free(graph);
}

/* 4 of 7 ranks have none of the last batch's 3 rows. */
TEST(ranks_without_rows_are_equal) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    job.data.drop_last = false;
    job.data.train.samples = 17;
    job.train.steps = 5;
    job.train.per_device = 2;
    job.train.accumulate = 2;
    job.parallel.ddp.join = true;
    (void)check_synced(&job, graph, 7);
    job.parallel.kernels = TDM_KERNELS_REF;
    job.train.precision = TDM_BF16;
    (void)check_synced(&job, graph, 7);
    tdm_graph_free(graph);
}

/* A small net in double: linear, batch norm, tanh, linear, the mean squared error. Gradients are differences. */
enum { SAMPLES = 11, INPUTS = 3, HIDDEN = 4, STEP = 8, PARAMS = HIDDEN * INPUTS + HIDDEN * 4 + 1 };
static const double rate = 0.5;

typedef struct judge {
    double x[SAMPLES][INPUTS], y[SAMPLES];
    double param[PARAMS]; /* as the run lists them: weight and bias of each layer */
    double mean[HIDDEN], variance[HIDDEN];
} judge;

static double loss_of(judge *j, int first, int rows, bool tracks) {
    const double *w = j->param, *b = w + HIDDEN * INPUTS, *gamma = b + HIDDEN, *beta = gamma + HIDDEN;
    const double *v = beta + HIDDEN, *c = v + HIDDEN;
    double out[SAMPLES] = {0}, sum = 0;
    for (int h = 0; h < HIDDEN; h++) {
        double z[SAMPLES], mean = 0, squares = 0;
        for (int i = 0; i < rows; i++) {
            z[i] = b[h];
            for (int k = 0; k < INPUTS; k++) z[i] += w[h * INPUTS + k] * j->x[first + i][k];
            mean += z[i] / rows;
        }
        for (int i = 0; i < rows; i++) squares += (z[i] - mean) * (z[i] - mean);
        for (int i = 0; i < rows; i++)
            out[i] += v[h] * tanh((z[i] - mean) / sqrt(squares / rows + 1e-5) * gamma[h] + beta[h]);
        if (tracks) j->mean[h] = 0.9 * j->mean[h] + 0.1 * mean;
        if (tracks) j->variance[h] = 0.9 * j->variance[h] + 0.1 * squares / (rows - 1);
    }
    for (int i = 0; i < rows; i++) sum += pow(out[i] + *c - j->y[first + i], 2) / rows;
    return sum;
}

static double step_of(judge *j, int first, int rows) {
    const double loss = loss_of(j, first, rows, true), h = 1e-5;
    double gradient[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
        const double kept = j->param[i];
        j->param[i] = kept + h;
        gradient[i] = loss_of(j, first, rows, false);
        j->param[i] = kept - h;
        gradient[i] = (gradient[i] - loss_of(j, first, rows, false)) / (2 * h);
        j->param[i] = kept;
    }
    for (int i = 0; i < PARAMS; i++) j->param[i] -= rate * gradient[i];
    return loss;
}

/* Writes the samples as a table, and reads the first parameters of a run that trains on it. */
static void open_judge(judge *j, const tdm_job *job, const tdm_graph *graph) {
    static const char *const names[] = {"a.weight", "a.bias", "n.weight", "n.bias", "b.weight", "b.bias"};
    FILE *table = fopen(job->data.train.path, "w");
    REQUIRE(table != NULL);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) fprintf(table, "%g,", j->x[i][k] = (double)((i * 7 + k * 5) % 16) / 8 - 1);
        fprintf(table, "%g\n", j->y[i] = (double)(i * 3 % 8) / 4 - 1);
    }
    fclose(table);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    int at = 0;
    REQUIRE_OK(tdm_run_open(&run, job, graph, &options));
    for (int i = 0; i < 6; i++) {
        static const int counts[] = {HIDDEN * INPUTS, HIDDEN, HIDDEN, HIDDEN, HIDDEN, 1};
        float values[HIDDEN * INPUTS];
        CHECK_OK(tdm_run_read(run, names[i], values, (size_t)counts[i] * sizeof(float)));
        for (int k = 0; k < counts[i]; k++) j->param[at++] = values[k];
    }
    for (int h = 0; h < HIDDEN; h++) j->mean[h] = 0, j->variance[h] = 1;
    tdm_run_close(run);
}

static tdm_graph *small_net(void) {
    static const tdm_attr hidden[] = {{"out", "4", {0}}}, out[] = {{"out", "1", {0}}};
    tdm_graph *g = NULL;
    tdm_value y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){INPUTS}, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "a", &y, 1, hidden, 1, &y));
    CHECK_OK(tdm_graph_add(g, "batchnorm1d", "n", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "tanh", "t", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "b", &y, 1, out, 1, &y));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

/* One batch of all rows that are there: 8, 3 on four ranks, of which one has none, and 8 again. */
TEST(the_rows_that_are_there_are_one_batch) {
    char folder[256], path[300];
    static judge j;
    tdm_graph *graph = small_net();
    tdm_job job;
    job_of(&job);
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/rows.csv", folder);
    job.data.train = job.data.eval;
    job.data.train.format = TDM_DATA_CSV;
    job.data.train.header = TDM_CSV_HEADER_NO;
    job.data.train.path = path;
    job.data.eval.format = TDM_DATA_NONE;
    job.data.drop_last = job.data.shuffle = false;
    job.loss.type = TDM_MSE;
    job.optimizer.momentum = 0;
    job.optimizer.lr = rate;
    job.train.steps = 3;
    job.train.per_device = STEP / 4;
    job.parallel.ddp.join = true;
    open_judge(&j, &job, graph);
    const law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 4);
    for (int i = 0; i < 3; i++) {
        const double loss = step_of(&j, i == 1 ? STEP : 0, i == 1 ? SAMPLES - STEP : STEP);
        CHECK_NEAR(ddp.loss[i], loss, 1e-6 * (1 + loss));
    }
    for (int h = 0; h < HIDDEN; h++) {
        CHECK_NEAR(ddp.buffers[h], j.mean[h], 1e-6);
        CHECK_NEAR(ddp.buffers[HIDDEN + h], j.variance[h], 1e-6);
    }
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* Two ranks, of which one has the last row: batch norm needs two values, and there is one. */
TEST(one_row_alone_is_refused) {
    tdm_graph *graph = net();
    tdm_job job;
    job_of(&job);
    job.data.drop_last = false;
    job.data.train.samples = 13;
    job.parallel.ddp.join = true;
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){.count = 2, .item = {0, 1}};
    const law_result one = law_run(&job, graph);
    CHECK_INT(one.status, TDM_E_CONFIG);
    CHECK(one.alike);
    CHECK_HAS(one.message, "use another train.batch, or data.drop_last: true");
    job.data.train.samples = 14; /* a row on each rank */
    job.train.steps = 3;
    const law_result two = law_run_ok(&job, graph);
    CHECK_INT(two.steps, 3);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(uneven_modes_are_equal); RUN(ranks_without_rows_are_equal); RUN(the_rows_that_are_there_are_one_batch);
          RUN(one_row_alone_is_refused); RUN(modes_are_equal); RUN(variants_are_equal); RUN(variants_of_dp_are_equal);
          RUN(a_replica_without_rows_takes_no_part); RUN(one_big_batch_has_the_same_numbers);
          RUN(a_row_on_each_device_is_enough);)
