/* Every public function with arguments that no caller should pass: a status and a message of its own, never a crash. */
#include <tandem/checkpoint.h>
#include <tandem/data.h>
#include <tandem/doctor.h>
#include <tandem/scale.h>

#include <math.h>
#include <unistd.h>

#include <tandem/burnin.h>
#include <tandem/model.h>

#include "tests/api/api.h"
#include "tests/api/misuse.h"
#include "tests/support/tdm_test.h"

static tdm_status no_picture(void *user, const char *path) {
    (void)user, (void)path;
    return TDM_OK;
}

static tdm_status no_thumbnail(void *user, int64_t index, const void *png, size_t bytes, const char *why) {
    (void)user, (void)index, (void)png, (void)bytes, (void)why;
    return TDM_OK;
}

static tdm_graph *graph;
static tdm_run *run;
static tdm_job job;

TEST(status_and_host) {
    CHECK_TEXT(tdm_status_name((tdm_status)4711), "unknown");
    CHECK_TEXT(tdm_status_text((tdm_status)-1), "unknown");
    CHECK_INT(tdm_text_printable(NULL, 0, NULL, 0), 0);
    CHECK_INT(tdm_text_columns(NULL), 0);
    CHECK(tdm_text_nearest(NULL, NULL, 1) == NULL);
    CHECK(tdm_text_nearest("word", NULL, 1) == NULL);
    CHECK(tdm_error_last() != NULL && tdm_error_message() != NULL);
    CHECK_TEXT(tdm_version(), TDM_VERSION);
    int major, minor, patch;
    CHECK_INT(sscanf(tdm_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    CHECK_INT(tdm_version_number(), TDM_VERSION_NUMBER);
    CHECK_INT(tdm_version_number(), 10000 * major + 100 * minor + patch);
    tdm_free(NULL);
    CHECK(tdm_host_default()->size == offsetof(tdm_host, thread_start));
}

TEST(graphs) {
    tdm_graph *g = NULL;
    tdm_value v, w;
    int64_t dim[6] = {4};
    char *text = NULL;
    const tdm_attr no_key = {NULL, "1", {0}}, no_text = {"out", NULL, {0}}, good = {"out", "2", {0}};
    const tdm_attr twice[] = {good, {"bias", "false", {0}}, {"out", "3", {0}}};
    MISUSE(tdm_graph_new(NULL, NULL));
    tdm_graph_free(NULL);
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    MISUSE(tdm_graph_input(NULL, 1, dim, &v));
    MISUSE(tdm_graph_input(g, 1, NULL, &v));
    MISUSE(tdm_graph_input(g, 1, dim, NULL));
    REFUSED(tdm_graph_input(g, 0, dim, &v), TDM_E_CONFIG);
    REFUSED(tdm_graph_input(g, 7, dim, &v), TDM_E_CONFIG);
    REFUSED(tdm_graph_input(g, -1, dim, &v), TDM_E_CONFIG);
    REFUSED(tdm_graph_input(g, 2, dim, &v), TDM_E_CONFIG); /* a dimension of 0 */
    REFUSED(tdm_graph_input(g, 2, ((int64_t[]){INT64_MAX, INT64_MAX}), &v), TDM_E_CONFIG);
    v = 0;
    MISUSE(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &w)); /* no input yet */
    REQUIRE_OK(tdm_graph_input(g, 1, dim, &v));
    MISUSE(tdm_graph_input(g, 1, dim, &v)); /* twice */
    MISUSE(tdm_graph_add(NULL, "relu", NULL, &v, 1, NULL, 0, &w));
    MISUSE(tdm_graph_add(g, NULL, NULL, &v, 1, NULL, 0, &w));
    MISUSE(tdm_graph_add(g, "relu", NULL, NULL, 1, NULL, 0, &w));
    MISUSE(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, NULL));
    MISUSE(tdm_graph_add(g, "linear", NULL, &v, 1, NULL, 1, &w));
    MISUSE(tdm_graph_add(g, "linear", NULL, &v, 1, &no_key, 1, &w));
    MISUSE(tdm_graph_add(g, "linear", NULL, &v, 1, &no_text, 1, &w));
    w = 77;
    MISUSE(tdm_graph_add(g, "relu", NULL, &w, 1, NULL, 0, &w)); /* of no layer */
    w = -1;
    MISUSE(tdm_graph_add(g, "relu", NULL, &w, 1, NULL, 0, &w));
    MISUSE(tdm_graph_add_at(g, NULL, NULL, NULL, &v, 1, NULL, 0, &w));
    REFUSED(tdm_graph_add(g, "relu", NULL, &v, 0, NULL, 0, &w), TDM_E_CONFIG);
    REFUSED(tdm_graph_add(g, "relu", NULL, &v, -3, NULL, 0, &w), TDM_E_CONFIG);
    REFUSED(tdm_graph_add(g, "relu", NULL, &v, 1000, NULL, 0, &w), TDM_E_CONFIG);
    REFUSED(tdm_graph_add(g, "relu", "", &v, 1, NULL, 0, &w), TDM_E_CONFIG);
    REFUSED(tdm_graph_add(g, "relu", "\xff", &v, 1, NULL, 0, &w), TDM_E_CONFIG);
    REFUSED(tdm_graph_add(g, "lineal", NULL, &v, 1, &good, 1, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "did you mean 'linear'?");
    REFUSED(tdm_graph_add(g, "linear", NULL, &v, 1, twice, 3, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "'out' is given twice");
    MISUSE(tdm_graph_set_stage(NULL, v, 0));
    MISUSE(tdm_graph_set_stage(g, v, 0)); /* the input, which no layer makes */
    MISUSE(tdm_graph_set_stage(g, 99, 0));
    MISUSE(tdm_graph_finish(NULL, v));
    MISUSE(tdm_graph_finish(g, 99));
    MISUSE(tdm_graph_finish(g, -1));
    REFUSED(tdm_graph_finish(g, v), TDM_E_CONFIG); /* nothing to train */
    MISUSE(tdm_graph_print(NULL, &text));
    MISUSE(tdm_graph_print(g, NULL));
    CHECK_INT(tdm_graph_output_width(NULL), 0);
    MISUSE(tdm_graph_op_inputs(NULL, NULL, NULL));
    REFUSED(tdm_graph_op_inputs("concap", NULL, NULL), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "did you mean 'concat'?");
    CHECK_INT(tdm_graph_shape(NULL, v, dim), 0);
    CHECK_INT(tdm_graph_shape(g, 99, dim), 0);
    CHECK_INT(tdm_graph_shape(g, v, NULL), 0);
    CHECK_INT(tdm_graph_param_count(NULL), 0);
    MISUSE(tdm_graph_finish(graph, 0));
    MISUSE(tdm_graph_set_stage(graph, 1, 0));                       /* finished */
    MISUSE(tdm_graph_add(graph, "relu", NULL, &v, 1, NULL, 0, &w)); /* finished */
    tdm_graph_free(g);
}

TEST(jobs_and_opening) {
    tdm_run *out = NULL;
    char *text = NULL;
    MISUSE(tdm_job_init(NULL));
    MISUSE(tdm_job_check(NULL));
    char *made = NULL;
    tdm_data_spec spec = {.format = TDM_DATA_GLYPHS};
    MISUSE(tdm_config_starter_images(NULL, NULL, TDM_ENGLISH, &made));
    MISUSE(tdm_config_starter_images(NULL, "a", TDM_ENGLISH, NULL));
    MISUSE(tdm_config_starter_table(NULL, NULL, NULL, TDM_ENGLISH, &made));
    MISUSE(tdm_config_starter_table(NULL, "a", NULL, TDM_ENGLISH, NULL));
    MISUSE(tdm_config_starter_series(NULL, NULL, NULL, TDM_ENGLISH, &made));
    MISUSE(tdm_config_starter_series(NULL, "a", NULL, TDM_ENGLISH, NULL));
    MISUSE(tdm_data_pictures(NULL, NULL, no_picture, NULL));
    MISUSE(tdm_data_pictures(NULL, "a", NULL, NULL));
    MISUSE(tdm_data_sheet(NULL, NULL, NULL, "a"));
    MISUSE(tdm_data_sheet(NULL, &spec, NULL, NULL));
    MISUSE(tdm_data_thumbnails(NULL, NULL, NULL, NULL, 0, 96, no_thumbnail, NULL));
    MISUSE(tdm_data_thumbnails(NULL, &spec, NULL, NULL, 1, 96, no_thumbnail, NULL));
    MISUSE(tdm_data_thumbnails(NULL, &spec, NULL, NULL, 0, 0, no_thumbnail, NULL));
    MISUSE(tdm_transform_init(NULL, TDM_TRANSFORM_RESIZE));
    tdm_transform_step step;
    MISUSE(tdm_transform_init(&step, -1));
    MISUSE(tdm_transform_init(&step, TDM_TRANSFORM_KINDS));
    MISUSE(tdm_job_print(NULL, &text));
    MISUSE(tdm_job_print(&job, NULL));
    MISUSE(tdm_run_open(NULL, &job, graph, NULL));
    MISUSE(tdm_run_open(&out, NULL, graph, NULL));
    MISUSE(tdm_run_open(&out, &job, NULL, NULL));
    MISUSE(tdm_plan_print(NULL, graph, 0, &text));
    MISUSE(tdm_plan_print(&job, NULL, 0, &text));
    MISUSE(tdm_plan_print(&job, graph, 0, NULL));
    tdm_plan_print_options look = TDM_PLAN_PRINT_OPTIONS_INIT;
    MISUSE(tdm_plan_print_with(NULL, graph, &look, &text));
    MISUSE(tdm_plan_print_with(&job, NULL, &look, &text));
    MISUSE(tdm_plan_print_with(&job, graph, NULL, &text));
    MISUSE(tdm_plan_print_with(&job, graph, &look, NULL));
    look.after = "lower", look.json = 1;
    MISUSE(tdm_plan_print_with(&job, graph, &look, &text));
    look.after = "raise", look.json = 0;
    MISUSE(tdm_plan_print_with(&job, graph, &look, &text));
    look.size = 1000;
    MISUSE(tdm_plan_print_with(&job, graph, &look, &text));
    tdm_run_close(NULL);
    tdm_run_request_stop(NULL);
    tdm_job other = job;
    other.data.train.format = TDM_DATA_IDX;
    REFUSED(tdm_run_open(&out, &other, graph, NULL), TDM_E_DATA);
    other.data.train.images = "/no/such/file", other.data.train.labels = "/no/such/file";
    REFUSED(tdm_run_open(&out, &other, graph, NULL), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "/no/such/file");
    other = job;
    other.data.train.format = TDM_DATA_NONE;
    REFUSED(tdm_run_open(&out, &other, graph, NULL), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "data.train");
    other = job;
    other.weights = "/no/such/file.safetensors";
    CHECK(tdm_run_open(&out, &other, graph, NULL) != TDM_OK);
    CHECK_HAS(tdm_error_message(), "/no/such/file.safetensors");
    other = job;
    other.run.dir = "/proc/no/such/folder";
    REFUSED(tdm_run_open(&out, &other, graph, NULL), TDM_E_IO);
    other = job;
    other.parallel.device = TDM_DEVICE_CUDA;
    REFUSED(tdm_run_open(&out, &other, graph, NULL), TDM_E_UNSUPPORTED);
    CHECK(out == NULL);
}

static void scores_misuse(void) {
    tdm_scores scores = TDM_SCORES_INIT;
    MISUSE(tdm_run_evaluate_scores(NULL, &scores));
    MISUSE(tdm_run_evaluate_scores(run, NULL));
    scores.size = 2;
    MISUSE(tdm_run_evaluate_scores(run, &scores));
    scores.size = sizeof(scores) + 8;
    MISUSE(tdm_run_evaluate_scores(run, &scores));
}

static void unseen_misuse(void) {
    tdm_unseen_category category = TDM_UNSEEN_CATEGORY_INIT;
    MISUSE(tdm_run_unseen(NULL, 0, &category));
    MISUSE(tdm_run_unseen(run, 0, NULL));
    MISUSE(tdm_run_unseen(run, 0, &category)); /* its data is no table */
    category.size = 2;
    MISUSE(tdm_run_unseen(run, 0, &category));
    CHECK_INT(tdm_run_unseen_count(run), 0);
    CHECK_INT(tdm_run_unseen_count(NULL), 0);
}

static void loop_misuse(float *x) {
    MISUSE(tdm_run_set_lr(NULL, -1, 0.1));
    MISUSE(tdm_run_set_lr(run, -2, 0.1));
    MISUSE(tdm_run_set_lr(run, 0, 0.1)); /* it has no groups */
    MISUSE(tdm_run_set_lr(run, -1, -0.1));
    MISUSE(tdm_run_set_lr(run, -1, INFINITY));
    MISUSE(tdm_run_read_gradient(NULL, "fc.bias", x, 12));
    MISUSE(tdm_run_read_gradient(run, NULL, x, 12));
    MISUSE(tdm_run_read_gradient(run, "fc.bias", NULL, 12));
    MISUSE(tdm_run_read_gradient(run, "fc.bias", x, 11));
}

static void predict_misuse(const float *x, float *y) {
    MISUSE(tdm_run_predict(NULL, x, 1, y));
    MISUSE(tdm_run_predict(run, NULL, 1, y));
    MISUSE(tdm_run_predict(run, x, 1, NULL));
    MISUSE(tdm_run_predict(run, x, -1, y));
    MISUSE(tdm_run_predict_as(NULL, TDM_INPUT_READY, x, 1, y));
    MISUSE(tdm_run_predict_as(run, TDM_INPUT_READY, NULL, 1, y));
    MISUSE(tdm_run_predict_as(run, TDM_INPUT_READY, x, 1, NULL));
    MISUSE(tdm_run_predict_as(run, TDM_INPUT_READY, x, -1, y));
    MISUSE(tdm_run_predict_as(run, TDM_INPUT_READY + 1, x, 1, y));
}

TEST(running) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    double loss, accuracy;
    float x[72] = {0}, y[3];
    int64_t label;
    tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
    char *text = NULL;
    MISUSE(tdm_run_train(NULL));
    MISUSE(tdm_run_step(NULL, 1));
    MISUSE(tdm_run_step(run, -1));
    MISUSE(tdm_run_step(run, 7)); /* of 6 */
    MISUSE(tdm_run_get_state(NULL, &state));
    MISUSE(tdm_run_get_state(run, NULL));
    MISUSE(tdm_run_evaluate(NULL, &loss, &accuracy));
    MISUSE(tdm_run_evaluate(run, NULL, &accuracy));
    MISUSE(tdm_run_evaluate(run, &loss, NULL));
    scores_misuse();
    predict_misuse(x, y);
    loop_misuse(x);
    CHECK_INT(tdm_run_output_width(NULL), 0);
    CHECK_INT(tdm_run_eval_batch(NULL), 0);
    CHECK_INT(tdm_run_input_width(NULL), 0);
    CHECK_INT(tdm_run_eval_count(NULL), 0);
    CHECK_INT(tdm_run_tensor_count(NULL), 0);
    CHECK(tdm_run_class_name(NULL, 0) == NULL && tdm_run_class_name(run, 0) == NULL);
    tdm_target target = TDM_TARGET_INIT;
    MISUSE(tdm_run_target(NULL, &target));
    MISUSE(tdm_run_target(run, NULL));
    unseen_misuse();
    MISUSE(tdm_run_eval_sample(NULL, 0, x, &label));
    MISUSE(tdm_run_eval_sample(run, 0, NULL, &label));
    MISUSE(tdm_run_eval_sample(run, 0, x, NULL));
    MISUSE(tdm_run_eval_sample(run, 10, x, &label));
    MISUSE(tdm_run_eval_sample(run, -1, x, &label));
    MISUSE(tdm_run_read_picture(NULL, "a.png", x));
    MISUSE(tdm_run_read_picture(run, NULL, x));
    MISUSE(tdm_run_read_picture(run, "a.png", x)); /* its model takes no pictures */
    MISUSE(tdm_run_decode_picture(run, NULL, 0, x));
    MISUSE(tdm_run_decode_picture(run, x, 4, NULL));
    MISUSE(tdm_run_tensor(NULL, 0, &info));
    MISUSE(tdm_run_tensor(run, 0, NULL));
    MISUSE(tdm_run_tensor(run, -1, &info));
    MISUSE(tdm_run_tensor(run, tdm_run_tensor_count(run), &info));
    MISUSE(tdm_run_read(NULL, "fc.bias", x, 12));
    MISUSE(tdm_run_read(run, NULL, x, 12));
    MISUSE(tdm_run_read(run, "fc.bias", NULL, 12));
    MISUSE(tdm_run_read(run, "fc.bias", x, 11));
    MISUSE(tdm_run_read(run, "fc.bias ", x, 12));
    MISUSE(tdm_run_write(NULL, "fc.bias", x, 12));
    MISUSE(tdm_run_write(run, NULL, x, 12));
    MISUSE(tdm_run_write(run, "fc.bias", NULL, 12));
    MISUSE(tdm_run_write(run, "fc.bias", x, 13));
    MISUSE(tdm_run_write(run, "", x, 12));
    MISUSE(tdm_run_save(NULL, "x"));
    MISUSE(tdm_run_save(run, NULL));
    REFUSED(tdm_run_save(run, "/proc/no/such/folder"), TDM_E_IO);
    MISUSE(tdm_run_load(NULL, "x"));
    MISUSE(tdm_run_load(run, NULL));
    REFUSED(tdm_run_load(run, "/no/such/folder"), TDM_E_CHECKPOINT);
    MISUSE(tdm_run_print(NULL, "plan", &text));
    MISUSE(tdm_run_print(run, NULL, &text));
    MISUSE(tdm_run_print(run, "plan", NULL));
    MISUSE(tdm_run_print(run, "poem", &text));
}

TEST(evaluation_without_data) {
    tdm_job without = job;
    tdm_run *other = NULL;
    double loss, accuracy;
    without.data.eval.format = TDM_DATA_NONE;
    REQUIRE_OK(tdm_run_open(&other, &without, graph, NULL));
    MISUSE(tdm_run_evaluate(other, &loss, &accuracy));
    CHECK_INT(tdm_run_eval_count(other), 0);
    tdm_run_close(other);
}

TEST(configs) {
    tdm_config *config = NULL;
    char *text = NULL;
    MISUSE(tdm_config_open(NULL, NULL, "x"));
    MISUSE(tdm_config_open(&config, NULL, NULL));
    REFUSED(tdm_config_open(&config, NULL, "/no/such/file.yaml"), TDM_E_CONFIG);
    MISUSE(tdm_config_parse(NULL, NULL, "x", 1, NULL, NULL));
    MISUSE(tdm_config_parse(&config, NULL, NULL, 1, NULL, NULL));
    CHECK(config == NULL);
    tdm_config_free(NULL);
    MISUSE(tdm_config_check(NULL));
    MISUSE(tdm_config_predicts(NULL));
    CHECK_INT(tdm_config_fault_count(NULL), 0);
    CHECK(tdm_config_fault(NULL, 0) == NULL);
    MISUSE(tdm_config_faults(NULL, 0, &text));
    CHECK(tdm_config_job(NULL) == NULL && tdm_config_graph(NULL) == NULL && tdm_config_source(NULL) == NULL);
    MISUSE(tdm_config_print(NULL, TDM_CONFIG_JSON, &text));
    MISUSE(tdm_config_get(NULL, "seed", &text));
    MISUSE(tdm_config_override(NULL, "seed=1"));
    MISUSE(tdm_config_override_text(NULL, "seed", "1"));
    MISUSE(tdm_config_explain("seed", TDM_ENGLISH, NULL));
    MISUSE(tdm_config_schema(TDM_ENGLISH, NULL));
    CHECK_INT(tdm_job_key_flags(NULL, 0), 0);
    CHECK(!tdm_job_has_labels(NULL));
    CHECK(!tdm_job_has_logits(NULL));
    CHECK_INT(tdm_job_key_flags("no.such.key", 11), 0);
    MISUSE(tdm_config_lacking(NULL, &text));
    MISUSE(tdm_config_remarks(NULL, &text));
    MISUSE(tdm_config_add_fault(NULL, "x"));
    MISUSE(tdm_config_find_key(NULL, &text));
    MISUSE(tdm_config_find_key("lr", NULL));
    MISUSE(tdm_config_starter(NULL, TDM_ENGLISH, &text));
    MISUSE(tdm_config_starter("mnist", TDM_ENGLISH, NULL));
    MISUSE(tdm_config_starter("poem", TDM_ENGLISH, &text));
    REQUIRE_OK(tdm_config_parse(&config, NULL, "tandem: 1\n", 10, NULL, NULL));
    MISUSE(tdm_config_faults(config, 0, &text)); /* not checked yet */
    CHECK(tdm_config_job(config) == NULL);
    MISUSE(tdm_config_override(config, NULL));
    MISUSE(tdm_config_override(config, "seed"));
    MISUSE(tdm_config_override_text(config, NULL, "1"));
    MISUSE(tdm_config_override_text(config, "seed", NULL));
    CHECK_STATUS(tdm_config_check(config), TDM_E_CONFIG);
    MISUSE(tdm_config_faults(config, 0, NULL));
    MISUSE(tdm_config_print(config, TDM_CONFIG_RESOLVED, &text)); /* has faults */
    CHECK(tdm_config_fault(config, -1) == NULL);
    CHECK(tdm_config_fault(config, 1000) == NULL);
    tdm_config_free(config);
    CHECK(text == NULL);
}

TEST(checkpoints) {
    char *text = NULL;
    tdm_checkpoint_difference difference = {.size = sizeof(difference)};
    MISUSE(tdm_checkpoint_list(NULL, NULL, 0, &text));
    MISUSE(tdm_checkpoint_list(NULL, "x", 0, NULL));
    MISUSE(tdm_checkpoint_show(NULL, NULL, 0, &text));
    MISUSE(tdm_checkpoint_show(NULL, "x", 0, NULL));
    MISUSE(tdm_checkpoint_verify(NULL, NULL, &text));
    MISUSE(tdm_checkpoint_convert(NULL, NULL, "x.pt", NULL, &text));
    MISUSE(tdm_checkpoint_convert(NULL, "x", NULL, NULL, &text));
    MISUSE(tdm_checkpoint_convert(NULL, "x", "x.bin", NULL, NULL));
    MISUSE(tdm_checkpoint_compare(NULL, NULL, "x", 0, 0, &difference));
    MISUSE(tdm_checkpoint_compare(NULL, "x", NULL, 0, 0, &difference));
    MISUSE(tdm_checkpoint_compare(NULL, "x", "x", 0, 0, NULL));
    MISUSE(tdm_checkpoint_compare(NULL, "x", "x", NAN, 0, &difference));
    difference.size = 1;
    MISUSE(tdm_checkpoint_compare(NULL, "x", "x", 0, 0, &difference));
    REFUSED(tdm_checkpoint_list(NULL, "/no/such/folder", 0, &text), TDM_E_CHECKPOINT);
    REFUSED(tdm_checkpoint_show(NULL, "/no/such/folder", 1, &text), TDM_E_CHECKPOINT);
    REFUSED(tdm_checkpoint_verify(NULL, "/no/such/folder", NULL), TDM_E_CHECKPOINT);
    CHECK(text == NULL);
}

TEST(scale) {
    char *text = NULL;
    tdm_link link;
    double seconds[4];
    const tdm_cluster cluster = {.size = sizeof(cluster)};
    const tdm_scale_work work = {.size = sizeof(work)};
    tdm_scale_point point = {.size = sizeof(point)};
    MISUSE(tdm_link_parse(NULL, &link));
    MISUSE(tdm_link_parse("25Gb,20us", NULL));
    MISUSE(tdm_scale_times_parse(NULL, seconds));
    MISUSE(tdm_scale_times_parse("1ms,1ms,1ms", NULL));
    MISUSE(tdm_all_reduce_time(NULL, 1, 1, seconds));
    MISUSE(tdm_all_reduce_time(&cluster, 1, 1, NULL));
    MISUSE(tdm_all_reduce_time(&cluster, 1, 1, seconds)); /* no devices on a host */
    MISUSE(tdm_scale_at(NULL, &cluster, 1, &point));
    MISUSE(tdm_scale_at(&work, NULL, 1, &point));
    MISUSE(tdm_scale_at(&work, &cluster, 1, NULL));
    tdm_plan_scale_options scale = TDM_PLAN_SCALE_OPTIONS_INIT;
    MISUSE(tdm_plan_scale(NULL, graph, &scale, &text));
    MISUSE(tdm_plan_scale(&job, NULL, &scale, &text));
    MISUSE(tdm_plan_scale(&job, graph, NULL, &text));
    MISUSE(tdm_plan_scale(&job, graph, &scale, NULL));
    scale.device = "abacus";
    MISUSE(tdm_plan_scale(&job, graph, &scale, &text));
    scale.device = "cpu", scale.hosts = -1;
    MISUSE(tdm_plan_scale(&job, graph, &scale, &text));
    scale.hosts = 1, scale.forward = NAN;
    MISUSE(tdm_plan_scale(&job, graph, &scale, &text));
    scale.size = 1000;
    MISUSE(tdm_plan_scale(&job, graph, &scale, &text));
    CHECK(text == NULL);
}

TEST(data_sets) {
    char *report = NULL;
    tdm_data_spec spec = {.format = 99};
    tdm_data_use use = {.size = 1};
    MISUSE(tdm_data_check(NULL, NULL, NULL, &report));
    MISUSE(tdm_data_check(NULL, &spec, NULL, NULL));
    MISUSE(tdm_data_check(NULL, &spec, NULL, &report));
    spec.format = TDM_DATA_GLYPHS, spec.samples = 3;
    MISUSE(tdm_data_check(NULL, &spec, &use, &report));
    MISUSE(tdm_data_make(NULL, NULL, "x", 1, 0));
    MISUSE(tdm_data_make(NULL, "idx", NULL, 1, 0));
    MISUSE(tdm_data_make(NULL, "poem", "x", 1, 0));
    MISUSE(tdm_environment(NULL, 0, NULL));
    MISUSE(tdm_environment_variables(NULL, NULL));
    CHECK(report == NULL);
}

TEST(models) {
    tdm_model *model = NULL;
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    char *text = NULL;
    float x[1] = {0};
    MISUSE(tdm_config_print_model(NULL, graph, &text));
    MISUSE(tdm_config_print_model(&job, NULL, &text));
    MISUSE(tdm_config_print_model(&job, graph, NULL));
    MISUSE(tdm_model_open(NULL, "x", NULL));
    MISUSE(tdm_model_open(&model, NULL, NULL));
    MISUSE(tdm_model_open_memory(NULL, x, 4, NULL));
    MISUSE(tdm_model_open_memory(&model, NULL, 4, NULL));
    options.threads = 0;
    MISUSE(tdm_model_open(&model, "x", &options));
    options.size = 1;
    MISUSE(tdm_model_open(&model, "x", &options));
    REFUSED(tdm_model_open(&model, "no such file", NULL), TDM_E_CHECKPOINT);
    REFUSED(tdm_model_open(&model, "/", NULL), TDM_E_CHECKPOINT);
    REFUSED(tdm_model_open_memory(&model, x, 4, NULL), TDM_E_CHECKPOINT);
    CHECK(model == NULL);
    tdm_model_close(NULL);
    MISUSE(tdm_model_get_info(NULL, &info));
    CHECK(tdm_model_class_name(NULL, 0) == NULL);
    MISUSE(tdm_model_predict(NULL, TDM_INPUT_READY, x, 1, x));
    MISUSE(tdm_model_read_row(NULL, NULL, x));
    MISUSE(tdm_model_target(NULL, NULL));
    CHECK(tdm_model_column(NULL, 0) == NULL);
    MISUSE(tdm_model_read_picture(NULL, "x", x));
    MISUSE(tdm_model_decode_picture(NULL, x, 4, x));
    MISUSE(tdm_model_export(NULL, NULL, "x", NULL));
    MISUSE(tdm_model_export(NULL, "x", NULL, NULL));
    MISUSE(tdm_model_export_to(NULL, "x", NULL, NULL));
    MISUSE(tdm_model_export_onnx_to(NULL, "x", NULL, NULL));
    MISUSE(tdm_run_export_to(NULL, NULL, NULL));
    MISUSE(tdm_run_export_onnx_to(NULL, NULL, NULL));
    MISUSE(tdm_plan_check_memory(NULL, NULL));
    MISUSE(tdm_model_export_onnx(NULL, NULL, "x", NULL));
    MISUSE(tdm_model_export_onnx(NULL, "x", NULL, NULL));
    CHECK(tdm_model_property(NULL, "x") == NULL && tdm_model_property_key(NULL, 0) == NULL);
    MISUSE(tdm_model_text(NULL, NULL, &text));
    MISUSE(tdm_model_text(NULL, "x", NULL));
    REFUSED(tdm_model_text(NULL, "no such file", &text), TDM_E_CHECKPOINT);
    REFUSED(tdm_model_export(NULL, "no such file", "x", NULL), TDM_E_CHECKPOINT);
}

TEST(burn_in) {
    tdm_burnin *burnin = NULL;
    tdm_burnin_options options = {.size = 1000};
    tdm_burnin_total total = {.size = 1000};
    tdm_burnin_device device = TDM_BURNIN_DEVICE_INIT;
    tdm_job predicts = job;
    tdm_job_predicts(&predicts);
    CHECK_INT(predicts.parallel.device_ids.count, 1);
    MISUSE(tdm_burnin_open(NULL, &job, graph, NULL));
    MISUSE(tdm_burnin_open(&burnin, NULL, graph, NULL));
    MISUSE(tdm_burnin_open(&burnin, &job, NULL, NULL));
    MISUSE(tdm_burnin_open(&burnin, &job, graph, &options));
    MISUSE(tdm_burnin_run(NULL));
    tdm_burnin_request_stop(NULL);
    REQUIRE_OK(tdm_burnin_open(&burnin, &job, graph, NULL));
    MISUSE(tdm_burnin_get_total(NULL, &total));
    MISUSE(tdm_burnin_get_total(burnin, NULL));
    MISUSE(tdm_burnin_get_total(burnin, &total));
    MISUSE(tdm_burnin_get_device(NULL, 0, &device));
    MISUSE(tdm_burnin_get_device(burnin, 0, NULL));
    MISUSE(tdm_burnin_get_device(burnin, -1, &device));
    MISUSE(tdm_burnin_get_device(burnin, 99, &device));
    CHECK_TEXT(tdm_burnin_verdict_name(TDM_BURNIN_WRONG), "wrong");
    CHECK_TEXT(tdm_burnin_verdict_name(77), "");
    tdm_burnin_close(burnin);
    tdm_burnin_close(NULL);
}

TEST_MAIN(graph = api_graph(NULL); api_job(&job); if (tdm_run_open(&run, &job, graph, NULL) != TDM_OK) return 1;
          RUN(status_and_host); RUN(graphs); RUN(jobs_and_opening); RUN(scale); RUN(running);
          RUN(evaluation_without_data); RUN(configs); RUN(checkpoints); RUN(data_sets); RUN(models); RUN(burn_in);
          tdm_run_close(run); tdm_graph_free(graph);)
