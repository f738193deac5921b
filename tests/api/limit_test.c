/* host.memory_limit: refused at open, refused in the run, enough at exactly the limit, and unknown to older programs. */
#include <stdlib.h>

#include <tandem/model.h>

#include "runtime/base/limit/limit.h"
#include "runtime/train/run.h"
#include "tests/api/api.h"
#include "tests/support/tdm_anonymous.h"
#include "tests/support/tdm_counting_host.h"
#include "tests/support/tdm_test.h"

/* It starts no threads, so that the order of allocations is the same in every run. */
static void counting_init(tdm_counting_host *l, size_t limit) {
    tdm_counting_host_init(l);
    l->most = 0;
    l->host.memory_limit = limit;
}

static void small_job(tdm_job *job) {
    api_job(job);
    job->data.workers = 0;
    job->parallel.kernels = TDM_KERNELS_REF; /* what others take depends on what the process had before */
    job->parallel.threads_per_device = 1;
}

/* Opens, trains and, if `saves`, makes a checkpoint in memory. *opened: 1 if it got so far. */
static tdm_status use(tdm_counting_host *l, const tdm_graph *graph, int saves, int *opened) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    const tdm_writer to = {.size = sizeof(to), .write = tdm_buffer_write, .user = &buffer};
    small_job(&job);
    options.host = &l->host;
    tdm_status status = tdm_run_open(&run, &job, graph, &options);
    *opened = status == TDM_OK;
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_OK && saves) status = tdm_run_save_to(run, &to);
    tdm_run_close(run);
    tdm_buffer_free(&buffer);
    CHECK_INT(l->live, 0);
    return status;
}

/* The least limit with which all works. */
static size_t least_limit(const tdm_graph *graph, int saves) {
    size_t low = 1, high = (size_t)64 << 20;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        tdm_counting_host l;
        int opened;
        counting_init(&l, middle);
        const tdm_status status = use(&l, graph, saves, &opened);
        CHECK(status == TDM_OK || status == TDM_E_MEMORY);
        if (status == TDM_OK)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

TEST(at_exactly_the_limit_all_works) {
    tdm_graph *graph = api_graph(NULL);
    const size_t least = least_limit(graph, 0);
    tdm_counting_host l, free_of_it;
    int opened;
    counting_init(&l, least);
    CHECK_OK(use(&l, graph, 0, &opened));
    CHECK((size_t)l.peak <= least + 256); /* the counter itself is not counted */
    counting_init(&free_of_it, 0);
    CHECK_OK(use(&free_of_it, graph, 0, &opened));
    CHECK(least < (size_t)(free_of_it.peak + free_of_it.peak / 2)); /* with what each block costs */
    counting_init(&l, least - 1);
    CHECK_STATUS(use(&l, graph, 0, &opened), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), "host.memory_limit");
    tdm_graph_free(graph);
}

/* Of a graph whose replica is larger than all that is made before it. */
TEST(what_cannot_fit_is_refused_at_open) {
    tdm_graph *graph = api_linear_graph(20000);
    const size_t least = least_limit(graph, 0);
    tdm_counting_host l;
    int opened;
    counting_init(&l, least - 300000);
    CHECK_STATUS(use(&l, graph, 0, &opened), TDM_E_MEMORY);
    CHECK_INT(opened, 0);
    CHECK_HAS(tdm_error_message(), "host.memory_limit is ");
    CHECK_HAS(tdm_error_message(), "of replicas (parameters and gradients ");
    CHECK_HAS(tdm_error_message(), "make train.batch.per_device or data.workers smaller");
    for (size_t limit = 1; limit < least; limit += least / 61 + 1) { /* wherever it fails, nothing is left */
        counting_init(&l, limit);
        CHECK_STATUS(use(&l, graph, 0, &opened), TDM_E_MEMORY);
    }
    tdm_graph_free(graph);
}

TEST(a_run_that_needs_more_later_is_refused_then) {
    tdm_graph *graph = api_graph(NULL);
    const size_t trains = least_limit(graph, 0), saves = least_limit(graph, 1);
    tdm_counting_host l;
    int opened;
    REQUIRE(saves > trains);
    counting_init(&l, saves - 1);
    CHECK_STATUS(use(&l, graph, 1, &opened), TDM_E_MEMORY);
    CHECK_INT(opened, 1);
    CHECK_HAS(tdm_error_message(), "host.memory_limit");
    CHECK_HAS(tdm_error_message(), "are in use");
    tdm_graph_free(graph);
}

/* The key of the job, and the host's member: the smaller one holds. */
TEST(a_job_has_a_limit_too) {
    tdm_graph *graph = api_linear_graph(20000);
    for (int smaller = 0; smaller < 2; smaller++) {
        tdm_job job;
        tdm_run *run = NULL;
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        tdm_host host = TDM_HOST_INIT;
        small_job(&job);
        options.host = &host;
        host.memory_limit = (size_t)(smaller ? 64 << 10 : 64 << 20);
        job.host.memory_limit = smaller ? 64 << 20 : 64 << 10;
        CHECK_STATUS(tdm_run_open(&run, &job, graph, &options), TDM_E_MEMORY);
        CHECK_HAS(tdm_error_message(), "host.memory_limit is 64");
        CHECK_HAS(tdm_error_message(), " KiB");
        CHECK_STATUS(tdm_plan_check_memory(&job, graph), smaller ? TDM_OK : TDM_E_CONFIG);
        host.memory_limit = 0;
        job.host.memory_limit = 64 << 20;
        CHECK_OK(tdm_run_open(&run, &job, graph, &options));
        tdm_run_close(run);
    }
    tdm_graph_free(graph);
}

#ifndef TDM_SANITIZED /* there the process holds more than that */
static const char network[] =
    "tandem: 1\nmodel: {builtin: resnet18, classes: 10, small_input: true, input: [3, 32, 32]}\n"
    "data: {train: {format: synthetic, samples: 10, classes: 10}, workers: 2}\n"
    "optimizer: {type: sgd, lr: 0.01}\ntrain: {steps: 3, batch: {per_device: 4}}\n"
    "parallel: {device: cpu, threads_per_device: 2}\nrun: {dir: null}\nhost: {memory_limit: 1GiB}\n";

/* What the run counts is what the process grows by, with what oneDNN takes for itself. */
TEST(what_is_counted_is_what_the_process_takes) {
    enum { SLACK = 2 << 20 }; /* stacks, and what the heap keeps between blocks */
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    REQUIRE_OK(tdm_config_parse(&config, NULL, network, strlen(network), "network", NULL));
    REQUIRE_OK(tdm_config_check(config));
    const size_t before = tdm_anonymous_bytes();
    REQUIRE_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), NULL));
    CHECK_OK(tdm_run_train(run));
    const size_t grown = tdm_anonymous_bytes() - before, counted = tdm__limit_of(run->host).held;
    CHECK(grown <= counted + SLACK);
    CHECK(counted <= grown + grown / 10);
    tdm_run_close(run);
    tdm_config_free(config);
}
#endif

TEST(an_older_host_has_no_limit) {
    tdm_graph *graph = api_graph(NULL);
    tdm_counting_host l;
    int opened;
    counting_init(&l, 1);
    l.host.size = offsetof(tdm_host, memory_limit);
    CHECK_OK(use(&l, graph, 0, &opened));
    tdm_graph_free(graph);
}

TEST(a_model_has_the_limit_for_itself) {
    tdm_graph *graph = api_graph(NULL);
    tdm_job job;
    tdm_run *run = NULL;
    tdm_model *model = NULL;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    const tdm_writer to = {.size = sizeof(to), .write = tdm_buffer_write, .user = &buffer};
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    tdm_counting_host l;
    small_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    REQUIRE_OK(tdm_run_export_to(run, &to, NULL));
    tdm_run_close(run);
    counting_init(&l, 4096);
    options.host = &l.host;
    CHECK_STATUS(tdm_model_open_memory(&model, buffer.bytes, buffer.count, &options), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), "host.memory_limit");
    CHECK_INT(l.live, 0);
    l.host.memory_limit = (size_t)64 << 20;
    REQUIRE_OK(tdm_model_open_memory(&model, buffer.bytes, buffer.count, &options));
    tdm_model_close(model);
    CHECK_INT(l.live, 0);
    tdm_buffer_free(&buffer);
    tdm_graph_free(graph);
}

TEST_MAIN({
#ifndef TDM_SANITIZED
    RUN(what_is_counted_is_what_the_process_takes); /* first: others leave free blocks that this one would use */
#endif
    RUN(at_exactly_the_limit_all_works);
    RUN(what_cannot_fit_is_refused_at_open);
    RUN(a_run_that_needs_more_later_is_refused_then);
    RUN(a_job_has_a_limit_too);
    RUN(an_older_host_has_no_limit);
    RUN(a_model_has_the_limit_for_itself);
})
