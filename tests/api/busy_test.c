/* A run that is in a call says so: to its callbacks, to another thread, to the child of a fork. And what a program may
 * free once a run is open. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 8, WIDTH = 5 };

static tdm_graph *graph;
static char whole[40]; /* the hash after the job, undisturbed */

static void busy_job(tdm_job *job) {
    api_job(job);
    job->data.workers = 0;
}

#define BUSY(expression, text)                 \
    do {                                       \
        CHECK_STATUS(expression, TDM_E_USAGE); \
        CHECK_HAS(tdm_error_message(), text);  \
    } while (0)

static void close_refused(tdm_run *run, const char *text) {
    (void)tdm_job_init(NULL); /* another message */
    tdm_run_close(run);
    CHECK_HAS(tdm_error_message(), text);
}

typedef struct world {
    tdm_run *run;
    int calls;
} world;

static void *use_elsewhere(void *user) {
    world *w = user;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    BUSY(tdm_run_get_state(w->run, &state), "another thread is in tdm_run_train");
    BUSY(tdm_run_step(w->run, 1), "another thread is in tdm_run_train");
    close_refused(w->run, "another thread");
    return NULL;
}

static int use_in_event(const tdm_event *event, void *user) {
    world *w = user;
    pthread_t thread;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    float bias[3];
    CHECK_INT(event->size, sizeof(*event));
    if (event->kind != TDM_EVENT_STEP || event->step != 2) return 0;
    w->calls++;
    CHECK_OK(tdm_run_get_state(w->run, &state));
    CHECK_INT(state.step, 2);
    CHECK_OK(tdm_run_read(w->run, "fc.bias", bias, sizeof(bias)));
    BUSY(tdm_run_train(w->run), "a callback of tdm_run_train");
    BUSY(tdm_run_step(w->run, 1), "a callback of tdm_run_train");
    BUSY(tdm_run_load(w->run, "x"), "a callback of tdm_run_train");
    close_refused(w->run, "tdm_run_close: a callback");
    if (pthread_create(&thread, NULL, use_elsewhere, w) == 0) pthread_join(thread, NULL);
    return 0;
}

static int write_and_ask_train(void *user, const void *bytes, size_t count) {
    world *w = user;
    float bias[3];
    (void)bytes, (void)count;
    BUSY(tdm_run_read(w->run, "fc.bias", bias, sizeof(bias)), "a callback of tdm_run_train");
    w->calls++;
    return 0;
}

TEST(callbacks_and_threads) {
    tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    world w = {NULL, 0};
    busy_job(&job);
    options.on_event = use_in_event, options.user = &w;
    REQUIRE_OK(tdm_run_open(&w.run, &job, graph, &options));
    CHECK_OK(tdm_run_train(w.run));
    CHECK_INT(w.calls, 1);
    CHECK_OK(tdm_run_get_state(w.run, &state));
    CHECK_TEXT(state.params_xxh3, whole);
    tdm_run_close(w.run);
}

static int read_and_ask(void *user, int64_t index, float *x, void *target) {
    world *w = user;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    for (int i = 0; i < WIDTH; i++) x[i] = (float)(index + i);
    memcpy(target, &(int64_t){index % 3}, sizeof(int64_t));
    if (w->run == NULL) return 0; /* tdm_run_open reads ahead */
    BUSY(tdm_run_get_state(w->run, &state), "a callback of tdm_run_step");
    close_refused(w->run, "a callback of tdm_run_step");
    w->calls++;
    return 0;
}

static int write_and_ask(void *user, const void *bytes, size_t count) {
    world *w = user;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    (void)bytes, (void)count;
    BUSY(tdm_run_get_state(w->run, &state), "a callback of tdm_run_save_to");
    w->calls++;
    return 0;
}

static int save_in_event(const tdm_event *event, void *user) {
    world *w = user;
    tdm_writer writer = TDM_WRITER_INIT;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    if (event->kind != TDM_EVENT_STEP || event->step != 1) return 0;
    writer.write = write_and_ask_train, writer.user = w;
    CHECK_OK(tdm_run_save_to(w->run, &writer));
    CHECK_OK(tdm_run_get_state(w->run, &state)); /* the event may ask again */
    return 0;
}

/* A callback of a call that a callback made asks nothing. */
TEST(callbacks_in_callbacks) {
    tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    world w = {NULL, 0};
    busy_job(&job);
    options.on_event = save_in_event, options.user = &w;
    REQUIRE_OK(tdm_run_open(&w.run, &job, graph, &options));
    CHECK_OK(tdm_run_train(w.run));
    CHECK(w.calls > 0);
    tdm_run_close(w.run);
}

TEST(sources_and_writers) {
    tdm_job job;
    tdm_graph *linear = api_linear_graph(WIDTH);
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_source source = TDM_SOURCE_INIT;
    tdm_writer writer = TDM_WRITER_INIT;
    world w = {NULL, 0};
    busy_job(&job);
    job.data.eval.format = TDM_DATA_NONE;
    source.count = SAMPLES, source.has_labels = 1, source.read = read_and_ask, source.user = &w;
    options.train = &source;
    REQUIRE_OK(tdm_run_open(&run, &job, linear, &options));
    w.run = run;
    CHECK_OK(tdm_run_step(run, 2));
    CHECK(w.calls > 0);
    w.calls = 0;
    writer.write = write_and_ask, writer.user = &w;
    CHECK_OK(tdm_run_save_to(run, &writer));
    CHECK(w.calls > 0);
    w.run = NULL;
    tdm_run_close(run);
    tdm_graph_free(linear);
}

/* The child has none of the run's threads: what waited for them would wait for ever. */
TEST(a_child_is_refused) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    int ended = -1;
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_step(run, 1));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        tdm_test_failures = 0;
        BUSY(tdm_run_train(run), "which a fork has made without its threads");
        BUSY(tdm_run_get_state(run, &state), "fork");
        close_refused(run, "fork");
        _exit(tdm_test_failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK_INT(ended, 0);
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_TEXT(state.params_xxh3, whole);
    tdm_run_close(run);
}

static char *heap_text(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) exit(1);
    return copy;
}

/* What a job of C points to; the YAML's texts are freed with the configuration. */
TEST(job_graph_and_texts_are_the_programs) {
    char folder[256], *texts[] = {heap_text("kept"), heap_text("*.bias"), heap_text("never"), heap_text("a: text")};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_run *run = NULL;
    tdm_graph *own = api_graph(NULL);
    double *weight = calloc(3, sizeof(double));
    tdm_job *job = malloc(sizeof(*job));
    if (job == NULL || weight == NULL) exit(1);
    test_folder_make(folder);
    busy_job(job);
    for (int i = 0; i < 3; i++) weight[i] = 1;
    job->loss.weight = (tdm_numbers){3, weight};
    job->name = texts[0];
    job->freeze = (tdm_texts){1, {texts[1]}};
    job->checkpoint.resume = texts[2];
    job->optimizer.groups.count = 1;
    job->optimizer.groups.item[0] = (tdm_param_group){{1, {texts[1]}}, NAN, NAN};
    job->run.dir = folder;
    options.config_yaml = texts[3];
    REQUIRE_OK(tdm_run_open(&run, job, own, &options));
    for (int i = 0; i < 4; i++) memset(texts[i], 'x', strlen(texts[i])), free(texts[i]);
    memset(job, 0xA5, sizeof(*job));
    free(job), free(weight);
    tdm_graph_free(own);
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.saved_step, 6);
    tdm_run_close(run);
    test_folder_remove(folder);
}

TEST_MAIN(tdm_job job; graph = api_graph(NULL); busy_job(&job); api_train(&job, graph, whole);
          RUN(callbacks_and_threads); RUN(callbacks_in_callbacks); RUN(sources_and_writers); RUN(a_child_is_refused);
          RUN(job_graph_and_texts_are_the_programs); tdm_graph_free(graph);)
