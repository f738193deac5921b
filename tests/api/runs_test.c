/* Runs as a program holds them: several at once, step by step, tensors by name, saved and loaded, opened and closed
 * many times, and never a word on the terminal. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static tdm_graph *graph;

/* ---- two at once ---- */

typedef struct errand {
    tdm_job job;
    char hash[40];
    int bad_steps;
} errand;

static void *train_here(void *argument) {
    errand *e = argument;
    api_train(&e->job, graph, e->hash);
    return NULL;
}

TEST(runs_in_two_threads_do_not_see_each_other) {
    static errand e[4];
    char alone[4][40];
    for (int i = 0; i < 4; i++) {
        api_job(&e[i].job);
        e[i].job.train.steps = 30;
        e[i].job.seed = 1 + i;
        e[i].job.data.workers = i;
    }
    e[1].job.parallel.mode = TDM_MODE_DP;
    e[1].job.parallel.device_ids = (tdm_ints){2, {0, 1}};
    e[2].job.optimizer.type = TDM_SGD;
    e[3].job.parallel.kernels = TDM_KERNELS_REF;
    for (int i = 0; i < 4; i++) api_train(&e[i].job, graph, alone[i]);
    for (int round = 0; round < 3; round++) {
        pthread_t thread[4];
        for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, train_here, &e[i]);
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < 4; i++) CHECK_TEXT(e[i].hash, alone[i]);
    }
    CHECK(strcmp(alone[0], alone[1]) != 0);
}

/* One channel is planes and neighbouring channels at once: kernels that oneDNN keeps must not decide which it is. */
TEST(a_plan_does_not_depend_on_runs_before) {
    const int64_t shape[] = {1, 6, 6};
    const tdm_attr conv[] = {{"out", "4", {NULL, 0, 0}}, {"kernel", "3", {NULL, 0, 0}}};
    tdm_graph *made;
    tdm_value v;
    char *plan[2];
    REQUIRE_OK(tdm_graph_new(&made, NULL));
    REQUIRE_OK(tdm_graph_input(made, 3, shape, &v));
    REQUIRE_OK(tdm_graph_add(made, "conv2d", NULL, &v, 1, conv, 2, &v));
    REQUIRE_OK(tdm_graph_add(made, "flatten", NULL, &v, 1, NULL, 0, &v));
    REQUIRE_OK(tdm_graph_finish(made, v));
    for (int i = 0; i < 2; i++) {
        tdm_job job;
        tdm_run *run;
        api_job(&job);
        REQUIRE_OK(tdm_run_open(&run, &job, made, NULL));
        REQUIRE_OK(tdm_run_step(run, 2));
        REQUIRE_OK(tdm_run_print(run, "plan", &plan[i]));
        tdm_run_close(run);
    }
    CHECK_TEXT(plan[1], plan[0]);
    for (int i = 0; i < 2; i++) tdm_free(plan[i]);
    tdm_graph_free(made);
}

static void *fail_here(void *argument) {
    tdm_run *run = NULL;
    (void)argument;
    CHECK_TEXT(tdm_error_message(), ""); /* of another thread */
    (void)tdm_run_open(&run, NULL, NULL, NULL);
    CHECK_HAS(tdm_error_message(), "tdm_run_open");
    return NULL;
}

TEST(errors_belong_to_their_thread) {
    char *text = NULL;
    pthread_t thread;
    CHECK_STATUS(tdm_graph_print(NULL, &text), TDM_E_USAGE);
    pthread_create(&thread, NULL, fail_here, NULL);
    pthread_join(thread, NULL);
    CHECK_HAS(tdm_error_message(), "tdm_graph_print");
}

/* ---- steps and states ---- */

/* What a job in memory asks of data that only the data knows the size of: told before the first step. */
TEST(batches_too_small_for_a_layer) {
    static const int64_t shape[3] = {2, 4, 4};
    tdm_graph *narrow = NULL;
    tdm_value x;
    tdm_job job;
    tdm_run *run = NULL;
    REQUIRE_OK(tdm_graph_new(&narrow, NULL));
    CHECK_OK(tdm_graph_input(narrow, 3, shape, &x));
    CHECK_OK(tdm_graph_add(narrow, "maxpool2d", NULL, &x, 1, (tdm_attr[]){{.key = "kernel", .text = "4"}}, 1, &x));
    CHECK_OK(tdm_graph_add(narrow, "batchnorm2d", "norm", &x, 1, NULL, 0, &x));
    CHECK_OK(tdm_graph_add(narrow, "flatten", NULL, &x, 1, NULL, 0, &x));
    CHECK_OK(tdm_graph_add(narrow, "linear", "fc", &x, 1, (tdm_attr[]){{.key = "out", .text = "3"}}, 1, &x));
    REQUIRE_OK(tdm_graph_finish(narrow, x));
    api_job(&job);
    job.data.eval.format = TDM_DATA_NONE;
    job.data.train.samples = 41;
    job.train.steps = 10; /* the last batch of the epoch is the eleventh */
    REQUIRE_OK(tdm_run_open(&run, &job, narrow, NULL));
    CHECK_OK(tdm_run_train(run));
    tdm_run_close(run);
    job.train.steps = 11;
    REQUIRE_OK(tdm_run_open(&run, &job, narrow, NULL));
    CHECK_STATUS(tdm_run_train(run), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(),
              "batchnorm2d 'norm' needs at least 2 rows in every batch of training on a device, but one has 1; "
              "use another train.batch");
    CHECK_STATUS(tdm_run_step(run, 1), TDM_E_CONFIG);
    tdm_run_close(run);
    job.data.drop_last = true;
    REQUIRE_OK(tdm_run_open(&run, &job, narrow, NULL));
    CHECK_OK(tdm_run_train(run));
    tdm_run_close(run);
    tdm_graph_free(narrow);
}

TEST(steps_are_the_steps_of_training) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    char whole[40];
    api_job(&job);
    api_train(&job, graph, whole);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK(state.step == 0 && state.steps_total == 6 && state.steps_per_epoch == 10 && isnan(state.loss));
    CHECK(state.replicas == 1 && state.per_device == 4 && state.global_batch == 4);
    CHECK_INT(state.params, tdm_graph_param_count(graph));
    CHECK_OK(tdm_run_step(run, 0));
    CHECK_OK(tdm_run_step(run, 1));
    CHECK_OK(tdm_run_step(run, 2));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK(state.step == 3 && state.samples == 12 && isfinite(state.loss) && state.lr == 1e-2);
    CHECK_OK(tdm_run_train(run)); /* the rest */
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_TEXT(state.params_xxh3, whole);
    CHECK_STATUS(tdm_run_step(run, 1), TDM_E_USAGE);
    CHECK_OK(tdm_run_train(run)); /* nothing is left to do */
    tdm_run_close(run);
}

/* ---- evaluation and prediction ---- */

TEST(predictions_are_the_evaluation) {
    tdm_job job;
    api_job(&job);
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DP; mode++) {
        tdm_run *run = NULL;
        float x[10][72], y[10][3], again[10][3];
        int64_t label[10], hits = 0;
        double loss = 0, accuracy = 0, sum = 0;
        job.parallel.mode = mode;
        job.parallel.device_ids = (tdm_ints){1 + mode, {0, 1}};
        REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
        CHECK_OK(tdm_run_train(run));
        CHECK_INT(tdm_run_input_width(run), 72);
        CHECK_INT(tdm_run_output_width(run), 3);
        REQUIRE(tdm_run_eval_count(run) == 10);
        for (int i = 9; i >= 0; i--) CHECK_OK(tdm_run_eval_sample(run, i, x[i], &label[i]));
        CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x[0], 10, y[0]));
        for (int i = 0; i < 10; i++) {
            CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x[i], 1,
                                        again[i])); /* dropout is off, batch norm uses its averages */
            for (int k = 0; k < 3; k++) CHECK_NEAR(again[i][k], y[i][k], 1e-5);
        }
        for (int i = 0; i < 10; i++) {
            double top = fmax(fmax(y[i][0], y[i][1]), y[i][2]);
            double total = exp(y[i][0] - top) + exp(y[i][1] - top) + exp(y[i][2] - top);
            sum += log(total) + top - y[i][label[i]];
            hits += y[i][label[i]] == (float)top;
        }
        CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
        CHECK_NEAR(loss, sum / 10, 1e-6);
        CHECK_NEAR(accuracy, (double)hits / 10, 0);
        CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x[0], 0, y[0]));
        tdm_run_close(run);
    }
}

/* Without gradients and optimizer, and with a plan of its own: the same outputs, to the bit. */
TEST(runs_that_only_predict) {
    char folder[256], path[300];
    tdm_job job;
    tdm_run *run = NULL;
    float x[10][72], trained[10][3], predicted[10][3];
    int64_t label;
    double loss[2], accuracy;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    test_folder_make(folder);
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_train(run));
    for (int i = 0; i < 10; i++) CHECK_OK(tdm_run_eval_sample(run, i, x[i], &label));
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x[0], 10, trained[0]));
    CHECK_OK(tdm_run_evaluate(run, &loss[0], &accuracy));
    CHECK_OK(tdm_run_save(run, folder));
    tdm_run_close(run);

    options.predicts = 1;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    snprintf(path, sizeof(path), "%s/step-00000006", folder);
    CHECK_OK(tdm_run_load(run, path));
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x[0], 10, predicted[0]));
    CHECK(memcmp(trained, predicted, sizeof(trained)) == 0);
    CHECK_OK(tdm_run_evaluate(run, &loss[1], &accuracy));
    CHECK(loss[0] == loss[1]);
    CHECK_STATUS(tdm_run_train(run), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "opened to predict");
    CHECK_STATUS(tdm_run_step(run, 1), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_save(run, folder), TDM_E_USAGE);
    tdm_run_close(run);
    test_folder_remove(folder);
}

/* ---- tensors ---- */

TEST(tensors_have_torch_names_and_can_be_written) {
    static const char *const names[] = {"conv.weight",     "conv.bias",      "bn.weight",
                                        "bn.bias",         "fc.weight",      "fc.bias",
                                        "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"};
    tdm_job job;
    api_job(&job);
    job.parallel.mode = TDM_MODE_DP;
    job.parallel.device_ids = (tdm_ints){2, {0, 1}};
    tdm_run *run = NULL;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    REQUIRE(tdm_run_tensor_count(run) == 9);
    for (int i = 0; i < 9; i++) {
        tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
        REQUIRE_OK(tdm_run_tensor(run, i, &info));
        CHECK_TEXT(info.name, names[i]);
        CHECK_INT(info.is_buffer, i >= 6);
        CHECK_INT(info.is_int64, i == 8);
        CHECK_INT(info.bytes, info.count * (info.is_int64 ? 8 : 4));
    }
    tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
    CHECK_OK(tdm_run_tensor(run, 4, &info));
    CHECK(info.ndim == 2 && info.dim[0] == 3 && info.dim[1] == 36 && info.count == 108);
    float weight[108] = {0}, bias[3] = {1, 2, 4}, got[3], x[5 * 72], y[5][3];
    for (int i = 0; i < 5 * 72; i++) x[i] = (float)(i % 17);
    CHECK_OK(tdm_run_step(run, 2));
    CHECK_OK(tdm_run_write(run, "fc.weight", weight, sizeof(weight)));
    CHECK_OK(tdm_run_write(run, "fc.bias", bias, sizeof(bias)));
    CHECK_OK(tdm_run_read(run, "fc.bias", got, sizeof(got)));
    CHECK(memcmp(bias, got, sizeof(bias)) == 0);
    CHECK_OK(tdm_run_predict(run, x, 5, y[0])); /* only the bias is left */
    for (int i = 0; i < 5; i++) CHECK(y[i][0] == 1 && y[i][1] == 2 && y[i][2] == 4);
    int64_t batches = 0;
    CHECK_OK(tdm_run_read(run, "bn.num_batches_tracked", &batches, sizeof(batches)));
    CHECK_INT(batches, 2);
    tdm_run_close(run);
}

/* ---- saving and loading ---- */

static void hash_of(tdm_run *run, char out[40]) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(out, state.params_xxh3, 40);
}

TEST(loading_brings_everything_back) {
    char folder[256], path[300], file[400], at_three[40], at_end[40], now[40];
    tdm_job job;
    tdm_run *run = NULL, *other = NULL;
    test_folder_make(folder);
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_step(run, 3));
    hash_of(run, at_three);
    CHECK_OK(tdm_run_save(run, folder));
    CHECK_OK(tdm_run_train(run));
    hash_of(run, at_end);
    CHECK(strcmp(at_three, at_end) != 0);
    snprintf(path, sizeof(path), "%s/step-00000003", folder);
    CHECK_OK(tdm_run_load(run, path)); /* back in the same run */
    hash_of(run, now);
    CHECK_TEXT(now, at_three);
    CHECK_OK(tdm_run_train(run));
    hash_of(run, now);
    CHECK_TEXT(now, at_end);
    tdm_run_close(run);

    job.seed = 99; /* another run, with other weights of its own */
    job.parallel.mode = TDM_MODE_DP;
    REQUIRE_OK(tdm_run_open(&other, &job, graph, NULL));
    CHECK_OK(tdm_run_load(other, path));
    hash_of(other, now);
    CHECK_TEXT(now, at_three);
    tdm_run_close(other);

    snprintf(file, sizeof(file), "%s/model.safetensors", path);
    REQUIRE_OK(tdm_run_open(&other, &job, graph, NULL));
    CHECK_OK(tdm_run_load(other, file)); /* weights alone */
    hash_of(other, now);
    CHECK_TEXT(now, at_three);
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(other, &state));
    CHECK_INT(state.step, 0);
    tdm_run_close(other);
    job.weights = file;
    REQUIRE_OK(tdm_run_open(&other, &job, graph, NULL));
    hash_of(other, now);
    CHECK_TEXT(now, at_three);
    tdm_run_close(other);
    test_folder_remove(folder);
}

TEST(another_model_is_refused_and_named) {
    char folder[256], path[300];
    tdm_job job;
    tdm_run *run = NULL;
    tdm_graph *small = NULL;
    tdm_value v;
    test_folder_make(folder);
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_save(run, folder));
    tdm_run_close(run);
    snprintf(path, sizeof(path), "%s/step-00000000", folder);
    REQUIRE_OK(tdm_graph_new(&small, NULL));
    REQUIRE_OK(tdm_graph_input(small, 1, (const int64_t[]){36}, &v));
    REQUIRE_OK(tdm_graph_add(small, "linear", "fc", &v, 1, &(tdm_attr){"out", "3", {0}}, 1, &v));
    REQUIRE_OK(tdm_graph_finish(small, v));
    REQUIRE_OK(tdm_run_open(&run, &job, small, NULL));
    CHECK_STATUS(tdm_run_load(run, path), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "this model has no tensor");
    CHECK_OK(tdm_run_train(run)); /* the run goes on */
    tdm_run_close(run);
    tdm_graph_free(small);
    test_folder_remove(folder);
}

/* ---- texts ---- */

TEST(texts) {
    tdm_job job;
    tdm_run *run = NULL;
    char *text = NULL;
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    static const char *const kinds[] = {"graph", "plan", "plan.json", "summary", "kernels.json"};
    static const char *const words[] = {"conv2d", "loss", "\"buckets\"", "parameters", "["};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(tdm_run_print(run, kinds[i], &text));
        CHECK_HAS(text, words[i]);
        tdm_free(text);
    }
    char *other = NULL;
    CHECK_OK(tdm_run_print(run, "plan", &text));
    CHECK_OK(tdm_plan_print(&job, graph, 0, &other));
    CHECK_TEXT(other, text); /* known without opening anything */
    tdm_free(text);
    tdm_free(other);
    tdm_run_close(run);
}

/* A dropout between two layers, which would write over its input. */
static void step_and_hash(int64_t repeats, char hash[40], char **times) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_graph *three = NULL;
    tdm_value v;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    api_job(&job);
    options.repeats = repeats;
    REQUIRE_OK(tdm_graph_new(&three, NULL));
    REQUIRE_OK(tdm_graph_input(three, 1, (const int64_t[]){12}, &v));
    REQUIRE_OK(tdm_graph_add(three, "linear", "before", &v, 1, &(tdm_attr){"out", "8", {0}}, 1, &v));
    REQUIRE_OK(tdm_graph_add(three, "dropout", NULL, &v, 1, NULL, 0, &v));
    REQUIRE_OK(tdm_graph_add(three, "linear", "behind", &v, 1, &(tdm_attr){"out", "3", {0}}, 1, &v));
    REQUIRE_OK(tdm_graph_finish(three, v));
    REQUIRE_OK(tdm_run_open(&run, &job, three, &options));
    REQUIRE_OK(tdm_run_step(run, 2));
    hash_of(run, hash);
    if (repeats > 0)
        CHECK_OK(tdm_run_print(run, "times.json", times));
    else
        CHECK_STATUS(tdm_run_print(run, "times.json", times), TDM_E_USAGE);
    tdm_run_close(run);
    tdm_graph_free(three);
}

TEST(layers_run_again_and_each_run_is_timed) {
    char once[40], again[40], *times = NULL;
    step_and_hash(0, once, &times);
    CHECK_HAS(tdm_error_message(), "repeats");
    step_and_hash(3, again, &times);
    CHECK_TEXT(again, once);
    REQUIRE(times != NULL);
    int passes = 0;
    for (const char *at = strstr(times, "\"ms\": ["); at != NULL; at = strstr(at + 1, "\"ms\": [")) {
        double ms[3];
        char end = 0;
        CHECK(sscanf(at, "\"ms\": [%lf, %lf, %lf%c", &ms[0], &ms[1], &ms[2], &end) == 4 && end == ']');
        CHECK(ms[0] >= 0 && ms[1] >= 0 && ms[2] >= 0);
        passes++;
    }
    CHECK_INT(passes, 6); /* of three layers */
    tdm_free(times);
}

/* ---- nothing is left behind, nothing is said ---- */

TEST(cycles_leave_nothing_open) {
    tdm_job job;
    api_job(&job);
    job.data.workers = 2;
    int files = 0, threads = 0;
    for (int i = 0; i < 200; i++) {
        tdm_run *run = NULL;
        job.parallel.mode = i % 2 == 0 ? TDM_MODE_SINGLE : TDM_MODE_DP;
        job.parallel.device_ids = (tdm_ints){1 + i % 2, {0, 1}};
        REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
        CHECK_OK(tdm_run_step(run, 1));
        tdm_run_close(run);
        if (i == 1) files = api_proc_count("fd"), threads = api_proc_count("task"); /* modules are open by now */
    }
    CHECK_INT(api_proc_count("fd"), files);
    CHECK_INT(api_proc_count("task"), threads);
}

static void work_and_fail(void) {
    char folder[256], hash[40], *text = NULL;
    tdm_job job;
    tdm_run *run = NULL;
    test_folder_make(folder);
    api_job(&job);
    job.run.dir = folder;
    api_train(&job, graph, hash);
    (void)tdm_run_open(&run, &job, NULL, NULL);
    job.data.train.format = TDM_DATA_IDX;
    job.data.train.images = job.data.train.labels = "/no/such/file";
    (void)tdm_run_open(&run, &job, graph, NULL);
    (void)tdm_config_explain("no such key", TDM_ENGLISH, &text);
    test_folder_remove(folder);
}

TEST(library_prints_nothing) {
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    fflush(NULL);
    int out = dup(1), err = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    work_and_fail();
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    struct stat info;
    CHECK(fstat(fileno(file), &info) == 0 && info.st_size == 0);
    fclose(file);
}

TEST_MAIN(graph = api_graph(NULL); RUN(errors_belong_to_their_thread); RUN(a_plan_does_not_depend_on_runs_before);
          RUN(runs_in_two_threads_do_not_see_each_other); RUN(batches_too_small_for_a_layer);
          RUN(steps_are_the_steps_of_training); RUN(predictions_are_the_evaluation); RUN(runs_that_only_predict);
          RUN(tensors_have_torch_names_and_can_be_written); RUN(loading_brings_everything_back);
          RUN(another_model_is_refused_and_named); RUN(texts); RUN(layers_run_again_and_each_run_is_timed);
          RUN(cycles_leave_nothing_open); RUN(library_prints_nothing); tdm_graph_free(graph);)
