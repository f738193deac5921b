/* A program's own parts, in every mode: dp = ddp = single to the bit. A step in pieces is the whole step. */
#include <stdlib.h>
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
    tdm_run_state state;
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
    for (int variant = PLAIN; variant < VARIANTS; variant++) {
        tdm_job job;
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
            const law_result whole = law_run_ok(&job, graph), parts = law_run_program(&job, graph, &pieces);
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
        CHECK(pass.samples > 0 && pass.loss > 0 && pass.accuracy >= 0);
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
    tdm_graph *graph = law_graph(1, 1);
    for (int all = 0; all < 2; all++) {
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

TEST_MAIN(RUN(pieces_are_the_step); RUN(pieces_of_stages_are_the_step); RUN(changed_gradients_are_equal_in_all_modes);)
