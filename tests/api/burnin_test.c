/* The burn-in as a program holds it: counts, times, progress, stopping, and devices that share nothing they should not.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include <tandem/burnin.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static tdm_graph *graph;

typedef struct watch {
    tdm_burnin *burnin;
    int calls;
    bool stops;
    tdm_burnin_progress last;
} watch;

static void on_progress(const tdm_burnin_progress *p, void *user) {
    watch *w = user;
    w->calls++;
    CHECK(p->seconds >= w->last.seconds && p->samples >= w->last.samples && p->wrong == 0);
    CHECK(p->fraction >= 0.0 && p->fraction <= 1.0);
    w->last = *p;
    if (w->stops) tdm_burnin_request_stop(w->burnin);
}

static void job_of(tdm_job *job, int devices) {
    api_job(job);
    job->parallel.device_ids = (tdm_ints){devices, {0, 1, 2, 3}};
    job->burnin.max_samples = 10;
}

static tdm_burnin *open_one(const tdm_job *job, watch *w) {
    tdm_burnin_options options = TDM_BURNIN_OPTIONS_INIT;
    tdm_burnin *burnin = NULL;
    options.on_progress = on_progress;
    options.user = w;
    CHECK_OK(tdm_burnin_open(&burnin, job, graph, &options));
    w->burnin = burnin;
    return burnin;
}

TEST(counts_and_times) {
    for (int devices = 1; devices <= 4; devices++) {
        tdm_job job;
        watch w = {.calls = 0};
        tdm_burnin_total total = TDM_BURNIN_TOTAL_INIT;
        job_of(&job, devices);
        job.burnin.iterations = 30;
        tdm_burnin *burnin = open_one(&job, &w);
        REQUIRE(burnin != NULL);
        CHECK_OK(tdm_burnin_run(burnin));
        CHECK_OK(tdm_burnin_get_total(burnin, &total));
        CHECK_INT(total.devices, devices);
        CHECK_INT(total.good, devices);
        CHECK_INT(total.batch, 4);
        CHECK_INT(total.different_samples, 10);
        CHECK_INT(total.samples, devices * 100); /* 30 batches of 4, 4 and 2 */
        CHECK(!total.stopped && total.equal_bits == (devices > 1) && total.tolerance == 1e-4);
        CHECK(w.calls > 0 && total.spread >= 0.0 && total.spread < 1.0);
        double longest = 0.0;
        for (int i = 0; i < devices; i++) {
            tdm_burnin_device d = TDM_BURNIN_DEVICE_INIT;
            CHECK_OK(tdm_burnin_get_device(burnin, i, &d));
            CHECK_INT(d.verdict, TDM_BURNIN_GOOD);
            CHECK_INT(d.batches, 30);
            CHECK_INT(d.samples, 100);
            CHECK_TEXT(d.why, "");
            longest = fmax(longest, d.seconds);
        }
        CHECK(total.seconds == longest);
        CHECK_STATUS(tdm_burnin_run(burnin), TDM_E_USAGE); /* once */
        tdm_burnin_close(burnin);
    }
}

/* Each pass has the bits of tdm_run_predict, whatever else runs. */
TEST(a_run_beside_it_is_not_disturbed) {
    tdm_job job, own;
    char alone[40], beside[40];
    watch w = {.calls = 0};
    api_job(&own);
    api_train(&own, graph, alone);
    job_of(&job, 2);
    job.burnin.iterations = 2000;
    tdm_burnin *burnin = open_one(&job, &w);
    REQUIRE(burnin != NULL);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))tdm_burnin_run, burnin) == 0);
    api_train(&own, graph, beside);
    pthread_join(thread, NULL);
    tdm_burnin_total total = TDM_BURNIN_TOTAL_INIT;
    CHECK_OK(tdm_burnin_get_total(burnin, &total));
    CHECK_INT(total.good, 2);
    CHECK_TEXT(beside, alone);
    tdm_burnin_close(burnin);
}

TEST(stopping) {
    tdm_job job;
    watch w = {.stops = true};
    tdm_burnin_total total = TDM_BURNIN_TOTAL_INIT;
    job_of(&job, 2);
    job.burnin.duration = 3600;
    tdm_burnin *burnin = open_one(&job, &w);
    REQUIRE(burnin != NULL);
    CHECK_OK(tdm_burnin_run(burnin));
    CHECK_OK(tdm_burnin_get_total(burnin, &total));
    CHECK(total.stopped && total.samples > 0 && total.good == 2);
    tdm_burnin_close(burnin);
    watch unseen = {.calls = 0};
    burnin = open_one(&job, &unseen);
    tdm_burnin_request_stop(burnin); /* before it has begun: nothing was compared, so there is no verdict */
    CHECK_STATUS(tdm_burnin_run(burnin), TDM_E_STOPPED);
    tdm_burnin_close(burnin);
}

TEST(without_data) {
    tdm_job job;
    tdm_burnin *burnin = NULL;
    job_of(&job, 1);
    job.data.train.format = job.data.eval.format = TDM_DATA_NONE;
    CHECK_STATUS(tdm_burnin_open(&burnin, &job, graph, NULL), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "no data");
    CHECK(burnin == NULL);
}

TEST_MAIN(graph = api_graph(NULL); RUN(counts_and_times); RUN(a_run_beside_it_is_not_disturbed); RUN(stopping);
          RUN(without_data); tdm_graph_free(graph);)
