/* Every allocation fails once: building a graph, opening, a step, an evaluation, a save, closing. Each time the answer
 * is TDM_E_MEMORY and nothing is left. */
#include <tandem/checkpoint.h>

#include "tests/api/api.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

static tdm_status build(const tdm_host *host, tdm_graph **out) {
    const tdm_attr conv[] = {{"out", "4", {0}}, {"kernel", "3", {0}}}, fc[] = {{"out", "3", {0}}};
    tdm_value v, w;
    tdm_status status = tdm_graph_new(out, host);
    if (status == TDM_OK) status = tdm_graph_input(*out, 3, (const int64_t[]){2, 6, 6}, &v);
    if (status == TDM_OK) status = tdm_graph_add(*out, "conv2d", "conv", &v, 1, conv, 2, &v);
    if (status == TDM_OK) status = tdm_graph_add(*out, "batchnorm2d", NULL, &v, 1, NULL, 0, &v);
    if (status == TDM_OK) status = tdm_graph_add(*out, "relu", NULL, &v, 1, NULL, 0, &w);
    if (status == TDM_OK) status = tdm_graph_add(*out, "add", NULL, (tdm_value[]){v, w}, 2, NULL, 0, &v);
    if (status == TDM_OK) status = tdm_graph_add(*out, "flatten", NULL, &v, 1, NULL, 0, &v);
    if (status == TDM_OK) status = tdm_graph_add(*out, "linear", "fc", &v, 1, fc, 1, &v);
    if (status == TDM_OK) status = tdm_graph_finish(*out, v);
    return status;
}

static tdm_status use(tdm_run *run, const char *folder) {
    double loss, accuracy;
    float x[72] = {0}, y[3];
    char *text = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_status status = tdm_run_step(run, 1);
    if (status == TDM_OK) status = tdm_run_evaluate(run, &loss, &accuracy);
    if (status == TDM_OK) status = tdm_run_predict(run, x, 1, y);
    if (status == TDM_OK) status = tdm_run_get_state(run, &state);
    if (status == TDM_OK) status = tdm_run_print(run, "plan", &text);
    tdm_free(text);
    text = NULL;
    if (status == TDM_OK) status = tdm_run_print(run, "plan.json", &text);
    tdm_free(text);
    text = NULL;
    if (status == TDM_OK) status = tdm_run_print(run, "evaluation.json", &text);
    tdm_free(text);
    if (status == TDM_OK && folder != NULL) status = tdm_run_save(run, folder);
    if (status == TDM_OK && folder != NULL) status = tdm_run_load(run, folder);
    return status;
}

static tdm_status whole_life(const tdm_host *host, const tdm_job *job, const char *folder) {
    tdm_graph *graph = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = host;
    tdm_status status = build(host, &graph);
    if (status == TDM_OK) status = tdm_run_open(&run, job, graph, &options);
    if (status == TDM_OK) status = use(run, folder);
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

/* `stride` above 1 takes every so many allocations, another residue at each call. */
static void sweep(const tdm_job *job, const char *folder, long first, long stride) {
    for (long k = first;; k += stride) {
        tdm_failing_host failing;
        char own[300]; /* nothing of an earlier life may help */
        snprintf(own, sizeof(own), "%s/%ld", folder, k);
        tdm_failing_host_init(&failing, k);
        tdm_status status = whole_life(&failing.host, job, folder != NULL ? own : NULL);
        if (failing.live != 0) fprintf(stderr, "allocation %ld failed: %ld are left\n", k, (long)failing.live);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK_OK(status);
            CHECK(k > 60);
            return;
        }
        if (status == TDM_OK) { /* tidying up behind a committed checkpoint may fail: it is there all the same */
            CHECK(folder != NULL);
            CHECK_OK(tdm_checkpoint_verify(NULL, own, NULL));
            continue;
        }
        CHECK_STATUS(status, TDM_E_MEMORY);
        CHECK_INT(tdm_error_last()->status, TDM_E_MEMORY);
    }
}

static void sweep_modes(int kernels) {
    char folder[256];
    tdm_job job;
    test_folder_make(folder);
    api_job(&job);
    job.parallel.kernels = kernels;
    sweep(&job, folder, 1, 1);
    job.train.accumulate = 2;
    job.parallel.device_ids = (tdm_ints){2, {0, 1}};
    sweep(&job, NULL, 1, 3); /* single plays two replicas */
    job.parallel.mode = TDM_MODE_DP;
    job.data.workers = 0;
    sweep(&job, NULL, 2, 3);
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids.count = 1;
    sweep(&job, NULL, 1, 3);
    job.parallel.mode = TDM_MODE_SINGLE;
    job.run.dir = folder;
    job.log.tensorboard = true;
    job.train.ema_decay = 0.9;
    sweep(&job, NULL, 3, 3);
    job.run.dir = NULL;
    job.parallel.device_ids.count = 1;
    sweep(&job, folder, 2, 3);
    test_folder_remove(folder);
}

TEST(reference_kernels) {
    sweep_modes(TDM_KERNELS_REF);
}
TEST(best_kernels) {
    sweep_modes(TDM_KERNELS_AUTO);
}

TEST(configs) {
    static const char yaml[] =
        "tandem: 1\nmodel: {input: 4, layers: [{linear: 3}, relu, {linear: 2}]}\n"
        "data: {train: {format: synthetic, samples: 8}}\ntrain: {steps: 1, batch: {global: 4}}\n";
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        tdm_config *config = NULL;
        char *text = NULL;
        tdm_failing_host_init(&failing, k);
        tdm_status status = tdm_config_parse(&config, &failing.host, yaml, sizeof(yaml) - 1, "x", NULL);
        if (status == TDM_OK) status = tdm_config_override(config, "seed=3");
        if (status == TDM_OK) status = tdm_config_check(config);
        if (status == TDM_OK) status = tdm_config_print(config, TDM_CONFIG_ORIGINS, &text);
        tdm_free(text);
        tdm_config_free(config);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK_OK(status);
            return;
        }
        CHECK_STATUS(status, TDM_E_MEMORY);
    }
}

/* Fails the allocations behind the first step, one run after the other. */
typedef struct behind_a_step {
    tdm_failing_host failing; /* the host's user */
    long fail_after;
    char log[4096];
} behind_a_step;

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    behind_a_step *b = user;
    size_t used = strlen(b->log);
    (void)level, (void)subsystem;
    snprintf(b->log + used, sizeof(b->log) - used, "%s\n", line);
}

static int arm(const tdm_event *event, void *user) {
    behind_a_step *b = user;
    if (event->kind == TDM_EVENT_STEP && event->step == 1) b->failing.fail_at = b->failing.calls + b->fail_after;
    return 0;
}

/* A checkpoint is saved, whatever becomes of status.json behind it. */
TEST(no_memory_for_the_status_behind_a_checkpoint) {
    char folder[256], own[300], step[340];
    int told = 0;
    tdm_job job;
    test_folder_make(folder);
    api_job(&job);
    job.data.eval.format = TDM_DATA_NONE;
    job.data.workers = 0;
    job.train.steps = 2;
    job.run.dir = own;
    job.checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
    for (long after = 1;; after++) {
        behind_a_step b = {.fail_after = after};
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        tdm_graph *graph = api_graph(NULL);
        tdm_run *run = NULL;
        snprintf(own, sizeof(own), "%s/%ld", folder, after);
        tdm_failing_host_init(&b.failing, 0);
        b.failing.host.log = keep_line;
        b.failing.host.log_level = TDM_LOG_WARNING;
        options.host = &b.failing.host;
        options.on_event = arm;
        options.user = &b;
        tdm_status status = tdm_run_open(&run, &job, graph, &options);
        if (status == TDM_OK) status = tdm_run_train(run);
        tdm_run_close(run);
        tdm_graph_free(graph);
        CHECK_INT(b.failing.live, 0);
        if (strstr(b.log, "out of memory while writing status.json; training continues") != NULL) {
            told++;
            CHECK_OK(status);
            snprintf(step, sizeof(step), "%s/checkpoints/step-00000001", own);
            CHECK_OK(tdm_checkpoint_verify(NULL, step, NULL));
        }
        if (!b.failing.failed) break;
    }
    CHECK(told > 0);
    test_folder_remove(folder);
}

TEST_MAIN(RUN(reference_kernels); RUN(best_kernels); RUN(configs); RUN(no_memory_for_the_status_behind_a_checkpoint);)
