/* host.memory_limit of a model: what it counts is at least what the process takes, with what oneDNN takes for itself;
 * a call that would take more is refused, and others go on. Each case is a process of its own, because oneDNN remembers
 * what it has made. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/tandem.h>

#include "runtime/base/limit/limit.h"
#include "runtime/base/isa.h"
#include "runtime/model/model.h"
#include "tests/support/tdm_anonymous.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { ROWS = 32, WIDTH = 3 * 64 * 64, OUTPUTS = 1024, MOST_CALLS = 4 };

#ifdef TDM_SANITIZED
enum { IS_SANITIZED = 1 }; /* the process holds more than what is counted */
#else
enum { IS_SANITIZED = 0 };
#endif

static float x[ROWS * WIDTH], y[MOST_CALLS][ROWS * OUTPUTS];
static char path[512];
static tdm_host lent; /* to the one model that is open */

#define JOB                                                                                                 \
    "optimizer: {type: sgd, lr: 0.01}\ntrain: {steps: 1, batch: {per_device: 4}}\nrun: {dir: null}\ndata: " \
    "{train: {format: synthetic, samples: 8}}\nparallel: {device: cpu, threads_per_device: 1, kernels: "

static const char resnet18[] = "{builtin: resnet18, classes: 10, small_input: true, input: [3, 32, 32]}";
/* Windows of many sizes, groups, channels that fill no block, and what is not oneDNN's. */
static const char pictures[] =
    "{input: [3, 64, 64], layers: [{conv2d: {out: 48, kernel: 11, stride: 2, padding: 5}}, {batchnorm2d: {}}, relu, "
    "{conv2d: {out: 48, kernel: 3, padding: 1, groups: 48}}, {conv2d: {out: 100, kernel: 1}}, relu, {maxpool2d: 2}, "
    "{conv2d: {out: 67, kernel: 5, padding: 2}}, {conv2d: {out: 64, kernel: 2}}, gelu, {avgpool2d: 2}, "
    "{conv2d: {out: 160, kernel: 3, dilation: 2}}, flatten, {linear: 512}, relu, {linear: 10}]}";
static const char series[] =
    "{input: [12, 256], layers: [{conv1d: {out: 64, kernel: 7, padding: 3}}, relu, {conv1d: {out: 32, kernel: 3}}, "
    "{maxpool1d: 2}, transpose, {lstm: {hidden: 96, outputs: all}}, {gru: {hidden: 80}}, {linear: 10}]}";
static const char wide[] = "{input: [2048], layers: [{linear: 1024}, relu, {linear: 1024}, relu, {linear: 1024}]}";

typedef struct one_case {
    const char *model, *kernels, *isa; /* isa: the most that oneDNN may use; NULL: all */
    tdm_model_precision precision;
    int threads, calls; /* of a call, calls at once */
} one_case;

static int write_file(void *user, const void *bytes, size_t count) {
    return fwrite(bytes, 1, count, user) == count ? 0 : 1;
}

static void write_model(const one_case *c) {
    char text[2048];
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    snprintf(text, sizeof(text), "tandem: 1\nmodel: %s\n" JOB "%s}\n", c->model, c->kernels);
    REQUIRE_OK(tdm_config_parse(&config, NULL, text, strlen(text), "model", NULL));
    REQUIRE_OK(tdm_config_check(config));
    REQUIRE_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), NULL));
    const tdm_writer to = {.size = sizeof(to), .write = write_file, .user = fopen(path, "wb")};
    CHECK_OK(tdm_run_export_to(run, &to, NULL));
    fclose(to.user);
    tdm_run_close(run);
    tdm_config_free(config);
}

static void in_child(void (*run)(const one_case *c), const one_case *c) {
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        tdm_test_failures = 0;
        if (c->isa != NULL) setenv("ONEDNN_MAX_CPU_ISA", c->isa, 1);
        run(c);
        fflush(NULL);
        _exit(tdm_test_failures > 0);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

static tdm_status open_model(tdm_model **out, const one_case *c, size_t limit) {
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    lent = (tdm_host)TDM_HOST_INIT;
    lent.memory_limit = limit;
    options.host = &lent;
    options.precision = c->precision;
    options.threads = c->threads;
    return tdm_model_open(out, path, &options);
}

/* Without the mapped file, which is not the process's own. */
static size_t held(const tdm_model *model) {
    return tdm__limit_of(model->host).held - model->map.count;
}

/* ---- what is counted ---- */

typedef struct one_call {
    tdm_model *model;
    int index;
} one_call;

static void *predict_all(void *of) {
    const one_call *call = of;
    for (int64_t rows = 1; rows <= ROWS; rows *= 2)
        CHECK_OK(tdm_model_predict(call->model, TDM_INPUT_FLOATS, x, rows, y[call->index]));
    return NULL;
}

static void compare(const one_case *c) {
    enum { SLACK = 512 << 10, LIMIT = 1 << 30 }; /* SLACK: stacks, and what the heap keeps between blocks */
    tdm_model *model = NULL;
    pthread_t thread[MOST_CALLS];
    one_call call[MOST_CALLS];
    for (int64_t i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 7) - 3.0f;
    memset(y, 1, sizeof(y));
    const size_t before = tdm_anonymous_bytes();
    REQUIRE_OK(open_model(&model, c, LIMIT));
    CHECK(tdm_anonymous_bytes() - before <= held(model) + SLACK);
    for (int i = 1; i < c->calls; i++) {
        call[i] = (one_call){model, i};
        REQUIRE(pthread_create(&thread[i], NULL, predict_all, &call[i]) == 0);
    }
    predict_all(&(one_call){model, 0});
    for (int i = 1; i < c->calls; i++) pthread_join(thread[i], NULL);
    const size_t grown = tdm_anonymous_bytes() - before, counted = held(model);
    printf("%.40s, %s, %s: took %zu KiB, counted %zu KiB\n", c->model, c->kernels, c->isa != NULL ? c->isa : "all",
           grown >> 10, counted >> 10);
    CHECK(grown <= counted + SLACK);
    /* Bounds, but no multiples: the library's own, and the heap that products leave to each thread. */
    CHECK(counted <= 2 * grown + ((size_t)(6 + 3 * c->calls * c->threads) << 20));
    tdm_model_close(model);
}

static void compare_case(const one_case *c) {
    in_child(write_model, c);
    in_child(compare, c);
}

TEST(what_is_counted_is_at_least_what_the_process_takes) {
    static const char *const models[] = {pictures, series, wide};
    static const char *const isas[] = {NULL, "AVX2", "SSE41"};
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < 3; i++) compare_case(&(one_case){models[m], "auto", isas[i], TDM_MODEL_F32, 1, 1});
        compare_case(&(one_case){models[m], "ref", NULL, TDM_MODEL_F32, 1, 1});
        compare_case(&(one_case){models[m], "fast", NULL, TDM_MODEL_F32, 2, MOST_CALLS});
        if (tdm__has_fast_bf16()) compare_case(&(one_case){models[m], "auto", NULL, TDM_MODEL_BF16, 1, 1});
    }
}

TEST(of_a_network_that_is_used) {
    compare_case(&(one_case){resnet18, "auto", NULL, TDM_MODEL_F32, 2, 1});
    compare_case(&(one_case){resnet18, "auto", "AVX2", TDM_MODEL_F32, 1, 1});
    if (tdm__has_fast_bf16()) compare_case(&(one_case){resnet18, "auto", NULL, TDM_MODEL_BF16, 1, 1});
}

/* ---- what is refused ---- */

static void predicts(tdm_model *model, int64_t rows) {
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, rows, y[0]));
}

/* How much is counted after predictions of one row, and of two, which have kernels of their own. */
static void count_two(const one_case *c, size_t *of_one, size_t *of_two, size_t *kept) {
    tdm_model *model = NULL;
    REQUIRE_OK(open_model(&model, c, (size_t)1 << 30));
    predicts(model, 1);
    *of_one = tdm__limit_of(model->host).held;
    predicts(model, 2);
    *of_two = tdm__limit_of(model->host).held;
    *kept = model->piece[1].kept_bytes;
    tdm_model_close(model);
}

/* A refusal costs nothing, and what there is goes on. */
static void check_refused(const one_case *c, size_t limit, const char *why) {
    tdm_model *model = NULL;
    REQUIRE_OK(open_model(&model, c, limit));
    for (int again = 0; again < 3; again++) {
        predicts(model, 1);
        CHECK_STATUS(tdm_model_predict(model, TDM_INPUT_FLOATS, x, 2, y[0]), TDM_E_MEMORY);
        CHECK_HAS(tdm_error_message(), why);
        CHECK_HAS(tdm_error_message(), "host.memory_limit is ");
        CHECK_HAS(tdm_error_message(), " more are needed; ");
        CHECK_HAS(tdm_error_message(), "raise it");
        CHECK(strstr(tdm_error_message(), "train.") == NULL);
    }
    predicts(model, 1);
    tdm_model_close(model);
}

/* Of a model without packed weights, which take more while they are made than when they are. */
static void at_the_limit(const one_case *c) {
    size_t of_one = 0, of_two = 0, kept = 0;
    tdm_model *model = NULL;
    count_two(c, &of_one, &of_two, &kept);
    CHECK(of_two > of_one + kept);
    REQUIRE_OK(open_model(&model, c, of_two));
    predicts(model, 1);
    predicts(model, 2);
    predicts(model, 2);
    tdm_model_close(model);
    check_refused(c, of_two - 1, "");
    CHECK_STATUS(open_model(&model, c, of_one / 2), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), "host.memory_limit is ");
}

static void for_the_kernels(const one_case *c) {
    size_t of_one = 0, of_two = 0, kept = 0;
    count_two(c, &of_one, &of_two, &kept);
    if (kept > 0) check_refused(c, of_one + kept / 2, "kernels of one more call, for 2 rows at once: ");
}

TEST(below_the_limit_a_call_is_refused_and_others_go_on) {
    static const char *const kernels[] = {"auto", "ref"};
    for (int i = 0; i < 2; i++) {
        const one_case c = {wide, kernels[i], NULL, TDM_MODEL_F32, 1, 1};
        in_child(write_model, &c);
        in_child(at_the_limit, &c);
    }
    static const one_case kept[] = {{pictures, "auto", NULL, TDM_MODEL_F32, 1, 1},
                                    {pictures, "auto", "AVX2", TDM_MODEL_F32, 1, 1},
                                    {wide, "auto", NULL, TDM_MODEL_BF16, 1, 1}};
    for (int i = 0; i < (tdm__has_fast_bf16() ? 3 : 2); i++) {
        in_child(write_model, &kept[i]);
        in_child(for_the_kernels, &kept[i]);
    }
}

TEST_MAIN({
    char folder[256];
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/one.tandem", folder);
    if (!IS_SANITIZED) RUN(what_is_counted_is_at_least_what_the_process_takes);
    if (!IS_SANITIZED) RUN(of_a_network_that_is_used);
    RUN(below_the_limit_a_call_is_refused_and_others_go_on);
    test_folder_remove(folder);
})
