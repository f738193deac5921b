/* What a program that owns the training loop sets and reads between steps: learning rates, gradients. */
#include "tests/api/api.h"
#include "tests/api/misuse.h"
#include "tests/support/tdm_test.h"

enum { WEIGHTS = 12, OUTPUTS = 3 };

static tdm_graph *graph;

/* Plain SGD at lr 1: a step is parameter minus gradient, to the bit. */
static void plain_job(tdm_job *job) {
    api_job(job);
    job->optimizer.type = TDM_SGD;
    job->optimizer.momentum = 0;
    job->optimizer.lr = 1;
}

static tdm_run *open_run(const tdm_job *job, const tdm_run_options *options) {
    tdm_run *run = NULL;
    CHECK_OK(tdm_run_open(&run, job, graph, options));
    if (run == NULL) exit(1);
    return run;
}

static double lr_of(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    return state.lr;
}

/* ---- learning rates ---- */

static void hash_of(tdm_run *run, char out[40]) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(out, state.params_xxh3, sizeof(state.params_xxh3));
}

TEST(a_set_rate_is_a_rate_of_the_job) {
    char wanted[40], got[40];
    tdm_job job;
    plain_job(&job);
    job.optimizer.lr = 0.25;
    tdm_run *run = open_run(&job, NULL);
    CHECK_OK(tdm_run_train(run));
    hash_of(run, wanted);
    tdm_run_close(run);
    job.optimizer.lr = 0.5;
    run = open_run(&job, NULL);
    CHECK_OK(tdm_run_set_lr(run, -1, 0.25));
    CHECK_OK(tdm_run_train(run));
    hash_of(run, got);
    tdm_run_close(run);
    CHECK_TEXT(got, wanted);
}

TEST(a_checkpoint_brings_the_rate_of_the_schedule_back) {
    tdm_buffer saved = TDM_BUFFER_INIT;
    tdm_writer writer = TDM_WRITER_INIT;
    tdm_job job;
    plain_job(&job);
    tdm_run *run = open_run(&job, NULL);
    writer.write = tdm_buffer_write, writer.user = &saved;
    CHECK_OK(tdm_run_save_to(run, &writer));
    CHECK_OK(tdm_run_set_lr(run, -1, 0.25));
    CHECK(lr_of(run) == 0.25);
    CHECK_OK(tdm_run_load_memory(run, saved.bytes, saved.count));
    CHECK(lr_of(run) == 1);
    tdm_run_close(run);
    tdm_buffer_free(&saved);
}

typedef struct seen {
    tdm_run *run;
    double lr[8];
} seen;

/* From step 2 on 0.3, which the program gives back after step 4. */
static int set_in_event(const tdm_event *event, void *user) {
    seen *s = user;
    if (event->kind != TDM_EVENT_STEP) return 0;
    s->lr[event->step] = event->lr;
    if (event->step == 1) CHECK_OK(tdm_run_set_lr(s->run, -1, 0.3));
    if (event->step == 4) CHECK_OK(tdm_run_set_lr(s->run, -1, NAN));
    return 0;
}

TEST(the_schedule_goes_on_underneath) {
    static const double wanted[] = {0, 1, 0.3, 0.3, 0.3, 0.0625, 0.03125};
    tdm_job job;
    seen s = {NULL, {0}};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    plain_job(&job);
    job.schedule.type = TDM_SCHEDULE_EXPONENTIAL;
    job.schedule.per = TDM_SCHEDULE_PER_STEP;
    job.schedule.gamma = 0.5;
    options.on_event = set_in_event, options.user = &s;
    s.run = open_run(&job, &options);
    CHECK_OK(tdm_run_step(s.run, 3));
    CHECK(lr_of(s.run) == 0.3);
    CHECK_OK(tdm_run_step(s.run, 3));
    for (int step = 1; step <= 6; step++) CHECK(s.lr[step] == wanted[step]);
    CHECK(lr_of(s.run) == 0.015625);
    tdm_run_close(s.run);
}

TEST(groups_have_their_own) {
    tdm_job job;
    float weight[2][WEIGHTS], bias[2][OUTPUTS];
    plain_job(&job);
    job.optimizer.groups.count = 1;
    job.optimizer.groups.item[0] = (tdm_param_group){.params = {1, {"*.bias"}}, .lr = 0.5, .weight_decay = NAN};
    tdm_run *run = open_run(&job, NULL);
    for (int frozen = 0; frozen < 2; frozen++) {
        CHECK_OK(tdm_run_set_lr(run, 0, frozen ? 0 : 0.1));
        CHECK_OK(tdm_run_set_lr(run, -1, frozen ? 0.1 : 0));
        CHECK_OK(tdm_run_read(run, "fc.weight", weight[0], sizeof(weight[0])));
        CHECK_OK(tdm_run_read(run, "fc.bias", bias[0], sizeof(bias[0])));
        CHECK_OK(tdm_run_step(run, 1));
        CHECK_OK(tdm_run_read(run, "fc.weight", weight[1], sizeof(weight[1])));
        CHECK_OK(tdm_run_read(run, "fc.bias", bias[1], sizeof(bias[1])));
        CHECK((memcmp(bias[0], bias[1], sizeof(bias[0])) == 0) == (frozen == 1));
        CHECK((memcmp(weight[0], weight[1], sizeof(weight[0])) == 0) == (frozen == 0));
    }
    CHECK_STATUS(tdm_run_set_lr(run, 1, 0.1), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "group 1 is none of the job's 1");
    tdm_run_close(run);
}

/* ---- gradients ---- */

static void check_step(tdm_run *run, float gradient[WEIGHTS]) {
    float before[WEIGHTS], after[WEIGHTS], again[WEIGHTS];
    double loss, accuracy;
    CHECK_OK(tdm_run_read(run, "fc.weight", before, sizeof(before)));
    CHECK_OK(tdm_run_step(run, 1));
    CHECK_OK(tdm_run_read(run, "fc.weight", after, sizeof(after)));
    CHECK_OK(tdm_run_read_gradient(run, "fc.weight", gradient, WEIGHTS * sizeof(float)));
    for (int i = 0; i < WEIGHTS; i++) CHECK(after[i] == before[i] - gradient[i] && gradient[i] != 0);
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_OK(tdm_run_read_gradient(run, "fc.weight", again, sizeof(again)));
    CHECK(memcmp(again, gradient, sizeof(again)) == 0);
}

/* The same bits in every mode: the gradient is of the whole step. */
TEST(a_gradient_is_what_the_update_took) {
    float gradient[2][3][WEIGHTS];
    for (int clipped = 0; clipped < 2; clipped++) {
        for (int way = 0; way < 3; way++) {
            tdm_job job;
            plain_job(&job);
            job.parallel.mode = way == 0 ? TDM_MODE_SINGLE : TDM_MODE_DP;
            job.parallel.dp.scatter = TDM_SCATTER_STRIDED;
            job.parallel.dp.update = way == 2 ? TDM_DP_UPDATE_ALL : TDM_DP_UPDATE_ROOT;
            job.parallel.device_ids = (tdm_ints){2, {0, 1}};
            if (clipped) job.train.clip_grad_norm = 0.01;
            tdm_run *run = open_run(&job, NULL);
            float unused[WEIGHTS];
            CHECK_STATUS(tdm_run_read_gradient(run, "fc.weight", unused, sizeof(unused)), TDM_E_USAGE);
            CHECK_HAS(tdm_error_message(), "has made no step");
            for (int step = 0; step < 2; step++) check_step(run, gradient[clipped][way]);
            CHECK(memcmp(gradient[clipped][way], gradient[clipped][0], sizeof(unused)) == 0);
            tdm_run_close(run);
        }
        double squares = 0;
        for (int i = 0; i < WEIGHTS; i++) squares += gradient[clipped][0][i] * gradient[clipped][0][i];
        CHECK((sqrt(squares) <= 0.01) == (clipped == 1));
    }
}

TEST(what_has_no_gradient_says_so) {
    float x[72 * 4];
    tdm_job job;
    tdm_run *run = NULL;
    tdm_graph *network = api_graph(NULL);
    plain_job(&job);
    job.freeze = (tdm_texts){1, {"conv.*"}};
    REQUIRE_OK(tdm_run_open(&run, &job, network, NULL));
    CHECK_OK(tdm_run_step(run, 1));
    CHECK_OK(tdm_run_read_gradient(run, "fc.bias", x, 12));
    CHECK_STATUS(tdm_run_read_gradient(run, "conv.bias", x, 16), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "'conv.bias' is frozen");
    CHECK_STATUS(tdm_run_read_gradient(run, "bn.running_mean", x, 16), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "is a buffer");
    CHECK_STATUS(tdm_run_read_gradient(run, "fc.bais", x, 12), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "no tensor 'fc.bais'");
    tdm_run_close(run);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.predicts = 1;
    REQUIRE_OK(tdm_run_open(&run, &job, network, &options));
    CHECK_STATUS(tdm_run_read_gradient(run, "fc.bias", x, 12), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_set_lr(run, -1, 0.1), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "opened to predict");
    tdm_run_close(run);
    tdm_graph_free(network);
}

/* ---- a step in pieces ---- */

static void check_refused(tdm_status status) {
    CHECK_STATUS(status, TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "the gradients of step 1 wait");
}

TEST(while_an_update_waits_nothing_else_goes_on) {
    char hash[2][40];
    float weight[WEIGHTS], unused[WEIGHTS];
    double loss, accuracy;
    tdm_job job;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    plain_job(&job);
    tdm_run *run = open_run(&job, NULL);
    CHECK_STATUS(tdm_run_update(run), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "call tdm_run_backward first");
    CHECK_STATUS(tdm_run_skip_update(run), TDM_E_USAGE);
    MISUSE(tdm_run_backward(NULL, NULL));
    MISUSE(tdm_run_update(NULL));
    MISUSE(tdm_run_skip_update(NULL));
    MISUSE(tdm_run_write_gradient(NULL, "fc.weight", weight, sizeof(weight)));
    MISUSE(tdm_run_write_gradient(run, "fc.weight", weight, sizeof(weight))); /* no update waits */
    CHECK_STATUS(tdm_run_backward(run, &(tdm_pass){.size = 2}), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_backward(run, &(tdm_pass){.size = sizeof(tdm_pass) + 8}), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "tdm_run_backward: tdm_pass");
    hash_of(run, hash[0]);
    CHECK_OK(tdm_run_backward(run, NULL));
    check_refused(tdm_run_backward(run, NULL));
    check_refused(tdm_run_step(run, 1));
    check_refused(tdm_run_train(run));
    check_refused(tdm_run_save(run, "unused"));
    check_refused(tdm_run_load(run, "unused"));
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer};
    check_refused(tdm_run_save_to(run, &writer));
    check_refused(tdm_run_load_memory(run, "unused", 6));
    CHECK_OK(tdm_run_read_gradient(run, "fc.weight", unused, sizeof(unused)));
    CHECK_STATUS(tdm_run_write_gradient(run, NULL, unused, sizeof(unused)), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_write_gradient(run, "fc.weight", NULL, sizeof(unused)), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_write_gradient(run, "fc.weight", unused, sizeof(unused) - 4), TDM_E_USAGE);
    CHECK_OK(tdm_run_read(run, "fc.weight", weight, sizeof(weight)));
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_OK(tdm_run_skip_update(run));
    hash_of(run, hash[1]);
    CHECK_TEXT(hash[1], hash[0]);
    CHECK_OK(tdm_run_step(run, 5));
    CHECK_STATUS(tdm_run_backward(run, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "all 6 steps of the job are done");
    tdm_run_close(run);
}

static void check_forward_waits(tdm_status status) {
    CHECK_STATUS(status, TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "the forward of step 1 waits");
}

TEST(while_a_backward_waits_the_replicas_stay) {
    float weight[WEIGHTS], x[4] = {0}, y[OUTPUTS];
    double loss, accuracy;
    tdm_job job;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer};
    tdm_scores scores = TDM_SCORES_INIT;
    tdm_outputs of = TDM_OUTPUTS_INIT;
    plain_job(&job);
    tdm_run *run = open_run(&job, NULL);
    MISUSE(tdm_run_forward(NULL, NULL));
    MISUSE(tdm_run_outputs(NULL, &of));
    MISUSE(tdm_run_outputs(run, NULL));
    CHECK_STATUS(tdm_run_outputs(run, &of), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "between tdm_run_forward and");
    CHECK_STATUS(tdm_run_forward(run, &(tdm_pass){.size = sizeof(tdm_pass) + 8}), TDM_E_USAGE);
    CHECK_OK(tdm_run_read(run, "fc.weight", weight, sizeof(weight)));
    CHECK_OK(tdm_run_forward(run, NULL));
    check_forward_waits(tdm_run_forward(run, NULL));
    check_forward_waits(tdm_run_step(run, 1));
    check_forward_waits(tdm_run_train(run));
    check_forward_waits(tdm_run_save(run, "unused"));
    check_forward_waits(tdm_run_load(run, "unused"));
    check_forward_waits(tdm_run_save_to(run, &writer));
    check_forward_waits(tdm_run_evaluate(run, &loss, &accuracy));
    check_forward_waits(tdm_run_evaluate_scores(run, &scores));
    check_forward_waits(tdm_run_predict(run, x, 1, y));
    check_forward_waits(tdm_run_write(run, "fc.weight", weight, sizeof(weight)));
    CHECK_STATUS(tdm_run_update(run), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "call tdm_run_backward first");
    MISUSE(tdm_run_write_gradient(run, "fc.weight", weight, sizeof(weight)));
    CHECK_STATUS(tdm_run_read_gradient(run, "fc.weight", weight, sizeof(weight)), TDM_E_USAGE);
    CHECK_OK(tdm_run_read(run, "fc.weight", weight, sizeof(weight)));
    CHECK_OK(tdm_run_outputs(run, &of));
    CHECK(of.rows == job.train.per_device && of.width == OUTPUTS);
    CHECK_OK(tdm_run_backward(run, NULL));
    check_refused(tdm_run_forward(run, NULL));
    CHECK_STATUS(tdm_run_outputs(run, &of), TDM_E_USAGE);
    CHECK_OK(tdm_run_update(run));
    CHECK_OK(tdm_run_step(run, 5));
    CHECK_STATUS(tdm_run_forward(run, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "all 6 steps of the job are done");
    tdm_run_close(run);
}

/* Between two micro-batches the replicas are free, and their gradients are not complete. */
TEST(micro_batches_go_one_by_one) {
    float weight[WEIGHTS], x[4] = {0}, y[OUTPUTS];
    double loss, accuracy;
    char hash[2][40];
    tdm_job job;
    plain_job(&job);
    job.train.accumulate = 2;
    tdm_run *run = open_run(&job, NULL);
    tdm_pass pass = TDM_PASS_INIT;
    tdm_outputs of = TDM_OUTPUTS_INIT;
    hash_of(run, hash[0]);
    CHECK_OK(tdm_run_forward(run, &pass));
    CHECK(pass.step == 1 && pass.micro_batch == 1 && pass.micro_batches == 2 && pass.samples == job.train.per_device);
    CHECK_OK(tdm_run_outputs(run, &of));
    CHECK_INT(of.rows, job.train.per_device / 2);
    check_forward_waits(tdm_run_forward(run, NULL));
    CHECK_OK(tdm_run_backward(run, NULL));
    CHECK_STATUS(tdm_run_backward(run, NULL), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "step 1 waits for the forward of its next micro-batch");
    CHECK_STATUS(tdm_run_update(run), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "gradients are there of 1 of 2 micro-batches");
    CHECK_STATUS(tdm_run_step(run, 1), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_save(run, "unused"), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_outputs(run, &of), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_read_gradient(run, "fc.weight", weight, sizeof(weight)), TDM_E_USAGE);
    CHECK_STATUS(tdm_run_write_gradient(run, "fc.weight", weight, sizeof(weight)), TDM_E_USAGE);
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_OK(tdm_run_predict(run, x, 1, y));
    CHECK_OK(tdm_run_forward(run, &pass));
    CHECK(pass.step == 1 && pass.micro_batch == 2);
    CHECK_OK(tdm_run_backward(run, NULL));
    CHECK_OK(tdm_run_read_gradient(run, "fc.weight", weight, sizeof(weight)));
    CHECK_OK(tdm_run_update(run));
    CHECK_OK(tdm_run_step(run, 1));
    CHECK_OK(tdm_run_backward(run, &pass)); /* of all at once */
    CHECK(pass.step == 3 && pass.micro_batch == 2);
    CHECK_OK(tdm_run_update(run));
    hash_of(run, hash[0]);
    for (int behind = 0; behind < 2; behind++) { /* the rest of a step is left out behind a forward, or a backward */
        CHECK_OK(tdm_run_forward(run, NULL));
        if (behind) CHECK_OK(tdm_run_backward(run, NULL));
        CHECK_OK(tdm_run_skip_update(run));
        hash_of(run, hash[1]);
        CHECK_TEXT(hash[1], hash[0]);
    }
    CHECK_OK(tdm_run_step(run, 1));
    tdm_run_close(run);
}

/* A loss that is not finite ends no run: the program sees it first. */
TEST(an_update_by_nan_can_be_skipped) {
    float bias[OUTPUTS], kept[OUTPUTS], spoilt[OUTPUTS] = {NAN, 0, 0};
    tdm_job job;
    plain_job(&job);
    tdm_run *run = open_run(&job, NULL);
    tdm_pass pass = TDM_PASS_INIT;
    CHECK_OK(tdm_run_read(run, "fc.bias", kept, sizeof(kept)));
    CHECK_OK(tdm_run_write(run, "fc.bias", spoilt, sizeof(spoilt)));
    CHECK_OK(tdm_run_backward(run, &pass));
    CHECK(isnan(pass.loss));
    CHECK_STATUS(tdm_run_update(run), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "the loss of step 1 is nan");
    CHECK_OK(tdm_run_write(run, "fc.bias", kept, sizeof(kept)));
    CHECK_OK(tdm_run_skip_update(run));
    CHECK_OK(tdm_run_backward(run, &pass));
    CHECK(pass.step == 2 && isfinite(pass.loss));
    CHECK_OK(tdm_run_update(run));
    CHECK_OK(tdm_run_read(run, "fc.bias", bias, sizeof(bias)));
    CHECK(isfinite(bias[0]) && memcmp(bias, kept, sizeof(bias)) != 0);
    tdm_run_request_stop(run);
    CHECK_OK(tdm_run_backward(run, &pass));
    CHECK_STATUS(tdm_run_update(run), TDM_E_STOPPED);
    CHECK_OK(tdm_run_step(run, 3));
    tdm_run_close(run);
}

TEST_MAIN(graph = api_linear_graph(4); RUN(a_set_rate_is_a_rate_of_the_job);
          RUN(a_checkpoint_brings_the_rate_of_the_schedule_back); RUN(the_schedule_goes_on_underneath);
          RUN(groups_have_their_own); RUN(a_gradient_is_what_the_update_took); RUN(what_has_no_gradient_says_so);
          RUN(while_an_update_waits_nothing_else_goes_on); RUN(while_a_backward_waits_the_replicas_stay);
          RUN(micro_batches_go_one_by_one); RUN(an_update_by_nan_can_be_skipped); tdm_graph_free(graph);)
