/* Threads that a program lends: exactly those that the job asks for, with what the host is told of them, what follows
 * from a refusal, and their signals. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/burnin.h>
#include <tandem/comm.h>

#include "runtime/module/module.h"
#include "tests/api/api.h"
#include "tests/support/tdm_counting_host.h"
#include "tests/support/tdm_test.h"

/* Without the module of kernels nothing is shared. */
static int parts(int threads) {
    const tdm_module *module = NULL;
    tdm_module_report report;
    CHECK_OK(tdm__module_find(&module, tdm_host_default(), "dnnl", NULL, &report));
    return module != NULL ? threads - 1 : 0;
}

/* Two linear layers, of which the first is large enough for threads to share. */
static tdm_graph *wide_graph(const tdm_host *host) {
    tdm_graph *g = NULL;
    tdm_value v;
    CHECK_OK(tdm_graph_new(&g, host));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){512}, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc1", &v, 1, &(tdm_attr){"out", "512", {0}}, 1, &v));
    CHECK_OK(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc2", &v, 1, (tdm_attr[]){{"out", "3", {0}}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

static void wide_job(tdm_job *job, int mode, int devices, int threads, int workers) {
    api_job(job);
    job->train.steps = 3;
    job->train.per_device = 16;
    job->data.train.samples = 400;
    job->data.workers = workers;
    job->parallel.mode = mode;
    job->parallel.device = TDM_DEVICE_CPU;
    job->parallel.threads_per_device = threads;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

static void check_role(const tdm_counting_host *host, tdm_thread_role role, int count) {
    if (host->of_role[role] != count) fprintf(stderr, "       role %d:\n", (int)role);
    CHECK_INT(host->of_role[role], count);
}

/* Which devices and indices the threads of a role have: each device `each` threads, with indices from `first`. */
static void check_places(const tdm_counting_host *host, tdm_thread_role role, int devices, int each, int first) {
    int seen[8][8] = {{0}};
    for (int i = 0; i < host->started; i++) {
        const tdm_thread_info *t = &host->thread[i];
        if (t->role != role) continue;
        REQUIRE(t->device >= 0 && t->device < devices && t->index >= first && t->index < first + each);
        CHECK_INT(t->size, sizeof(*t));
        seen[t->device][t->index - first]++;
    }
    for (int d = 0; d < devices; d++)
        for (int i = 0; i < each; i++) CHECK_INT(seen[d][i], 1);
}

/* A thread that was joined may be listed for a moment longer. */
static void check_tasks(int count) {
    for (int i = 0; i < 10000 && api_proc_count("task") != count; i++) usleep(1000);
    CHECK_INT(api_proc_count("task"), count);
}

/* Runs the job with the host; everything has ended when it returns. */
static tdm_status run_job(const tdm_job *job, tdm_counting_host *host, char hash[40]) {
    tdm_graph *graph = wide_graph(&host->host);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_run *run = NULL;
    const int before = api_proc_count("task");
    options.host = &host->host;
    tdm_status status = tdm_run_open(&run, job, graph, &options);
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_OK) check_tasks(before + host->started - host->joined); /* there are no others */
    if (status == TDM_OK && hash != NULL) {
        CHECK_OK(tdm_run_get_state(run, &state));
        memcpy(hash, state.params_xxh3, sizeof(state.params_xxh3));
    }
    tdm_run_close(run);
    tdm_graph_free(graph);
    CHECK_INT(host->started, host->joined);
    CHECK_INT(host->live, 0);
    check_tasks(before);
    return status;
}

TEST(single_has_the_threads_of_its_job) {
    tdm_counting_host host;
    tdm_job job;
    char hash[40], alone[40];
    wide_job(&job, TDM_MODE_SINGLE, 1, 4, 3);
    tdm_counting_host_init(&host);
    REQUIRE_OK(run_job(&job, &host, hash));
    check_role(&host, TDM_THREAD_DATA, 3);
    check_role(&host, TDM_THREAD_PART, parts(4));
    check_role(&host, TDM_THREAD_PREPARE, 1);
    CHECK_INT(host.started, 4 + parts(4));
    check_places(&host, TDM_THREAD_PART, 1, parts(4), 0);
    wide_job(&job, TDM_MODE_SINGLE, 1, 1, 0);
    tdm_counting_host_init(&host);
    host.most = 0;
    REQUIRE_OK(run_job(&job, &host, alone));
    CHECK_INT(host.started, 0);
    CHECK_INT(host.refused, 1); /* prepare: done without */
    CHECK_TEXT(hash, alone);
}

TEST(dp_has_a_thread_for_each_device) {
    tdm_counting_host host;
    tdm_job job;
    char hash[40], own[40];
    wide_job(&job, TDM_MODE_DP, 3, 2, 2);
    job.parallel.dp.scatter = TDM_SCATTER_STRIDED;
    tdm_counting_host_init(&host);
    REQUIRE_OK(run_job(&job, &host, hash));
    check_role(&host, TDM_THREAD_REPLICA, 3);
    check_role(&host, TDM_THREAD_DATA, 2);
    check_role(&host, TDM_THREAD_PART, 3 * parts(2));
    check_role(&host, TDM_THREAD_PREPARE, 3);
    CHECK_INT(host.started, 8 + 3 * parts(2));
    check_places(&host, TDM_THREAD_PART, 3, parts(2), 0);
    for (int i = 0; i < host.started; i++)
        if (host.thread[i].role == TDM_THREAD_REPLICA) CHECK_INT(host.thread[i].index, host.thread[i].device);
    tdm_graph *graph = wide_graph(NULL);
    api_train(&job, graph, own);
    tdm_graph_free(graph);
    CHECK_TEXT(hash, own);
}

TEST(stages_have_a_thread_each_but_the_first) {
    tdm_counting_host host;
    tdm_job job;
    wide_job(&job, TDM_MODE_SINGLE, 2, 1, 0);
    job.parallel.stages = 2;
    tdm_counting_host_init(&host);
    REQUIRE_OK(run_job(&job, &host, NULL));
    check_role(&host, TDM_THREAD_STAGE, 1);
    check_role(&host, TDM_THREAD_PREPARE, 2);
    CHECK_INT(host.started, 3);
    for (int i = 0; i < host.started; i++) {
        if (host.thread[i].role != TDM_THREAD_STAGE) continue;
        CHECK_INT(host.thread[i].index, 1);
        CHECK_INT(host.thread[i].device, 1);
    }
}

/* The k-th thread is refused, for every k: a status that names it, or a run without those that only save time. */
TEST(a_refused_thread_is_a_status) {
    tdm_counting_host host;
    tdm_job job;
    int failed = 0;
    wide_job(&job, TDM_MODE_DP, 2, 2, 1);
    for (int most = 0;; most++) {
        tdm_counting_host_init(&host);
        host.most = most;
        const tdm_status status = run_job(&job, &host, NULL);
        if (host.refused == 0) break;
        if (status == TDM_OK) continue;
        failed++;
        CHECK_INT(status, TDM_E_MEMORY);
        CHECK_HAS(tdm_error_message(), "the program's host refuses it: Resource temporarily unavailable");
    }
    CHECK(failed >= 3);
    tdm_counting_host_init(&host);
    host.most = 1;
    wide_job(&job, TDM_MODE_SINGLE, 1, 1, 3);
    CHECK_STATUS(run_job(&job, &host, NULL), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), "data.workers: loader thread ");
}

typedef struct small_call {
    tdm_job job;
    tdm_counting_host host;
    tdm_status status;
} small_call;

static void run_small(void *argument) {
    small_call *call = argument;
    call->status = run_job(&call->job, &call->host, NULL);
}

/* The caller's own thread, too, may be as small as the host's. */
TEST(a_caller_needs_no_more_stack_than_a_thread) {
    static small_call call;
    static tdm_counted_thread thread;
    for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DP; mode++) {
        wide_job(&call.job, mode, mode == TDM_MODE_DP ? 2 : 1, 2, 1);
        tdm_counting_host_init(&call.host);
        thread = (tdm_counted_thread){.run = run_small, .argument = &call};
        REQUIRE(tdm_counted_create(&thread) == 0);
        pthread_join(thread.thread, NULL);
        CHECK_OK(call.status);
    }
}

/* ---- a model ---- */

typedef struct caller {
    tdm_model *model;
    const float *x;
    float *y;
    int64_t rows;
} caller;

static void *predict(void *argument) {
    const caller *c = argument;
    for (int i = 0; i < 20; i++) CHECK_OK(tdm_model_predict(c->model, TDM_INPUT_FLOATS, c->x, c->rows, c->y));
    return NULL;
}

static void save_model(const char *path) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer};
    tdm_graph *graph = wide_graph(NULL);
    wide_job(&job, TDM_MODE_SINGLE, 1, 1, 0);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    REQUIRE_OK(tdm_run_step(run, 1));
    REQUIRE_OK(tdm_run_export_to(run, &writer, NULL));
    tdm_run_close(run);
    tdm_graph_free(graph);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL && fwrite(buffer.bytes, 1, buffer.count, file) == buffer.count);
    fclose(file);
    tdm_buffer_free(&buffer);
}

/* 63 rows go through pieces of six sizes; the threads of a call are one set for all of them. */
TEST(a_model_has_threads_for_each_call_in_progress) {
    enum { ROWS = 63, CALLERS = 3 };
    static float x[ROWS][512], y[CALLERS + 1][ROWS][3];
    tdm_counting_host host;
    tdm_model *model = NULL;
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    pthread_t thread[CALLERS];
    caller each[CALLERS];
    char folder[256], path[300];
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/model", folder);
    save_model(path);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 512; k++) x[i][k] = (float)((i * 512 + k) % 97) * 0.01f;
    tdm_counting_host_init(&host);
    options.host = &host.host;
    REQUIRE_OK(tdm_model_open(&model, path, &options));
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, ROWS, y[CALLERS][0]));
    check_role(&host, TDM_THREAD_PREPARE, 6); /* a workspace for each piece; they have ended */
    CHECK_INT(host.started, 6);
    CHECK_INT(host.joined, 6);
    tdm_model_close(model);
    CHECK_INT(host.live, 0);

    tdm_counting_host_init(&host);
    options.threads = 3;
    REQUIRE_OK(tdm_model_open(&model, path, &options));
    for (int i = 0; i < 5; i++) CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, ROWS, y[0][0]));
    check_role(&host, TDM_THREAD_PART, parts(3));
    for (int i = 0; i < CALLERS; i++) {
        each[i] = (caller){model, x[0], y[i][0], ROWS};
        REQUIRE(pthread_create(&thread[i], NULL, predict, &each[i]) == 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(thread[i], NULL);
    CHECK(host.of_role[TDM_THREAD_PART] <= CALLERS * parts(3));
    for (int i = 0; i < CALLERS; i++) CHECK(memcmp(y[i], y[CALLERS], sizeof(y[i])) == 0);
    tdm_model_close(model);
    CHECK_INT(host.started, host.joined);
    CHECK_INT(host.live, 0);
    test_folder_remove(folder);
}

/* ---- communicators, ranks, burn-ins ---- */

TEST(communicators_have_a_thread_for_each_queue) {
    tdm_counting_host host;
    tdm_comm *rank[2];
    tdm_comm_request *request[2];
    tdm_counting_host_init(&host);
    REQUIRE_OK(tdm_comm_open_threads(rank, 2, &host.host, 60000));
    CHECK_INT(host.started, 0);
    for (int i = 0; i < 2; i++) CHECK_OK(tdm_comm_start_barrier(rank[i], &request[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(tdm_comm_wait(request[i], NULL));
    check_role(&host, TDM_THREAD_QUEUE, 2);
    for (int i = 0; i < 2; i++) tdm_comm_close(rank[i]);
    CHECK_INT(host.started, 2);
    CHECK_INT(host.joined, 2);
    CHECK_INT(host.live, 0);
}

/* A rank of ddp in a process of its own. */
static void be_rank(int fd, int rank, const tdm_job *job) {
    tdm_counting_host host;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *graph = wide_graph(NULL);
    tdm_counting_host_init(&host);
    options.host = &host.host;
    options.rank = rank;
    options.world = 2;
    options.launch_fd = fd;
    CHECK_OK(tdm_run_open(&run, job, graph, &options));
    CHECK_OK(tdm_run_train(run));
    tdm_run_close(run);
    tdm_graph_free(graph);
    check_role(&host, TDM_THREAD_WATCH, 1);
    check_role(&host, TDM_THREAD_REDUCE, 1);
    check_role(&host, TDM_THREAD_DATA, 1);
    check_role(&host, TDM_THREAD_PREPARE, 1);
    check_role(&host, TDM_THREAD_PART, parts(2));
    CHECK_INT(host.started, 4 + parts(2));
    CHECK_INT(host.joined, host.started);
    CHECK_INT(host.live, 0);
    _exit(tdm_test_failures != 0);
}

TEST(a_rank_has_threads_of_its_own_host) {
    tdm_job job;
    int fd = -1, end = -1;
    pid_t pid[2];
    wide_job(&job, TDM_MODE_DDP, 2, 2, 1);
    REQUIRE_OK(tdm_launch_create(&fd, 2));
    fflush(NULL);
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] == 0) be_rank(fd, r, &job);
    }
    for (int r = 0; r < 2; r++) {
        CHECK(pid[r] > 0 && waitpid(pid[r], &end, 0) == pid[r]);
        CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
    }
    close(fd);
}

TEST(a_burn_in_has_a_thread_for_each_device) {
    tdm_counting_host host;
    tdm_job job;
    tdm_burnin *burnin = NULL;
    tdm_burnin_options options = TDM_BURNIN_OPTIONS_INIT;
    tdm_burnin_total total = TDM_BURNIN_TOTAL_INIT;
    tdm_graph *graph = wide_graph(NULL);
    tdm_counting_host_init(&host);
    wide_job(&job, TDM_MODE_SINGLE, 2, 1, 0);
    options.host = &host.host;
    job.burnin.iterations = 3;
    REQUIRE_OK(tdm_burnin_open(&burnin, &job, graph, &options));
    CHECK_OK(tdm_burnin_run(burnin));
    check_role(&host, TDM_THREAD_BURNIN, 2);
    CHECK_OK(tdm_burnin_get_total(burnin, &total));
    CHECK(total.seconds > 0 && total.seconds < 0.1); /* of a clock on which each reading takes a microsecond */
    tdm_burnin_close(burnin);
    tdm_graph_free(graph);
    CHECK_INT(host.joined, host.started);
    CHECK_INT(host.live, 0);
}

/* ---- signals ---- */

static atomic_int calls, held, faults_pass;

static int look(void *user, int64_t index, float *x, void *target) {
    sigset_t mask;
    (void)user, (void)index;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&held, sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1);
    atomic_fetch_add(&faults_pass, sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGBUS) == 0);
    memset(x, 0, 512 * sizeof(*x));
    *(int64_t *)target = index % 3;
    return 0;
}

TEST(signals_are_held_back_but_those_of_faults) {
    for (int with_host = 0; with_host < 2; with_host++) {
        tdm_counting_host host;
        tdm_job job;
        tdm_run *run = NULL;
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        tdm_source source = TDM_SOURCE_INIT;
        tdm_graph *graph = wide_graph(NULL);
        tdm_counting_host_init(&host);
        wide_job(&job, TDM_MODE_SINGLE, 1, 1, 2);
        source.count = 64, source.has_labels = 1, source.read = look;
        options.host = with_host ? &host.host : NULL;
        options.train = &source;
        calls = held = faults_pass = 0;
        REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
        CHECK_OK(tdm_run_train(run));
        tdm_run_close(run);
        tdm_graph_free(graph);
        CHECK(calls > 0);
        CHECK_INT(held, calls);
        CHECK_INT(faults_pass, calls);
    }
}

static void *do_nothing(void *argument) {
    return argument;
}

TEST_MAIN({
    pthread_t first; /* with it a sanitizer starts one of its own, which is then there before anything is counted */
    if (pthread_create(&first, NULL, do_nothing, NULL) == 0) pthread_join(first, NULL);
    RUN(single_has_the_threads_of_its_job);
    RUN(dp_has_a_thread_for_each_device);
    RUN(stages_have_a_thread_each_but_the_first);
    RUN(a_refused_thread_is_a_status);
    RUN(a_caller_needs_no_more_stack_than_a_thread);
    RUN(a_model_has_threads_for_each_call_in_progress);
    RUN(communicators_have_a_thread_for_each_queue);
    RUN(a_rank_has_threads_of_its_own_host);
    RUN(a_burn_in_has_a_thread_for_each_device);
    RUN(signals_are_held_back_but_those_of_faults);
})
