/* A program's own parts, in every mode: dp = ddp = single to the bit. A step in pieces is the whole step. */
#include <math.h>
#include <string.h>

#include "law.h"
#include "tests/support/tdm_test.h"

/* The modes that make the same: replicas, and the devices of each. */
static void set_mode(tdm_job *job, int mode, int replicas) {
    const int devices = replicas * (int)job->parallel.stages;
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

static const int modes[] = {TDM_MODE_SINGLE, TDM_MODE_DP, TDM_MODE_DDP};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

/* ---- steps in pieces ---- */

static tdm_status in_pieces(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    for (int64_t step = 0; step < state.steps_total; step++) {
        tdm_status status = tdm_run_backward(run, NULL);
        if (status == TDM_OK) status = tdm_run_update(run);
        if (status != TDM_OK) return status;
    }
    return TDM_OK;
}

static const law_program pieces = {.train = in_pieces};

TEST(pieces_are_the_step) {
    enum { PLAIN, ACCUMULATED, CLIPPED, AVERAGED, UPDATE_ALL, CHECKED, VARIANTS };
    for (int variant = PLAIN; variant < VARIANTS; variant += TDM_EVERY(2)) {
        tdm_job job;
        law_result whole;
        law_short_job(&job);
        job.train.steps = 3;
        if (variant == ACCUMULATED) job.train.accumulate = 2;
        if (variant == CLIPPED) job.train.clip_grad_norm = 0.1, job.train.clip_grad_value = 0.02;
        if (variant == AVERAGED) job.train.ema_decay = 0.5, job.train.ema_every = 1;
        if (variant == UPDATE_ALL) job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        if (variant == CHECKED) job.parallel.ddp.check_reduction = true;
        job.schedule.type = TDM_SCHEDULE_EXPONENTIAL;
        job.schedule.per = TDM_SCHEDULE_PER_STEP;
        job.schedule.gamma = 0.5;
        tdm_graph *graph = law_graph(1, 1);
        for (int m = 0; m < MODES; m++) {
            set_mode(&job, modes[m], 2);
            if (m == 0) whole = law_run_ok(&job, graph);
            const law_result parts = law_run_program(&job, graph, &pieces);
            CHECK_INT(whole.steps, 3);
            law_check_same(&whole, &parts);
        }
        tdm_graph_free(graph);
    }
}

TEST(pieces_of_stages_are_the_step) {
    tdm_job job;
    law_short_job(&job);
    job.train.steps = 2;
    job.train.accumulate = 3;
    job.train.clip_grad_norm = 0.1;
    job.parallel.stages = 2;
    tdm_graph *graph = law_graph(1, 1);
    for (int m = 0; m < MODES; m++) {
        if (modes[m] == TDM_MODE_DP) continue;
        set_mode(&job, modes[m], 1 + (modes[m] == TDM_MODE_DDP));
        const law_result whole = law_run_ok(&job, graph), parts = law_run_program(&job, graph, &pieces);
        law_check_same(&whole, &parts);
    }
    tdm_graph_free(graph);
}

/* Their mean cross entropy, where this process has all rows. */
static double loss_of(const tdm_outputs *of) {
    const int64_t *label = of->target;
    double sum = 0;
    for (int64_t n = 0; n < of->rows; n++) {
        double all = 0;
        for (int64_t c = 0; c < of->width; c++) all += exp((double)of->y[n * of->width + c]);
        sum += log(all) - (double)of->y[n * of->width + label[n]];
    }
    return sum / (double)of->rows;
}

static tdm_status in_three(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    for (int64_t step = 0; step < state.steps_total; step++) {
        tdm_pass pass[2] = {TDM_PASS_INIT, TDM_PASS_INIT};
        tdm_outputs of = TDM_OUTPUTS_INIT;
        tdm_status status = tdm_run_forward(run, &pass[0]);
        if (status != TDM_OK) return status;
        CHECK_OK(tdm_run_outputs(run, &of));
        CHECK(of.width == 5 && of.rows <= pass[0].samples);
        if (of.rows == pass[0].samples) CHECK(fabs(loss_of(&of) - pass[0].loss) < 1e-5);
        status = tdm_run_backward(run, &pass[1]);
        if (status == TDM_OK) status = tdm_run_update(run);
        if (status != TDM_OK) return status;
        CHECK(pass[0].loss == pass[1].loss && pass[1].step == step + 1);
    }
    return TDM_OK;
}

static const law_program three = {.train = in_three};

/* As in PyTorch: forward and backward of each micro-batch, then the update. */
static tdm_status in_micro_batches(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    for (int64_t step = 1; step <= state.steps_total; step++) {
        tdm_pass pass = TDM_PASS_INIT;
        double before = 0;
        for (int64_t k = 1; k == 1 || k <= pass.micro_batches; k++) {
            tdm_outputs of = TDM_OUTPUTS_INIT;
            tdm_status status = tdm_run_forward(run, &pass);
            if (status != TDM_OK) return status;
            CHECK(pass.step == step && pass.micro_batch == k && pass.loss >= before);
            CHECK_OK(tdm_run_outputs(run, &of));
            CHECK(of.width == 5 && of.rows <= pass.samples);
            before = pass.loss;
            status = tdm_run_backward(run, &pass);
            if (status != TDM_OK) return status;
            CHECK(pass.micro_batch == k && pass.loss == before);
            if (k == pass.micro_batches) continue;
            CHECK_STATUS(tdm_run_update(run), TDM_E_USAGE);
            CHECK_HAS(tdm_error_message(), "gradients are there of ");
        }
        const tdm_status status = tdm_run_update(run);
        if (status != TDM_OK) return status;
    }
    return TDM_OK;
}

static const law_program micro_batches = {.train = in_micro_batches};

TEST(micro_batches_one_by_one_are_the_step) {
    enum { PLAIN, THREE, LOSS_OF_REPLICAS, UPDATE_ALL, CHECKED, EXCHANGED, JOINED, RANKS, STAGES, VARIANTS };
    tdm_graph *graph = law_graph(1, 1);
    for (int variant = PLAIN; variant < VARIANTS; variant += TDM_EVERY(2)) {
        tdm_job job;
        law_short_job(&job);
        job.data.train.samples = 53; /* the last batch of an epoch has 5, so that ranks have unequally many */
        job.train.steps = 6;
        job.train.accumulate = variant == PLAIN || variant == CHECKED ? 2 : 3;
        job.train.clip_grad_norm = 0.1;
        if (variant == LOSS_OF_REPLICAS) job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        if (variant == UPDATE_ALL) job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        if (variant == CHECKED) job.parallel.ddp.check_reduction = true;
        if (variant == EXCHANGED) job.parallel.sync_batchnorm = true;
        if (variant == JOINED) job.parallel.ddp.join = true;
        if (variant == RANKS) job.parallel.ddp.average = TDM_AVERAGE_RANKS, job.loss.ignore_index = 1;
        if (variant == STAGES) job.parallel.stages = 2;
        for (int m = 0; m < MODES; m++) {
            if (modes[m] == TDM_MODE_DP && (variant == STAGES || variant == JOINED)) continue;
            if (modes[m] != TDM_MODE_DDP && variant == RANKS) continue;
            set_mode(&job, modes[m], modes[m] == TDM_MODE_SINGLE ? 1 : 2);
            const law_result whole = law_run_ok(&job, graph), parts = law_run_program(&job, graph, &micro_batches);
            CHECK_INT(whole.steps, 6);
            law_check_same(&whole, &parts);
        }
    }
    tdm_graph_free(graph);
}

TEST(forward_backward_and_update_are_the_step) {
    enum { PLAIN, LOSS_OF_REPLICAS, UPDATE_ALL, CHECKED, EXCHANGED, JOINED, STAGES, VARIANTS };
    tdm_graph *graph = law_graph(1, 1);
    for (int variant = PLAIN; variant < VARIANTS; variant += TDM_EVERY(2)) {
        tdm_job job;
        law_short_job(&job);
        job.train.steps = 3;
        job.train.clip_grad_norm = 0.1;
        if (variant == LOSS_OF_REPLICAS) job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        if (variant == UPDATE_ALL) job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        if (variant == CHECKED) job.parallel.ddp.check_reduction = true;
        if (variant == EXCHANGED) job.parallel.sync_batchnorm = true;
        if (variant == JOINED) job.parallel.ddp.join = true;
        if (variant == STAGES) job.parallel.stages = 2;
        for (int m = 0; m < MODES; m++) {
            if (modes[m] == TDM_MODE_DP && (variant == STAGES || variant == JOINED)) continue;
            set_mode(&job, modes[m], modes[m] == TDM_MODE_SINGLE ? 1 : 2);
            const law_result whole = law_run_ok(&job, graph), parts = law_run_program(&job, graph, &three);
            CHECK_INT(whole.steps, 3);
            law_check_same(&whole, &parts);
        }
    }
    tdm_graph_free(graph);
}

/* Its step ends all the same, and the next has the next batch. */
static tdm_status leave_out_the_second(tdm_run *run) {
    for (int64_t step = 1; step <= 3; step++) {
        CHECK_OK(tdm_run_forward(run, NULL));
        if (step != 2) CHECK_OK(tdm_run_backward(run, NULL));
        CHECK_OK(step == 2 ? tdm_run_skip_update(run) : tdm_run_update(run));
    }
    return TDM_OK;
}

static tdm_status skip_the_second(tdm_run *run) {
    for (int64_t step = 1; step <= 3; step++) {
        CHECK_OK(tdm_run_backward(run, NULL));
        CHECK_OK(step == 2 ? tdm_run_skip_update(run) : tdm_run_update(run));
    }
    return TDM_OK;
}

TEST(a_step_may_end_behind_its_forward) {
    tdm_job job;
    law_short_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    for (int m = 0; m < MODES; m++) {
        set_mode(&job, modes[m], modes[m] == TDM_MODE_SINGLE ? 1 : 2);
        const law_result skipped = law_run_program(&job, graph, &(law_program){.train = skip_the_second});
        const law_result left_out = law_run_program(&job, graph, &(law_program){.train = leave_out_the_second});
        law_check_same(&skipped, &left_out);
    }
    tdm_graph_free(graph);
}

TEST(parts_that_share_memory_have_no_forward_alone) {
    tdm_graph *graph = law_graph(0, 0);
    tdm_job job;
    law_short_job(&job);
    set_mode(&job, TDM_MODE_SINGLE, 2);
    const law_result result = law_try_program(&job, graph, &three);
    CHECK_STATUS(result.status, TDM_E_UNSUPPORTED);
    CHECK_HAS(result.message, "computes their parts in turn");
    CHECK_HAS(result.message, "tdm_run_backward makes both");
    tdm_graph_free(graph);
}

static void halve_gradient(tdm_run *run, const char *name) {
    float gradient[24 * 5];
    CHECK_OK(tdm_run_read_gradient(run, name, gradient, sizeof(gradient)));
    for (int i = 0; i < 24 * 5; i++) gradient[i] *= 0.5f;
    CHECK_OK(tdm_run_write_gradient(run, name, gradient, sizeof(gradient)));
}

/* Changes gradients, evaluates between backward and update, and skips the second step. */
static tdm_status meddling(tdm_run *run) {
    double loss, accuracy;
    for (int64_t step = 1; step <= 4; step++) {
        tdm_pass pass = TDM_PASS_INIT;
        const tdm_status status = tdm_run_backward(run, &pass);
        if (status != TDM_OK) return status;
        CHECK_INT(pass.step, step);
        CHECK(pass.samples > 0 && pass.loss > 0);
        halve_gradient(run, "fc2.weight");
        if (step == 3) CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
        CHECK_OK(tdm_run_set_lr(run, -1, 0.01 / (double)step));
        CHECK_OK(step == 2 ? tdm_run_skip_update(run) : tdm_run_update(run));
    }
    return TDM_OK;
}

TEST(changed_gradients_are_equal_in_all_modes) {
    tdm_job job;
    law_result result[MODES];
    law_short_job(&job);
    job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
    job.train.ema_decay = 0.9; /* evaluations exchange the parameters and their average */
    tdm_graph *graph = law_graph(1, 1);
    for (int all = 0; all < 2; all += TDM_EVERY(2)) {
        job.parallel.dp.update = all ? TDM_DP_UPDATE_ALL : TDM_DP_UPDATE_ROOT;
        for (int m = 0; m < MODES; m++) {
            set_mode(&job, modes[m], 3);
            result[m] = law_run_program(&job, graph, &(law_program){.train = meddling});
            CHECK_INT(result[m].steps, 4);
            law_check_same(&result[0], &result[m]);
        }
    }
    const law_result untouched = law_run_ok(&job, graph);
    CHECK(strcmp(untouched.params, result[0].params) != 0);
    tdm_graph_free(graph);
}

static double evaluated;

static tdm_status skip_the_first(tdm_run *run) {
    double accuracy;
    tdm_buffer saved = TDM_BUFFER_INIT;
    tdm_writer writer = TDM_WRITER_INIT;
    writer.write = tdm_buffer_write, writer.user = &saved;
    CHECK_OK(tdm_run_backward(run, NULL));
    CHECK_OK(tdm_run_skip_update(run));
    CHECK_OK(tdm_run_save_to(run, &writer));
    CHECK_OK(tdm_run_load_memory(run, saved.bytes, saved.count)); /* a checkpoint keeps how many were skipped */
    tdm_buffer_free(&saved);
    CHECK_OK(tdm_run_backward(run, NULL));
    CHECK_OK(tdm_run_update(run));
    return tdm_run_evaluate(run, &evaluated, &accuracy);
}

/* The first update is the first: the average is a copy of the parameters behind it. */
TEST(a_skipped_step_is_no_update) {
    tdm_job job;
    double of_average = 0;
    law_short_job(&job);
    job.train.steps = 2;
    job.train.ema_decay = 0.99;
    tdm_graph *graph = law_graph(1, 1);
    for (int m = 0; m < 2; m++) { /* the same in single and dp */
        set_mode(&job, modes[m], 2);
        job.eval.weights = TDM_WEIGHTS_EMA;
        (void)law_run_program(&job, graph, &(law_program){.train = skip_the_first});
        of_average = evaluated;
        job.eval.weights = TDM_WEIGHTS_MODEL;
        (void)law_run_program(&job, graph, &(law_program){.train = skip_the_first});
        CHECK(of_average > 0 && of_average == evaluated);
    }
    tdm_graph_free(graph);
}

/* ---- a loss ---- */

enum { CLASSES = 5 };

/* Cross entropy, each row by itself. */
static tdm_status own_entropy(void *user, const tdm_outputs *of, double *sum, float *dy) {
    const int64_t *label = of->target;
    (void)user;
    CHECK(of->size == sizeof(*of) && of->rows > 0 && of->width == CLASSES);
    for (int64_t n = 0; n < of->rows; n++) {
        const float *y = of->y + n * of->width;
        double all = 0;
        for (int c = 0; c < CLASSES; c++) all += exp((double)y[c]);
        *sum += log(all) - (double)y[label[n]];
        for (int c = 0; dy != NULL && c < CLASSES; c++)
            dy[n * of->width + c] = (float)(exp((double)y[c]) / all - (c == label[n]));
    }
    return TDM_OK;
}

static const tdm_own_loss entropy = {sizeof(entropy), "own_entropy", own_entropy, NULL};

static void set_loss(tdm_run_options *options) {
    options->loss = &entropy;
}

static const law_program with_loss = {.set = set_loss};

static tdm_status train_nothing(tdm_run *run) {
    (void)run;
    return TDM_OK;
}

/* Of equal weights: after some steps a last bit may turn a row from right to wrong. */
static void check_accuracy(const tdm_job *job, const tdm_graph *graph) {
    const law_result own = law_run_program(job, graph, &(law_program){.set = set_loss, .train = train_nothing});
    const law_result builtin = law_run_program(job, graph, &(law_program){.train = train_nothing});
    CHECK_TEXT(own.params, builtin.params);
    CHECK(own.accuracy > 0 && own.accuracy == builtin.accuracy);
    CHECK(fabs(own.eval_loss - builtin.eval_loss) < 1e-6);
}

TEST(a_loss_is_equal_in_all_modes) {
    enum { PLAIN, ACCUMULATED, LOSS_OF_REPLICAS, EXCHANGED, VARIANTS };
    tdm_graph *graph = law_graph(1, 1);
    for (int variant = PLAIN; variant < VARIANTS; variant += TDM_EVERY(2)) {
        tdm_job job;
        law_result result[MODES];
        law_short_job(&job);
        job.train.steps = 3;
        if (variant == ACCUMULATED) job.train.accumulate = 2;
        if (variant == LOSS_OF_REPLICAS) job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        if (variant == EXCHANGED) job.parallel.sync_batchnorm = true;
        for (int m = 0; m < MODES; m++) {
            set_mode(&job, modes[m], 2);
            result[m] = law_run_program(&job, graph, &with_loss);
            CHECK_INT(result[m].steps, 3);
            law_check_same(&result[0], &result[m]);
        }
        const law_result builtin = law_run_ok(&job, graph);
        for (int step = 0; step < 3; step++) CHECK(fabs(builtin.loss[step] - result[0].loss[step]) < 1e-5);
        CHECK(fabs(builtin.eval_loss - result[0].eval_loss) < 1e-3);
        check_accuracy(&job, graph);
    }
    tdm_graph_free(graph);
}

/* ---- an optimizer ---- */

/* torch.optim.SGD with momentum, fused where tandem fuses: tandem/parts.h and own-loop.md have it. */
static tdm_status own_sgd(void *user, const tdm_own_update *u) {
    const float momentum = (float)u->momentum, decay = (float)u->weight_decay, rate = (float)u->lr;
    (void)user;
    CHECK(u->size == sizeof(*u) && u->step >= 1 && u->state[0] != NULL && u->state[1] == NULL);
    for (int64_t i = 0; i < u->count; i++) {
        const float g = decay != 0 ? fmaf(u->p[i], decay, u->g[i]) : u->g[i];
        u->state[0][i] = u->step == 1 ? g : momentum * u->state[0][i] + g;
        u->p[i] = fmaf(u->state[0][i], -rate, u->p[i]);
    }
    return TDM_OK;
}

static const tdm_own_optimizer sgd = {sizeof(sgd), "own_sgd", {"momentum_buffer"}, own_sgd, NULL};

static void set_optimizer(tdm_run_options *options) {
    options->optimizer = &sgd;
}

static const law_program with_optimizer = {.set = set_optimizer};

TEST(an_optimizer_is_tandems_own_in_all_modes) {
    enum { PLAIN, GROUPS, UPDATE_ALL, STAGES, NO_MOMENTUM, VARIANTS };
    tdm_graph *graph = law_graph(1, 1);
    for (int variant = PLAIN; variant < VARIANTS; variant += TDM_EVERY(2)) {
        tdm_job job;
        law_result wanted;
        law_short_job(&job);
        job.optimizer.type = TDM_SGD;
        job.optimizer.momentum = variant == NO_MOMENTUM ? 0 : 0.9;
        if (variant == NO_MOMENTUM) job.optimizer.weight_decay = 0.1;
        job.train.steps = 3;
        if (variant == GROUPS) {
            job.optimizer.weight_decay = 0.1;
            job.optimizer.groups.count = 1;
            job.optimizer.groups.item[0] = (tdm_param_group){.params = {1, {"*.bias"}}, .lr = 0.5, .weight_decay = 0};
        }
        if (variant == UPDATE_ALL) job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        if (variant == STAGES) job.parallel.stages = 2, job.train.accumulate = 2;
        for (int m = 0; m < MODES; m++) {
            if (variant == STAGES && modes[m] == TDM_MODE_DP) continue;
            set_mode(&job, modes[m], 2);
            if (m == 0) wanted = law_run_ok(&job, graph);
            const law_result got = law_run_program(&job, graph, &with_optimizer);
            CHECK_INT(wanted.steps, 3);
            law_check_same(&wanted, &got);
        }
    }
    tdm_graph_free(graph);
}

/* ---- a part that fails ---- */

static tdm_status failing(void *user, const tdm_outputs *of, double *sum, float *dy) {
    (void)user, (void)of, (void)sum;
    return dy != NULL ? TDM_E_NUMERIC : TDM_OK;
}

static const tdm_own_loss bad_loss = {sizeof(bad_loss), "bad", failing, NULL};

static void set_bad_loss(tdm_run_options *options) {
    options->loss = &bad_loss;
}

TEST(a_failure_ends_the_step_on_all_ranks) {
    tdm_job job;
    law_short_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    for (int m = 0; m < MODES; m++) {
        set_mode(&job, modes[m], 2);
        job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
        const law_result result = law_try_program(&job, graph, &(law_program){.set = set_bad_loss});
        CHECK_STATUS(result.status, TDM_E_NUMERIC);
        CHECK_HAS(result.message, "the program's own loss 'bad' failed with status 9");
    }
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(pieces_are_the_step); RUN(pieces_of_stages_are_the_step); RUN(forward_backward_and_update_are_the_step);
          RUN(micro_batches_one_by_one_are_the_step); RUN(a_step_may_end_behind_its_forward);
          RUN(parts_that_share_memory_have_no_forward_alone); RUN(changed_gradients_are_equal_in_all_modes);
          RUN(a_skipped_step_is_no_update); RUN(a_loss_is_equal_in_all_modes);
          RUN(an_optimizer_is_tandems_own_in_all_modes); RUN(a_failure_ends_the_step_on_all_ranks);)
