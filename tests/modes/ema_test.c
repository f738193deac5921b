/* train.ema: the same average in every mode and over interruptions; training does not notice it; it is what is
 * evaluated. */
#include <stdlib.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { STEPS = 9 };
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

static void make_job(tdm_job *job, int mode, int devices) {
    law_job(job);
    set_mode(job, mode, devices);
    job->train.steps = STEPS;
    job->train.ema_decay = 0.9;
    job->train.ema_warmup = true;
    job->train.ema_every = 2;
    job->eval.every = (tdm_interval){TDM_INTERVAL_STEPS, 4};
    job->run.dir = folder;
    job->checkpoint.resume = "auto";
    job->checkpoint.keep_last = 1;
}

static void file_of(char out[400], const char *name) {
    snprintf(out, 400, "%s/checkpoints/step-%08d/%s", folder, STEPS, name);
}

typedef struct {
    char bytes[65536];
    size_t count;
} content;

static void read_file(content *out, const char *name) {
    char path[400];
    file_of(path, name);
    FILE *file = fopen(path, "rb");
    out->count = file != NULL ? fread(out->bytes, 1, sizeof(out->bytes), file) : 0;
    if (file != NULL) fclose(file);
}

static void check_same_file(const content *a, const content *b) {
    CHECK(a->count > 0 && a->count < sizeof(a->bytes));
    CHECK(a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0);
}

static content want, got, model;

TEST(every_mode_has_the_same_average) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    law_result first = {.status = TDM_OK};
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        fresh_folder();
        make_job(&job, mode, 2);
        law_result result = law_run_ok(&job, graph);
        read_file(mode == TDM_MODE_SINGLE ? &want : &got, "ema.safetensors");
        if (mode == TDM_MODE_SINGLE)
            first = result;
        else
            check_same_file(&want, &got);
        law_check_same(&first, &result);
    }
    read_file(&model, "model.safetensors");
    CHECK(model.count == want.count && memcmp(model.bytes, want.bytes, want.count) != 0);
    tdm_graph_free(graph);
}

TEST(training_does_not_notice_it) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        fresh_folder();
        make_job(&job, mode, 2);
        law_result with = law_run_ok(&job, graph);
        fresh_folder();
        job.train.ema_decay = (double)NAN;
        law_result without = law_run_ok(&job, graph);
        CHECK_TEXT(with.params, without.params);
        CHECK(with.eval_loss != without.eval_loss);
        for (int i = 0; i < STEPS; i++) CHECK(with.loss[i] == without.loss[i]);
        fresh_folder();
        make_job(&job, mode, 2);
        job.eval.weights = TDM_WEIGHTS_MODEL;
        law_result model_evaluated = law_run_ok(&job, graph);
        law_check_same(&without, &model_evaluated);
    }
    tdm_graph_free(graph);
}

TEST(interrupted_anywhere_the_average_is_the_same) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    fresh_folder();
    make_job(&job, TDM_MODE_DP, 2);
    law_result straight = law_run_ok(&job, graph);
    read_file(&want, "ema.safetensors");
    for (int at = 1; at < STEPS; at++) {
        fresh_folder();
        job.train.steps = at;
        set_mode(&job, at % 2 == 0 ? TDM_MODE_DDP : TDM_MODE_DP, 2);
        (void)law_run_ok(&job, graph);
        job.train.steps = STEPS;
        set_mode(&job, at % 3 == 0 ? TDM_MODE_DDP : TDM_MODE_DP, 2);
        law_result result = law_run_ok(&job, graph);
        read_file(&got, "ema.safetensors");
        check_same_file(&want, &got);
        CHECK(result.eval_loss == straight.eval_loss);
    }
    tdm_graph_free(graph);
}

/* What eval and predict do: the checkpoint's average is evaluated, unless the model is asked for. */
TEST(the_average_is_what_is_evaluated) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    char path[400];
    fresh_folder();
    make_job(&job, TDM_MODE_SINGLE, 1);
    law_result trained = law_run_ok(&job, graph);
    job.run.dir = NULL;
    job.checkpoint.resume = "never";
    job.weights = folder;
    law_result average = law_evaluate(&job, graph);
    CHECK(average.eval_loss == trained.eval_loss && average.accuracy == trained.accuracy);
    job.eval.weights = TDM_WEIGHTS_MODEL;
    law_result own = law_evaluate(&job, graph);
    CHECK(own.eval_loss != average.eval_loss);
    job.weights = path;
    file_of(path, "ema.safetensors"); /* a model of its own, buffers and all */
    law_result file = law_evaluate(&job, graph);
    CHECK(file.eval_loss == average.eval_loss);
    tdm_graph_free(graph);
}

/* It begins with the weights that the run continues from. */
TEST(an_average_may_begin_late) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    fresh_folder();
    make_job(&job, TDM_MODE_SINGLE, 1);
    job.train.steps = STEPS - 1;
    job.train.ema_decay = (double)NAN;
    (void)law_run_ok(&job, graph);
    job.train.steps = STEPS;
    job.train.ema_decay = 0.9;
    job.train.ema_every = 50; /* no update any more */
    law_result late = law_run_ok(&job, graph);
    CHECK_INT(late.steps, STEPS);
    read_file(&got, "ema.safetensors");
    CHECK(got.count > 0);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(every_mode_has_the_same_average); RUN(training_does_not_notice_it);
          RUN(interrupted_anywhere_the_average_is_the_same); RUN(the_average_is_what_is_evaluated);
          RUN(an_average_may_begin_late); if (folder[0] != '\0') test_folder_remove(folder);)
