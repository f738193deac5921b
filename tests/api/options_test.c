/* Structs that begin with their size, jobs filled by hand, and hosts: what is missing has its default, what is wrong is
 * refused with a sentence. */
#include <limits.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static tdm_graph *graph;

static tdm_status open_and_close(const tdm_job *job, const tdm_run_options *options) {
    tdm_run *run = (tdm_run *)(void *)&run;
    tdm_status status = tdm_run_open(&run, job, graph, options);
    if (status != TDM_OK) CHECK(run == NULL);
    tdm_run_close(run);
    return status;
}

static int events;
static int count_event(const tdm_event *event, void *user) {
    (void)event, (void)user;
    events++;
    return 0;
}

TEST(shorter_options_have_defaults) {
    tdm_job job;
    tdm_run *run = NULL;
    api_job(&job);
    job.train.steps = 1;
    tdm_run_options options;
    memset(&options, 0xAB, sizeof(options)); /* what an older program does not know is garbage */
    options.host = NULL, options.train = NULL, options.eval = NULL;
    options.on_event = count_event, options.user = NULL;
    options.size = offsetof(tdm_run_options, module_path);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    events = 0;
    CHECK_OK(tdm_run_train(run));
    CHECK(events > 0);
    tdm_run_close(run);
    options.size = sizeof(options.size);
    CHECK_OK(open_and_close(&job, &options));
}

TEST(longer_options_are_refused) {
    tdm_job job;
    api_job(&job);
    struct {
        tdm_run_options known;
        void *unknown;
    } options = {TDM_RUN_OPTIONS_INIT, NULL};
    options.known.size = sizeof(options);
    CHECK_STATUS(open_and_close(&job, &options.known), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "options.size");
    options.known.size = 0;
    CHECK_STATUS(open_and_close(&job, &options.known), TDM_E_USAGE);
}

TEST(job_of_another_size_is_refused) {
    tdm_job job;
    api_job(&job);
    job.size--;
    CHECK_STATUS(open_and_close(&job, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "its INIT macro or function");
    CHECK_STATUS(tdm_job_check(&job), TDM_E_USAGE);
    char *text = NULL;
    CHECK_STATUS(tdm_plan_print(&job, graph, 0, &text), TDM_E_USAGE);
    CHECK(text == NULL);
}

TEST(untouched_job_wants_length_and_batch) {
    tdm_job job;
    REQUIRE_OK(tdm_job_init(&job));
    CHECK_STATUS(tdm_job_check(&job), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "epochs and steps");
    job.train.epochs = 1;
    CHECK_STATUS(tdm_job_check(&job), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "per_device and global_batch");
    job.train.per_device = 1;
    CHECK_OK(tdm_job_check(&job));
    job.train.steps = 1;
    CHECK_STATUS(tdm_job_check(&job), TDM_E_CONFIG);
}

/* One member wrong at a time: opening, checking and printing say which. */
#define WRONG(member, value, words)                                        \
    do {                                                                   \
        tdm_job job;                                                       \
        char *text = NULL;                                                 \
        api_job(&job);                                                     \
        job.member = (value);                                              \
        CHECK_STATUS(tdm_job_check(&job), TDM_E_CONFIG);                   \
        CHECK_HAS(tdm_error_message(), (words));                           \
        CHECK_STATUS(open_and_close(&job, NULL), TDM_E_CONFIG);            \
        CHECK_STATUS(tdm_plan_print(&job, graph, 1, &text), TDM_E_CONFIG); \
    } while (0)

TEST(values_out_of_range_are_named) {
    WRONG(parallel.mode, 3, "parallel.mode must be one of single, dp, ddp, got number 3");
    WRONG(parallel.mode, -1, "parallel.mode");
    WRONG(parallel.device, 99, "parallel.device");
    WRONG(parallel.kernels, 9, "parallel.kernels");
    WRONG(parallel.threads_per_device, 0, "parallel.threads_per_device must be");
    WRONG(parallel.threads_per_device, INT64_MAX, "parallel.threads_per_device must be");
    WRONG(parallel.device_ids.count, 0, "parallel.device_ids");
    WRONG(parallel.device_ids.count, 65, "parallel.device_ids");
    WRONG(parallel.device_ids.count, INT_MIN, "parallel.device_ids");
    WRONG(parallel.device_ids.item[0], -1, "parallel.device_ids");
    WRONG(parallel.dp.scatter, 7, "parallel.dp.scatter");
    WRONG(parallel.dp.loss, 7, "parallel.dp.loss");
    WRONG(parallel.ddp.backend, -7, "parallel.ddp.backend");
    WRONG(parallel.ddp.bucket_cap_mb, -1.0, "parallel.ddp.bucket_cap_mb");
    WRONG(parallel.ddp.grace, NAN, "parallel.ddp.grace");
    WRONG(parallel.ddp.timeout, -5, "parallel.ddp.timeout");
    WRONG(parallel.ddp.heartbeat, 0.5, "parallel.ddp.heartbeat must be");
    WRONG(train.accumulate, 0, "train.accumulate must be");
    WRONG(train.accumulate, TDM_INT_NULL, "train.accumulate");
    WRONG(train.steps, 0, "train.steps");
    WRONG(train.steps, -4, "train.steps");
    WRONG(train.per_device, 0, "train.batch.per_device");
    WRONG(train.per_device, INT64_MAX, "train.batch.per_device");
    WRONG(train.precision, 9, "train.precision");
    WRONG(train.clip_grad_norm, INFINITY, "train.clip_grad_norm");
    WRONG(train.clip_grad_norm, -1, "train.clip_grad_norm");
    WRONG(train.clip_grad_value, 0, "train.clip_grad_value");
    WRONG(optimizer.type, -1, "optimizer.type");
    WRONG(optimizer.type, 1000000, "optimizer.type");
    WRONG(optimizer.lr, NAN, "optimizer.lr");
    WRONG(optimizer.lr, -1, "optimizer.lr");
    WRONG(optimizer.betas.count, 1, "optimizer.betas");
    WRONG(optimizer.betas.item[1], 2, "optimizer.betas");
    WRONG(optimizer.betas.item[0], 1, "optimizer.betas item 1 must be a number of at least 0 and below 1, got '1'");
    WRONG(optimizer.form, -1, "optimizer.form");
    WRONG(schedule.type, 99, "schedule.type");
    WRONG(loss.type, 1000, "loss.type");
    WRONG(loss.type, -1, "loss.type");
    WRONG(loss.label_smoothing, 1.5, "loss.label_smoothing");
    WRONG(data.workers, -1, "data.workers");
    WRONG(data.workers, 1 << 20, "data.workers");
    WRONG(data.train.format, 99, "data.train.format");
    WRONG(data.train.holdout, 1, "data.train.holdout must be a number of at least 0 and below 1");
    WRONG(data.transform.step_count, TDM_TRANSFORMS_MAX + 1, "data.transform must have 0 to 16 steps, got 17");
    WRONG(data.train.samples, 0, "data.train.samples");
    WRONG(data.train.range.count, 1, "data.train.range");
    WRONG(data.train.range.count, 1000, "data.train.range");
    WRONG(data.transform.normalize.count, 33, "data.transform.normalize must have 0 to 32 items, got 33");
    WRONG(data.transform.normalize, ((tdm_normalizes){1, {{.mean = {-3, NULL}}}}), "data.transform.normalize.mean");
    WRONG(loss.weight.count, 3, "loss.weight must have a count of 0 to 1048576, and numbers if it is not 0; got 3");
    WRONG(loss.weight, ((tdm_numbers){-1, &(double){1}}), "loss.weight must have a count of 0 to 1048576");
    WRONG(loss.weight, ((tdm_numbers){2, (const double[]){1, -1}}),
          "loss.weight item 2 must be a number of at least 0");
    WRONG(checkpoint.every.kind, (tdm_interval_kind)9, "checkpoint.every");
    WRONG(eval.every, ((tdm_interval){TDM_INTERVAL_STEPS, NAN}), "eval.every");
    WRONG(log.every, ((tdm_interval){TDM_INTERVAL_STEPS, -1}), "log.every");
    WRONG(checkpoint.keep_last, 0, "checkpoint.keep_last");
    WRONG(rng_profile, 5, "rng_profile");
    WRONG(seed, -1, "seed");
    WRONG(version, 2, "tandem");
}

TEST(members_of_other_types_are_not_looked_at) {
    tdm_job job;
    api_job(&job);
    job.optimizer.type = TDM_SGD;
    job.optimizer.betas.count = 0; /* adam's */
    job.schedule.step_size = -1;   /* of schedule: step */
    job.data.train.noise = NAN;    /* of glyphs */
    CHECK_OK(open_and_close(&job, NULL));
}

TEST(ranks_are_checked) {
    tdm_job job;
    api_job(&job);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.world = 2, options.rank = 2;
    CHECK_STATUS(open_and_close(&job, &options), TDM_E_USAGE);
    options.rank = -1;
    CHECK_STATUS(open_and_close(&job, &options), TDM_E_USAGE);
    options.rank = 0; /* single in two processes */
    CHECK_STATUS(open_and_close(&job, &options), TDM_E_USAGE);
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){2, {0, 1}};
    options.launch_fd = -1;
    CHECK(open_and_close(&job, &options) != TDM_OK);
    CHECK(tdm_error_message()[0] != '\0');
    CHECK_STATUS(open_and_close(&job, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "launch_fd");
    job.parallel.mode = TDM_MODE_DP;
    job.train.per_device = TDM_INT_NULL, job.train.global_batch = 7;
    CHECK_STATUS(open_and_close(&job, NULL), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "7 samples");
}

/* Settings that a program must not say together, one row of the table each. */
#define CONTRADICTS(words, ...)                                 \
    do {                                                        \
        tdm_job job;                                            \
        api_job(&job);                                          \
        __VA_ARGS__;                                            \
        CHECK_STATUS(tdm_job_check(&job), TDM_E_CONFIG);        \
        CHECK_HAS(tdm_error_message(), "job: " words);          \
        CHECK_STATUS(open_and_close(&job, NULL), TDM_E_CONFIG); \
    } while (0)

TEST(contradictions_are_named) {
    const tdm_ints two = {2, {3, 4}};
    CONTRADICTS("parallel.dp.output_device must be one of device_ids [3, 4], got 0", job.parallel.mode = TDM_MODE_DP,
                job.parallel.device_ids = two);
    CONTRADICTS("parallel.stages above 1 needs mode single or ddp", job.parallel.mode = TDM_MODE_DP,
                job.parallel.stages = 2, job.parallel.device_ids = two, job.parallel.dp.output_device = 3);
    CONTRADICTS("parallel.ddp.average: ranks needs mode ddp", job.parallel.mode = TDM_MODE_DP,
                job.parallel.device_ids = (tdm_ints){2, {0, 1}}, job.parallel.ddp.average = TDM_AVERAGE_RANKS);
    CONTRADICTS("parallel.ddp.join averages over the samples", job.parallel.ddp.join = true,
                job.parallel.ddp.average = TDM_AVERAGE_RANKS);
    CONTRADICTS("train.precision tf32 needs a CUDA device", job.train.precision = TDM_TF32,
                job.parallel.device = TDM_DEVICE_CPU);
    CONTRADICTS("normalize must have as many values in std as in mean, got 1 and 2",
                job.data.transform.normalize.count = 1,
                job.data.transform.normalize.item[0] = (tdm_normalize){{2, (double[]){0, 0}}, {1, (double[]){1}}, {0}});
    CONTRADICTS("data.transform.normalize[1] has no mean", job.data.transform.normalize.count = 2,
                job.data.transform.normalize.item[0] = (tdm_normalize){{1, (double[]){0}}, {1, (double[]){1}}, {0}});
    CONTRADICTS("data.transform mixes labels, and loss mse has none", job.data.transform.step_count = 1,
                tdm_transform_init(&job.data.transform.step[0], TDM_TRANSFORM_MIXUP), job.loss.type = TDM_MSE);
    CONTRADICTS("optimizer.nesterov", job.optimizer.type = TDM_SGD, job.optimizer.momentum = 0,
                job.optimizer.nesterov = true);
}

/* It means nothing there, and a program need not know of it. */
TEST(an_output_device_is_of_dp) {
    tdm_job job;
    api_job(&job);
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){2, {3, 4}};
    CHECK_OK(tdm_job_check(&job));
}

TEST(judges_of_evaluations_are_checked) {
    const tdm_interval never = {TDM_INTERVAL_NEVER, 0};
    CONTRADICTS("checkpoint.keep_best needs samples with labels", job.checkpoint.keep_best = TDM_METRIC_ACCURACY,
                job.loss.type = TDM_MSE);
    CONTRADICTS("checkpoint.keep_best judges the evaluations", job.checkpoint.keep_best = TDM_METRIC_LOSS,
                job.eval.every = never);
    CONTRADICTS("schedule.type plateau needs a metric", job.schedule.type = TDM_SCHEDULE_PLATEAU,
                job.schedule.metric = TDM_METRIC_NONE);
    CONTRADICTS("schedule.metric needs samples with labels", job.schedule.type = TDM_SCHEDULE_PLATEAU,
                job.schedule.metric = TDM_METRIC_TOP5, job.loss.type = TDM_MSE);
    CONTRADICTS("schedule: plateau judges the evaluations", job.schedule.type = TDM_SCHEDULE_PLATEAU,
                job.schedule.metric = TDM_METRIC_LOSS, job.eval.every = never);
    CONTRADICTS("train.stop_early needs a metric", job.train.stop_after = 2, job.train.stop_metric = TDM_METRIC_NONE);
    CONTRADICTS("train.stop_early.metric needs samples with labels", job.train.stop_after = 2,
                job.train.stop_metric = TDM_METRIC_ACCURACY, job.loss.type = TDM_MSE);
    CONTRADICTS("train.stop_early judges the evaluations", job.train.stop_after = 2,
                job.train.stop_metric = TDM_METRIC_LOSS, job.eval.every = never);
}

TEST(unusable_hosts_are_refused) {
    tdm_job job;
    api_job(&job);
    tdm_host host = *tdm_host_default();
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *g = NULL;
    options.host = &host;
    CHECK_OK(open_and_close(&job, &options));
    host.size = 8;
    CHECK_STATUS(open_and_close(&job, &options), TDM_E_USAGE);
    CHECK_STATUS(tdm_graph_new(&g, &host), TDM_E_USAGE);
    host = *tdm_host_default();
    host.allocate = NULL;
    CHECK_STATUS(open_and_close(&job, &options), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "host.allocate");
    CHECK_STATUS(tdm_graph_new(&g, &host), TDM_E_USAGE);
    CHECK(g == NULL);
}

TEST(graph_not_finished_is_refused) {
    tdm_job job;
    api_job(&job);
    tdm_graph *g = NULL;
    tdm_run *run = NULL;
    tdm_value v;
    char *text = NULL;
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    CHECK_STATUS(tdm_run_open(&run, &job, g, NULL), TDM_E_USAGE);
    REQUIRE_OK(tdm_graph_input(g, 1, (const int64_t[]){4}, &v));
    CHECK_STATUS(tdm_run_open(&run, &job, g, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "tdm_graph_finish");
    CHECK_STATUS(tdm_plan_print(&job, g, 0, &text), TDM_E_USAGE);
    tdm_graph_free(g);
}

TEST_MAIN(graph = api_graph(NULL); RUN(shorter_options_have_defaults); RUN(longer_options_are_refused);
          RUN(job_of_another_size_is_refused); RUN(untouched_job_wants_length_and_batch);
          RUN(values_out_of_range_are_named); RUN(members_of_other_types_are_not_looked_at); RUN(ranks_are_checked);
          RUN(contradictions_are_named); RUN(an_output_device_is_of_dp); RUN(judges_of_evaluations_are_checked);
          RUN(unusable_hosts_are_refused); RUN(graph_not_finished_is_refused); tdm_graph_free(graph);)
