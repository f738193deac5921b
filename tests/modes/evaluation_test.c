/* evaluation.json: counts and worst samples are those of the model's outputs, and the same in every mode. */
#include <jansson.h>
#include <math.h>

#include "law.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { SAMPLES = 23, CLASSES = 5, WIDTH = 3 * 8 * 8 };
static char folder[256];

static void set_mode(tdm_job *job, int mode, int devices) {
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

static void read_file(char *out, size_t room, const char *name) {
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    size_t count = file != NULL ? fread(out, 1, room - 1, file) : 0;
    if (file != NULL) fclose(file);
    out[count] = '\0';
}

static char want[65536], got[65536], best[65536];

TEST(every_mode_writes_the_same) {
    tdm_job job;
    tdm_graph *graph = law_graph(1, 1);
    for (int devices = 2; devices <= 3; devices++) {
        for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
            test_folder_make(folder);
            law_job(&job);
            set_mode(&job, mode, devices);
            job.run.dir = folder;
            job.eval.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
            job.eval.batch = 2; /* 12 batches: the ranks' shares differ */
            job.checkpoint.keep_best = TDM_METRIC_LOSS;
            (void)law_run_ok(&job, graph);
            read_file(mode == TDM_MODE_SINGLE ? want : got, sizeof(want), "evaluation.json");
            CHECK_HAS(want, "\"step\":8,");
            if (mode != TDM_MODE_SINGLE) CHECK_TEXT(got, want);
            read_file(best, sizeof(best), "evaluation.best.json");
            CHECK_HAS(best, "\"confusion\":[");
            test_folder_remove(folder);
        }
    }
    tdm_graph_free(graph);
}

/* ---- against the outputs themselves ---- */

typedef struct {
    float y[SAMPLES][CLASSES];
    int64_t label[SAMPLES], predicted[SAMPLES];
    double loss[SAMPLES];
} outputs;

static void find_outputs(tdm_run *run, outputs *o) {
    float x[WIDTH];
    for (int i = 0; i < SAMPLES; i++) {
        REQUIRE_OK(tdm_run_eval_sample(run, i, x, &o->label[i]));
        REQUIRE_OK(tdm_run_predict_as(run, TDM_INPUT_READY, x, 1, o->y[i]));
        double sum = 0;
        for (int k = 0; k < CLASSES; k++) {
            sum += exp((double)o->y[i][k]);
            if (o->y[i][k] > o->y[i][o->predicted[i]]) o->predicted[i] = k;
        }
        o->loss[i] = log(sum) - (double)o->y[i][o->label[i]];
    }
}

static void check_counts(const json_t *root, const outputs *o) {
    const json_t *confusion = json_object_get(root, "confusion");
    REQUIRE(json_array_size(confusion) == CLASSES);
    for (int label = 0; label < CLASSES; label++) {
        int64_t count = 0, correct = 0;
        for (int k = 0; k < CLASSES; k++) {
            int64_t cell = 0;
            for (int i = 0; i < SAMPLES; i++) cell += o->label[i] == label && o->predicted[i] == k;
            const json_t *row = json_array_get(confusion, (size_t)label);
            CHECK_INT(json_integer_value(json_array_get(row, (size_t)k)), cell);
            count += cell;
            if (k == label) correct = cell;
        }
        CHECK_INT(json_integer_value(json_array_get(json_object_get(root, "class_samples"), (size_t)label)), count);
        CHECK_INT(json_integer_value(json_array_get(json_object_get(root, "class_correct"), (size_t)label)), correct);
    }
}

static void check_worst(const json_t *root, const outputs *o) {
    const json_t *worst = json_object_get(root, "worst");
    bool seen[SAMPLES] = {false};
    double last = INFINITY;
    REQUIRE(json_array_size(worst) == SAMPLES); /* fewer than are kept */
    for (size_t i = 0; i < SAMPLES; i++) {
        const json_t *item = json_array_get(worst, i);
        int64_t index = json_integer_value(json_object_get(item, "index"));
        double loss = json_number_value(json_object_get(item, "loss"));
        REQUIRE(index >= 0 && index < SAMPLES && !seen[index]);
        seen[index] = true;
        CHECK_NEAR(loss, o->loss[index], 1e-5);
        CHECK(loss <= last);
        last = loss;
        CHECK_INT(json_integer_value(json_object_get(item, "label")), o->label[index]);
        CHECK_INT(json_integer_value(json_object_get(item, "predicted")), o->predicted[index]);
    }
}

TEST(it_says_what_the_outputs_are) {
    static outputs o;
    tdm_job job;
    tdm_run *run = NULL;
    char *text = NULL;
    double loss, accuracy;
    tdm_graph *graph = law_graph(1, 1);
    law_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_INT(tdm_run_print(run, "evaluation.json", &text), TDM_E_USAGE);
    CHECK_OK(tdm_run_step(run, 5));
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_OK(tdm_run_print(run, "evaluation.json", &text));
    find_outputs(run, &o);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(root != NULL);
    CHECK_INT(json_integer_value(json_object_get(root, "step")), 5);
    CHECK_INT(json_integer_value(json_object_get(root, "samples")), SAMPLES);
    CHECK_NEAR(json_number_value(json_object_get(root, "loss")), loss, 1e-8);
    CHECK(json_number_value(json_object_get(root, "accuracy")) == accuracy);
    check_counts(root, &o);
    check_worst(root, &o);
    json_decref(root);
    tdm_free(text);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

/* ---- batch-norm statistics of ranks ---- */

static int rank_here;
static bool takes_statistics; /* an evaluation leaves the other ranks with those of rank 0 */

static void learn_rank(tdm_run_options *options) {
    rank_here = options->rank;
}

static void read_statistics(tdm_run *run, float out[256]) {
    int at = 0;
    for (int i = 0; i < tdm_run_tensor_count(run); i++) {
        tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
        CHECK_STATUS(tdm_run_tensor(run, i, &info), TDM_OK);
        if (!info.is_buffer || info.is_int64 || at + info.count > 256) continue;
        CHECK_STATUS(tdm_run_read(run, info.name, out + at, info.bytes), TDM_OK);
        at += (int)info.count;
    }
}

static tdm_status step_and_evaluate(tdm_run *run) {
    static float before[256], after[256];
    tdm_scores scores = TDM_SCORES_INIT;
    tdm_status status = tdm_run_step(run, 2);
    if (status != TDM_OK) return status;
    read_statistics(run, before);
    status = tdm_run_evaluate_scores(run, &scores);
    if (status != TDM_OK) return status;
    read_statistics(run, after);
    const bool same = memcmp(before, after, sizeof(before)) == 0;
    return before[0] != 0 && same == (rank_here == 0 || !takes_statistics) ? TDM_OK : TDM_E_CHECK;
}

static tdm_status evaluate_between_steps(tdm_run *run) {
    const tdm_status status = step_and_evaluate(run);
    return status == TDM_OK ? step_and_evaluate(run) : status;
}

/* Also where the average of the parameters is evaluated. Either way ranks evaluate with rank 0's, which do not depend on
 * what the others have. */
TEST(without_broadcast_buffers_each_rank_keeps_its_statistics) {
    const law_program program = {learn_rank, evaluate_between_steps};
    tdm_graph *graph = law_graph(1, 1);
    for (int averages = 0; averages < 2; averages++) {
        tdm_job job;
        law_short_job(&job);
        set_mode(&job, TDM_MODE_DDP, 3);
        if (averages) job.train.ema_decay = 0.9;
        takes_statistics = true;
        const law_result one = law_run_program(&job, graph, &program);
        job.parallel.ddp.broadcast_buffers = takes_statistics = false;
        const law_result own = law_run_program(&job, graph, &program);
        CHECK_INT(own.steps, 4);
        law_check_same(&one, &own);
    }
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(every_mode_writes_the_same); RUN(it_says_what_the_outputs_are);
          RUN(without_broadcast_buffers_each_rank_keeps_its_statistics);)
