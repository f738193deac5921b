/* The best checkpoint and early stopping: the same in every mode, and over interruptions. */
#include <math.h>
#include <sys/stat.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { STEPS = 12 };
static char folder[256];

static void fresh_folder(void) {
    if (folder[0] != '\0') test_folder_remove(folder);
    test_folder_make(folder);
}

static void set_mode(tdm_job *job, int mode, int devices) {
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

static void make_job(tdm_job *job) {
    law_job(job);
    job->train.steps = STEPS;
    job->eval.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
    job->checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 5};
    job->checkpoint.keep_last = 1;
    job->checkpoint.keep_best = TDM_METRIC_LOSS;
    job->checkpoint.resume = "auto";
    job->run.dir = folder;
}

static bool has_checkpoint(int step) {
    char path[400];
    struct stat info;
    snprintf(path, sizeof(path), "%s/checkpoints/step-%08d/MANIFEST.json", folder, step);
    return stat(path, &info) == 0;
}

/* Reads a small file of the run folder. */
static const char *content(const char *name) {
    static char text[65536];
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    size_t count = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL) fclose(file);
    text[count] = '\0';
    return text;
}

/* The evaluations' losses by step, from metrics.jsonl; returns how many there are. */
static int eval_losses(double losses[STEPS + 1]) {
    int count = 0;
    for (const char *at = content("metrics.jsonl"); (at = strstr(at, "\"kind\":\"eval\"")) != NULL; count++) {
        const char *step = strstr(at, "\"step\":"), *loss = strstr(at, "\"loss\":");
        if (step == NULL || loss == NULL || atoi(step + 7) > STEPS) return -1;
        losses[atoi(step + 7)] = strtod(loss + 7, NULL);
        at = loss;
    }
    return count;
}

static int best_of(const double *losses, int steps) {
    int best = 1;
    for (int i = 2; i <= steps; i++)
        if (losses[i] < losses[best]) best = i;
    return best;
}

static void check_best(void) {
    double losses[STEPS + 1] = {0};
    char line[40];
    CHECK_INT(eval_losses(losses), STEPS);
    int best = best_of(losses, STEPS);
    CHECK(best < STEPS); /* so that it is not the newest anyway */
    snprintf(line, sizeof(line), "step-%08d\n", best);
    CHECK_TEXT(content("checkpoints/best"), line);
    for (int step = 1; step <= STEPS; step++) CHECK_INT(has_checkpoint(step), step == best || step == STEPS);
}

TEST(the_best_checkpoint_stays) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    law_result first = {.status = TDM_OK};
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        make_job(&job);
        set_mode(&job, mode, 2);
        fresh_folder();
        law_result result = law_run_ok(&job, graph);
        check_best();
        if (mode == TDM_MODE_SINGLE) first = result;
        CHECK_TEXT(result.params, first.params);
    }
    /* The path names it, and its evaluation is the one that was the best. */
    double losses[STEPS + 1] = {0};
    char path[400];
    (void)eval_losses(losses);
    snprintf(path, sizeof(path), "%s/checkpoints/best", folder);
    make_job(&job);
    job.run.dir = NULL;
    job.checkpoint.keep_best = TDM_METRIC_NONE;
    job.weights = path;
    law_result again = law_evaluate(&job, graph);
    CHECK_INT(again.status, TDM_OK);
    CHECK_NEAR(again.eval_loss, losses[best_of(losses, STEPS)], 1e-8);
    tdm_graph_free(graph);
}

TEST(interrupted_anywhere_the_best_is_the_same) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    for (int at = 1; at < STEPS; at += 2) {
        make_job(&job);
        fresh_folder();
        job.train.steps = at;
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        set_mode(&job, at % 4 == 1 ? TDM_MODE_DDP : TDM_MODE_DP, 1);
        (void)law_run_ok(&job, graph);
        check_best();
    }
    tdm_graph_free(graph);
}

/* No improvement is large enough, so the first evaluation stays the best, and the run ends three evaluations later. */
static void make_early(tdm_job *job) {
    make_job(job);
    job->checkpoint.keep_best = TDM_METRIC_NONE;
    job->train.stop_after = 3;
    job->train.stop_metric = TDM_METRIC_LOSS;
    job->train.stop_min_delta = 1e6;
}

TEST(a_run_without_improvement_ends) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        fresh_folder();
        make_early(&job);
        set_mode(&job, mode, 2);
        law_result result = law_run_ok(&job, graph);
        CHECK_INT(result.steps, 4);
        CHECK_HAS(content("status.json"), "\"state\":\"finished\"");
        CHECK_HAS(content("status.json"), "train.stop_early: loss has not improved in 3 evaluations");
        CHECK_HAS(content("summary.json"), "\"stopped_early\":\"train.stop_early: loss");
        CHECK(has_checkpoint(4));
        result = law_run_ok(&job, graph); /* nothing is left to do */
        CHECK_INT(result.steps, 0);
        job.train.stop_after = 5;
        result = law_run_ok(&job, graph);
        CHECK_INT(result.steps, 6);
        job.train.stop_after = TDM_INT_NULL;
        result = law_run_ok(&job, graph);
        CHECK_INT(result.steps, STEPS);
    }
    tdm_graph_free(graph);
}

TEST(the_wait_survives_an_interruption) {
    tdm_job job;
    tdm_graph *graph = law_graph(0, 0);
    for (int at = 1; at < 4; at++) {
        fresh_folder();
        make_early(&job);
        job.train.steps = at;
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        CHECK_INT(law_run_ok(&job, graph).steps, 4);
    }
    tdm_graph_free(graph);
}

/* Accuracies that are to rise by more than they can: every evaluation after the first reduces. */
static void make_plateau(tdm_job *job) {
    make_job(job);
    job->checkpoint.keep_best = TDM_METRIC_NONE;
    job->schedule.type = TDM_SCHEDULE_PLATEAU;
    job->schedule.metric = TDM_METRIC_ACCURACY;
    job->schedule.factor = 0.5;
    job->schedule.patience = 0;
    job->schedule.cooldown = 1;
    job->schedule.threshold = 2;
    job->schedule.threshold_mode = TDM_THRESHOLD_ABS;
}

TEST(plateau_is_equal_in_all_modes_and_after_interruptions) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    make_plateau(&job);
    job.run.dir = NULL;
    set_mode(&job, TDM_MODE_SINGLE, 2);
    const law_result straight = law_run_ok(&job, graph);
    job.schedule.type = TDM_SCHEDULE_CONSTANT;
    CHECK(strcmp(law_run_ok(&job, graph).params, straight.params) != 0);
    for (int at = 1; at < STEPS; at++) {
        make_plateau(&job);
        fresh_folder();
        job.train.steps = at;
        set_mode(&job, at % 3, 2);
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        set_mode(&job, (at + 1) % 3, 2);
        CHECK_TEXT(law_run_ok(&job, graph).params, straight.params);
    }
    tdm_graph_free(graph);
}

/* With an evaluation at every third step, the one at the end of a part is not one of the whole run's. */
TEST(evaluations_because_a_part_ends_do_not_count) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    make_plateau(&job);
    job.run.dir = NULL;
    job.eval.every.amount = 3;
    const law_result straight = law_run_ok(&job, graph);
    for (int at = 1; at < STEPS; at++) {
        make_plateau(&job);
        job.eval.every.amount = 3;
        fresh_folder();
        job.train.steps = at;
        set_mode(&job, at % 3, 1);
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        CHECK_TEXT(law_run_ok(&job, graph).params, straight.params);
        make_early(&job);
        job.eval.every.amount = 3;
        job.train.stop_after = 2;
        fresh_folder();
        job.train.steps = at;
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        (void)law_run_ok(&job, graph);
        CHECK(has_checkpoint(9)); /* one sets the best, at step 3, and two do not improve it */
        CHECK(!has_checkpoint(STEPS));
    }
    tdm_graph_free(graph);
}

static void check_refused(const tdm_job *job, const tdm_graph *graph, const char *message) {
    law_result result = law_run(job, graph);
    CHECK_INT(result.status, TDM_E_CONFIG);
    CHECK_HAS(result.message, message);
}

TEST(metrics_that_a_job_lacks) {
    tdm_job job;
    tdm_graph *graph = law_graph(0, 0);
    make_job(&job);
    job.run.dir = NULL;
    job.checkpoint.keep_best = TDM_METRIC_TOP5;
    check_refused(&job, graph, "checkpoint.keep_best: top5 needs more than 5 classes, and the model gives 5");
    job.checkpoint.keep_best = TDM_METRIC_ACCURACY;
    job.data.eval.format = TDM_DATA_NONE;
    check_refused(&job, graph, "checkpoint.keep_best judges evaluations, and the job has no data.eval");
    make_early(&job);
    job.train.stop_metric = TDM_METRIC_NONE;
    check_refused(&job, graph, "train.stop_early needs a metric, got none");
    make_plateau(&job);
    job.schedule.metric = TDM_METRIC_NONE;
    check_refused(&job, graph, "schedule.type plateau needs a metric, got none");
    make_plateau(&job);
    job.data.eval.format = TDM_DATA_NONE;
    check_refused(&job, graph, "schedule: plateau judges evaluations, and the job has no data.eval");
    make_plateau(&job);
    job.eval.every = (tdm_interval){.kind = TDM_INTERVAL_NEVER};
    check_refused(&job, graph, "schedule: plateau judges the evaluations of eval.every, and there are none");
    make_early(&job);
    job.eval.every = (tdm_interval){.kind = TDM_INTERVAL_NEVER};
    check_refused(&job, graph, "train.stop_early judges the evaluations of eval.every, and there are none");
    make_job(&job);
    job.run.dir = NULL;
    job.eval.every = (tdm_interval){.kind = TDM_INTERVAL_NEVER};
    job.checkpoint.keep_best = TDM_METRIC_LOSS;
    check_refused(&job, graph, "checkpoint.keep_best judges the evaluations of eval.every, and there are none");
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(the_best_checkpoint_stays); RUN(interrupted_anywhere_the_best_is_the_same);
          RUN(a_run_without_improvement_ends); RUN(the_wait_survives_an_interruption);
          RUN(plateau_is_equal_in_all_modes_and_after_interruptions); RUN(evaluations_because_a_part_ends_do_not_count);
          RUN(metrics_that_a_job_lacks); if (folder[0] != '\0') test_folder_remove(folder);)
