/* Clocks and CPUs that a program lends, and hosts that cannot be used or are of older versions. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/api/api.h"
#include "tests/support/tdm_counting_host.h"
#include "tests/support/tdm_test.h"

/* ---- clocks ---- */

typedef struct hour {
    tdm_counting_host *host;
    int evals, steps;
    double ms;
} hour;

/* Between two steps ten minutes pass. */
static int ten_minutes(const tdm_event *event, void *user) {
    hour *h = user;
    if (event->kind == TDM_EVENT_STEP) {
        h->steps++;
        h->ms = event->ms.step;
        atomic_fetch_add(&h->host->steady_ns, INT64_C(600) * 1000000000);
    }
    h->evals += event->kind == TDM_EVENT_EVAL;
    return 0;
}

TEST(intervals_are_of_the_hosts_clock) {
    tdm_counting_host host;
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *graph = api_graph(NULL);
    hour h = {.host = &host};
    api_job(&job);
    tdm_counting_host_init(&host);
    job.train.steps = 12;
    job.eval.every = (tdm_interval){.kind = TDM_INTERVAL_SECONDS, .amount = 1800};
    options.host = &host.host;
    options.on_event = ten_minutes;
    options.user = &h;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    CHECK_OK(tdm_run_train(run));
    tdm_run_close(run);
    tdm_graph_free(graph);
    CHECK_INT(h.steps, 12);
    CHECK_INT(h.evals, 4);       /* in two hours */
    CHECK(h.ms > 0 && h.ms < 1); /* each reading adds a microsecond */
    CHECK(host.readings > 24);
    CHECK_INT(host.live, 0);
}

/* A clock that stands still is no reason for a number that JSON has not. */
static int64_t stands_still(void *user, tdm_clock clock) {
    (void)user;
    return clock == TDM_CLOCK_STEADY ? 0 : INT64_C(1700000000) * 1000000000;
}

static void check_file(const char *folder, const char *name, const char *has) {
    char path[400], text[20000] = "";
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    CHECK_HAS(text, has);
    CHECK(strstr(text, "inf") == NULL && strstr(text, "nan") == NULL);
}

TEST(a_clock_may_stand_still) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_host host = TDM_HOST_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *graph = api_graph(NULL);
    char folder[256], path[300];
    test_folder_make(folder);
    host.now_ns = stands_still;
    api_job(&job);
    snprintf(path, sizeof(path), "%s/run", folder);
    job.run.dir = path;
    job.log.every = (tdm_interval){.kind = TDM_INTERVAL_STEPS, .amount = 1};
    options.host = &host;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    CHECK_OK(tdm_run_train(run));
    tdm_run_close(run);
    tdm_graph_free(graph);
    check_file(path, "status.json", "20231114T221320Z");
    check_file(path, "metrics.jsonl", "\"kind\":\"train\",\"step\":6");
    check_file(path, "summary.json", "params_xxh3");
    test_folder_remove(folder);
}

TEST(start_time_is_of_the_hosts_clock) {
    static const char text[] = "tandem: 1\nname: n\nmodel: {input: [4], layers: [{linear: 2}]}\ndata: {train: {format: "
                               "synthetic, samples: 8}}\nloss: cross_entropy\ntrain: {steps: 1, batch: {per_device: "
                               "4}}\nrun: {dir: \"runs/${start_time}\"}\n";
    tdm_host host = TDM_HOST_INIT;
    tdm_config *config = NULL;
    host.now_ns = stands_still;
    REQUIRE_OK(tdm_config_parse(&config, &host, text, sizeof(text) - 1, "job.yaml", NULL));
    REQUIRE_OK(tdm_config_check(config));
    CHECK_HAS(tdm_config_job(config)->run.dir, "runs/20231114T221320Z");
    tdm_config_free(config);
}

/* ---- CPUs ---- */

TEST(devices_share_the_cpus_that_the_host_grants) {
    const struct {
        int cpus, devices, mode;
        const char *threads;
    } cases[] = {{6, 1, TDM_MODE_SINGLE, "\nthreads_per_device 6\n"},
                 {6, 2, TDM_MODE_DP, "\nthreads_per_device 3\n"},
                 {1, 2, TDM_MODE_DP, "\nthreads_per_device 1\n"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_counting_host host;
        tdm_job job;
        tdm_run *run = NULL;
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        tdm_graph *graph = api_graph(NULL);
        char *text = NULL;
        api_job(&job);
        job.parallel.mode = cases[i].mode;
        job.parallel.device_ids = (tdm_ints){.count = cases[i].devices, .item = {0, 1}};
        tdm_counting_host_init(&host);
        host.host.cpus = cases[i].cpus;
        options.host = &host.host;
        REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
        CHECK_OK(tdm_run_print(run, "summary", &text));
        CHECK_HAS(text, cases[i].threads);
        tdm_free(text);
        tdm_run_close(run);
        tdm_graph_free(graph);
    }
}

/* ---- hosts that cannot be used, and older ones ---- */

static int never_start(void *user, const tdm_thread_info *thread, void (*run)(void *argument), void *argument,
                       void **handle) {
    (void)user, (void)thread, (void)run, (void)argument, (void)handle;
    return EPERM;
}

static void never_join(void *user, void *handle) {
    (void)user, (void)handle;
}

TEST(a_refused_thread_is_called_as_the_host_was_asked) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_host host = TDM_HOST_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *graph = api_graph(NULL);
    api_job(&job);
    job.parallel.mode = TDM_MODE_DP;
    job.parallel.device_ids = (tdm_ints){.count = 2, .item = {0, 1}};
    job.parallel.threads_per_device = 1;
    host.thread_start = never_start;
    host.thread_join = never_join;
    options.host = &host;
    CHECK_STATUS(tdm_run_open(&run, &job, graph, &options), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), "thread 'dp 0' cannot be started");
    tdm_run_close(run);
    tdm_graph_free(graph);
}

TEST(halves_are_refused) {
    tdm_host host = TDM_HOST_INIT;
    tdm_graph *graph = NULL;
    host.thread_start = never_start;
    CHECK_STATUS(tdm_graph_new(&graph, &host), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "host.thread_start and host.thread_join");
    host = (tdm_host)TDM_HOST_INIT;
    host.cpus = -1;
    CHECK_STATUS(tdm_graph_new(&graph, &host), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "host.cpus must be 0 or more, got -1");
    host = (tdm_host)TDM_HOST_INIT;
    CHECK_OK(tdm_graph_new(&graph, &host));
    tdm_graph_free(graph);
}

/* Behind it begins a page that may not be read. */
TEST(an_older_host_is_not_read_beyond_its_size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), old = offsetof(tdm_host, thread_start);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), hash[40], own[40];
    REQUIRE(map != MAP_FAILED && mprotect(map + page, page, PROT_NONE) == 0);
    tdm_host *host = (tdm_host *)(void *)(map + page - old);
    memcpy(host, tdm_host_default(), old); /* as a program of 0.1.0 copies it */
    CHECK_INT(host->size, old);
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_graph *graph = api_graph(NULL);
    api_job(&job);
    job.parallel.mode = TDM_MODE_DP;
    job.parallel.device_ids = (tdm_ints){.count = 2, .item = {0, 1}};
    options.host = host;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_evaluate(run, &(double){0}, &(double){0}));
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(hash, state.params_xxh3, sizeof(hash));
    tdm_run_close(run);
    api_train(&job, graph, own);
    CHECK_TEXT(hash, own);
    tdm_graph_free(graph);
    munmap(map, 2 * page);
}

TEST_MAIN({
    RUN(intervals_are_of_the_hosts_clock);
    RUN(a_clock_may_stand_still);
    RUN(start_time_is_of_the_hosts_clock);
    RUN(devices_share_the_cpus_that_the_host_grants);
    RUN(a_refused_thread_is_called_as_the_host_was_asked);
    RUN(halves_are_refused);
    RUN(an_older_host_is_not_read_beyond_its_size);
})
