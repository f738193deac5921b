/* Stopping a run: by the callback's answer, from another thread, from a signal handler. Where it stopped it goes on. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static tdm_graph *graph;

typedef struct watch {
    int64_t stop_at, last;
    int starts, ends, evals, checkpoints;
    char path[512];
} watch;

static int on_event(const tdm_event *event, void *user) {
    watch *w = user;
    w->starts += event->kind == TDM_EVENT_START;
    w->ends += event->kind == TDM_EVENT_END;
    w->evals += event->kind == TDM_EVENT_EVAL;
    if (event->kind == TDM_EVENT_CHECKPOINT) {
        w->checkpoints++;
        snprintf(w->path, sizeof(w->path), "%s", event->path);
    }
    if (event->kind != TDM_EVENT_STEP) return 0;
    CHECK_INT(event->step, w->last + 1);
    CHECK(event->loss > 0 && event->samples == 4 && event->ms.step > 0 && event->samples_per_second > 0);
    w->last = event->step;
    return event->step == w->stop_at;
}

static tdm_status open_watched(tdm_run **run, const tdm_job *job, watch *w) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = w;
    return tdm_run_open(run, job, graph, &options);
}

TEST(callback_stops_after_its_step) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    char whole[40];
    watch w = {.stop_at = 2};
    api_job(&job);
    api_train(&job, graph, whole);
    REQUIRE_OK(open_watched(&run, &job, &w));
    CHECK_STATUS(tdm_run_train(run), TDM_E_STOPPED);
    CHECK_HAS(tdm_error_message(), "step");
    CHECK_HAS(tdm_error_message(), "no checkpoint is saved");
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 2);
    CHECK_INT(state.saved_step, -1);
    CHECK(w.starts == 1 && w.ends == 1);
    CHECK_OK(tdm_run_train(run)); /* a stop is answered once; the run goes on where it was */
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 6);
    CHECK_TEXT(state.params_xxh3, whole);
    CHECK_INT(w.last, 6);
    tdm_run_close(run);
}

TEST(stop_with_a_run_directory_saves) {
    char folder[256];
    tdm_job job;
    tdm_run *run = NULL;
    struct stat info;
    watch w = {.stop_at = 3};
    char whole[40];
    test_folder_make(folder);
    api_job(&job);
    api_train(&job, graph, whole);
    job.run.dir = folder;
    REQUIRE_OK(open_watched(&run, &job, &w));
    CHECK_STATUS(tdm_run_train(run), TDM_E_STOPPED);
    CHECK_HAS(tdm_error_message(), "a checkpoint is saved");
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.saved_step, 3);
    tdm_run_close(run);
    CHECK(w.checkpoints == 1 && stat(w.path, &info) == 0);
    job.checkpoint.resume = "auto"; /* another process would do the same */
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 3);
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_TEXT(state.params_xxh3, whole);
    tdm_run_close(run);
    test_folder_remove(folder);
}

TEST(request_before_training_stops_before_a_step) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    tdm_run_request_stop(run);
    CHECK_STATUS(tdm_run_train(run), TDM_E_STOPPED);
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 0);
    tdm_run_request_stop(run);
    CHECK_STATUS(tdm_run_step(run, 5), TDM_E_STOPPED);
    CHECK_OK(tdm_run_step(run, 5));
    tdm_run_close(run);
}

/* ---- from elsewhere ---- */

static tdm_run *long_run;

static void *stop_soon(void *argument) {
    (void)argument;
    usleep(20000);
    tdm_run_request_stop(long_run);
    return NULL;
}

static atomic_int steps;

static void on_signal(int number) {
    (void)number;
    if (atomic_load(&steps) > 0) tdm_run_request_stop(long_run);
}

static int count_step(const tdm_event *event, void *user) {
    (void)user;
    atomic_fetch_add(&steps, event->kind == TDM_EVENT_STEP);
    return 0;
}

static void open_long(int mode) {
    static tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = count_step;
    atomic_store(&steps, 0);
    api_job(&job);
    job.train.steps = INT64_C(1) << 40;
    job.parallel.mode = mode;
    job.parallel.device_ids = (tdm_ints){1 + (mode == TDM_MODE_DP), {0, 1}};
    CHECK_OK(tdm_run_open(&long_run, &job, graph, &options));
}

TEST(another_thread_stops_it) {
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DDP; mode++) {
        pthread_t thread;
        open_long(mode);
        pthread_create(&thread, NULL, stop_soon, NULL);
        CHECK_STATUS(tdm_run_train(long_run), TDM_E_STOPPED);
        pthread_join(thread, NULL);
        tdm_run_close(long_run);
    }
}

TEST(signal_handler_stops_it) {
    struct sigaction action = {.sa_handler = on_signal}, before;
    open_long(TDM_MODE_SINGLE);
    sigaction(SIGALRM, &action, &before);
    ualarm(5000, 5000); /* again and again, also inside calls of the system; after the first step one stops it */
    CHECK_STATUS(tdm_run_train(long_run), TDM_E_STOPPED);
    ualarm(0, 0);
    sigaction(SIGALRM, &before, NULL);
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(long_run, &state));
    CHECK(state.step >= 1);
    tdm_run_close(long_run);
}

/* A handler that uses its stack, as a profiler's or an interpreter's does. */
static atomic_int scribbles;
static void scribble(int number) {
    volatile char junk[2048];
    for (size_t i = 0; i < sizeof(junk); i++) junk[i] = (char)(i + (size_t)number);
    atomic_fetch_add(&scribbles, 1);
}

static tdm_graph *wide_graph(void) {
    const tdm_attr wide[] = {{"out", "384", {0}}}, narrow[] = {{"out", "10", {0}}};
    tdm_graph *g = NULL;
    tdm_value v;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){512}, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc1", &v, 1, wide, 1, &v));
    CHECK_OK(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc2", &v, 1, narrow, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

/* Machine code that keeps values beyond the red zone is not interrupted: signals cost no bits, no memory, and come. */
TEST(signals_in_a_step_change_nothing) {
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = scribble, .sa_flags = SA_RESTART}, before;
    sigset_t mask_before, mask_after;
    tdm_job job;
    tdm_graph *wide = wide_graph();
    char quiet[40], disturbed[40];
    api_job(&job);
    job.train.steps = 150;
    job.train.per_device = 32;
    api_train(&job, wide, quiet);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    api_train(&job, wide, disturbed);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    CHECK_TEXT(disturbed, quiet);
    CHECK(atomic_load(&scribbles) > 0);
    for (int number = 1; number < 32; number++)
        CHECK_INT(sigismember(&mask_after, number), sigismember(&mask_before, number));
    tdm_graph_free(wide);
}

/* ---- and nobody else's ---- */

typedef void (*handler)(int);

static void read_handlers(handler to[32]) {
    for (int number = 1; number < 32; number++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        (void)sigaction(number, NULL, &action);
        to[number] = action.sa_handler;
    }
}

static handler at_start[32];

TEST(library_leaves_signals_alone) {
    handler now[32];
    read_handlers(now);
    for (int number = 1; number < 32; number++) CHECK(now[number] == at_start[number]);
}

TEST_MAIN(read_handlers(at_start); graph = api_graph(NULL); RUN(callback_stops_after_its_step);
          RUN(stop_with_a_run_directory_saves); RUN(request_before_training_stops_before_a_step);
          RUN(another_thread_stops_it); RUN(signal_handler_stops_it); RUN(signals_in_a_step_change_nothing);
          RUN(library_leaves_signals_alone); tdm_graph_free(graph);)
