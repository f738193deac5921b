/* Numbers that are none, in every mode: labels that do not count, a broken sample, weights that run away. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/checkpoint.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { SAMPLES = 48, WIDTH = 3 * 8 * 8, BATCH = 12, IGNORED = -100 };

static char folder[256], x_path[264], y_path[264];
static float x[SAMPLES][WIDTH];
static int64_t y[SAMPLES];

static void write_npy(const char *path, const char *dtype, const char *shape, const void *data, size_t bytes) {
    char head[128];
    FILE *file = fopen(path, "wb");
    memset(head, ' ', sizeof(head));
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length =
        snprintf(head + 10, sizeof(head) - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, shape);
    head[10 + length] = ' ';
    head[127] = '\n';
    if (file == NULL || fwrite(head, 1, 128, file) != 128 || fwrite(data, 1, bytes, file) != bytes) exit(1);
    fclose(file);
}

/* 4 steps of 12 samples in their order, and labels that all count. */
static void begin(tdm_job *job) {
    test_folder_make(folder);
    snprintf(x_path, sizeof(x_path), "%s/x.npy", folder);
    snprintf(y_path, sizeof(y_path), "%s/y.npy", folder);
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % 5;
        for (int k = 0; k < WIDTH; k++) x[i][k] = (float)((i * 7 + k) % 11) / 11.0f;
    }
    law_job(job);
    job->data.train.format = TDM_DATA_NPY;
    job->data.train.x = x_path;
    job->data.train.y = y_path;
    job->data.shuffle = false;
    job->data.eval.format = TDM_DATA_NONE;
    job->train.steps = SAMPLES / BATCH;
}

static void write_data(void) {
    write_npy(x_path, "<f4", "(48, 3, 8, 8)", x, sizeof(x));
    write_npy(y_path, "<i8", "(48,)", y, sizeof(y));
}

static void end(void) {
    test_folder_remove(folder);
}

/* Way 0: two replicas played by one device; 1: dp; 2: ddp. */
enum { WAYS = 3 };
static void set_way(tdm_job *job, int way) {
    static const int modes[WAYS] = {TDM_MODE_SINGLE, TDM_MODE_DP, TDM_MODE_DDP};
    job->parallel.mode = modes[way];
    job->parallel.device_ids = (tdm_ints){2, {0, 1}};
    job->parallel.dp.loss = TDM_DP_LOSS_REPLICA;
}

static int same_loss(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

TEST(labels_that_do_not_count) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    law_result result[WAYS];
    begin(&job);
    for (int i = 12; i < 24; i++) y[i] = IGNORED;    /* step 2: all */
    for (int i = 24; i < 36; i += 2) y[i] = IGNORED; /* step 3: those of replica 0 */
    write_data();
    for (int way = 0; way < WAYS; way++) {
        set_way(&job, way);
        result[way] = law_run_ok(&job, graph);
        CHECK_INT(result[way].steps, 4);
        for (int i = 0; i < 4; i++) {
            CHECK((i == 1) == isnan(result[way].loss[i]));
            CHECK(same_loss(result[way].loss[i], result[0].loss[i]));
        }
        CHECK_TEXT(result[way].params, result[0].params);
        CHECK(memcmp(result[way].buffers, result[0].buffers, sizeof(result[0].buffers)) == 0);
    }
    tdm_graph_free(graph);
    end();
}

TEST(the_broken_sample_is_named) {
    tdm_job job;
    tdm_graph *graph = law_graph(0, 0);
    begin(&job);
    x[29][100] = NAN;
    write_data();
    for (int way = 0; way < WAYS; way++) {
        set_way(&job, way);
        law_result result = law_run(&job, graph);
        CHECK_INT(result.status, TDM_E_NUMERIC);
        CHECK(result.alike);
        CHECK_HAS(result.message, "the loss of step 3 is nan: sample 29 of data.train holds infinite numbers or NaN");
    }
    tdm_graph_free(graph);
    end();
}

static tdm_graph *linear_graph(void) {
    tdm_graph *g = NULL;
    tdm_value v;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){3, 8, 8}, &v));
    CHECK_OK(tdm_graph_add(g, "flatten", "flat", &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc", &v, 1, &(tdm_attr){"out", "5", {0}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

/* A loss that is a float, and a gradient that is none after it was multiplied by lr; the steps before change nothing.
 */
TEST(weights_that_run_away) {
    tdm_job job;
    tdm_graph *graph = linear_graph();
    begin(&job);
    for (int i = 0; i < 24; i++) y[i] = IGNORED;
    for (int k = 0; k < WIDTH; k++) x[30][k] = x[31][k] = k % 2 == 0 ? 1e35f : -1e35f; /* of two classes */
    write_data();
    for (int way = 0; way < WAYS; way++) {
        char run_dir[280], text[512];
        snprintf(run_dir, sizeof(run_dir), "%s/run-%d", folder, way);
        set_way(&job, way);
        job.optimizer.type = TDM_SGD;
        job.optimizer.lr = 1e5;
        job.run.dir = run_dir;
        job.checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        law_result result = law_run(&job, graph);
        CHECK_INT(result.status, TDM_E_NUMERIC);
        CHECK(result.alike);
        CHECK_INT(result.steps, 3);
        CHECK_HAS(result.message, "the checkpoint of step 3 is not saved: tensor 'fc.weight' is not finite");
        CHECK_OK(tdm_checkpoint_verify(NULL, run_dir, NULL));
        snprintf(text, sizeof(text), "%s/checkpoints/step-00000002", run_dir);
        CHECK_OK(tdm_checkpoint_verify(NULL, text, NULL));
    }
    tdm_graph_free(graph);
    end();
}

TEST_MAIN(RUN(labels_that_do_not_count); RUN(the_broken_sample_is_named); RUN(weights_that_run_away);)
