/* What ranks are told when NCCL, a GPU or a peer fails: every call ends, on every rank, with the cause. Ranks are
 * threads; the library behind them follows a script (tests/fake/nccl/fake_nccl.h). */
#include <pthread.h>
#include <stdatomic.h>

#include <cuda_emulated.h>
#include <fake_nccl.h>

#include "runtime/base/system/clock.h"
#include "tests/comm/nccl_gpu.h"
#include "tests/support/tdm_failing_host.h"

/* Long: a test that ends by it would not end in time. What ends by itself is over SOON; what waits for an abort that
 * cannot end takes twice as long. LIMIT_MS is for tests that end by it: a machine may stand still for seconds. */
enum { TIMEOUT_MS = 50000, SOON_MS = 20000, LIMIT_MS = 4000 };

/* Nothing of NCCL or of the GPUs is left, and what was aborted was aborted once by each rank. */
static void check_clean(long aborts) {
    CHECK_INT(fake_nccl_live(), 0);
    CHECK_INT(cuda_emulated_live(), 0);
    CHECK_INT(fake_nccl_aborts(), aborts);
    CHECK_INT(gpu_keepers(0), 0);
}

/* Until this rank has learned that the job is over. */
static void await_end(gpu_rank *g) {
    while (g->nccl->ops->wait(g->nccl, NULL) == TDM_OK) gpu_nap(1);
}

static void run(int world, int64_t timeout_ms, rank_fn fn, void *user, long aborts) {
    long before = fake_nccl_aborts();
    ranks_run(BACKEND_LOCAL, world, timeout_ms, fn, user);
    check_clean(before + aborts);
    fake_nccl_reset();
    cuda_emulated_reset();
}

/* ---- deadlines ---- */

static void late_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, LIMIT_MS));
    gpu_put(&g, 1);
    CHECK_OK(gpu_reduce_and_wait(&g));
    if (c->rank != 1) {
        int64_t start = tdm__now_ns();
        CHECK_OK(gpu_reduce(&g));
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "all_reduce (call 2, 1000 f32, sum): rank ");
        CHECK_HAS(tdm_error_message(), ": waited 4000 ms for it to end on cuda:");
        CHECK(tdm__ms_since(start) < SOON_MS);
    }
    ranks_meet(c, 3);
    await_end(&g);
    /* And it stays ended, for whoever was late, too. */
    CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "all_reduce (call ");
    CHECK_HAS(tdm_error_message(), "waited 4000 ms for it to end on cuda:");
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    gpu_close(&g);
}

TEST(a_rank_that_does_not_come) {
    run(3, TIMEOUT_MS, late_rank, NULL, 3);
}

static void hanging_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, LIMIT_MS));
    gpu_put(&g, 1);
    tdm_status status = TDM_OK;
    for (int i = 0; i < 5 && status == TDM_OK; i++) status = gpu_reduce_and_wait(&g);
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "all_reduce (call 3, 1000 f32, sum): ");
    CHECK_HAS(tdm_error_message(), "waited 4000 ms for it to end on cuda:");
    gpu_close(&g);
}

TEST(a_collective_that_hangs) {
    fake_nccl_hang_at(1, 3);
    run(2, TIMEOUT_MS, hanging_rank, NULL, 2);
    CHECK(fake_nccl_revokes() > 0);
}

static void not_begun_rank(rank_context *c) {
    gpu_rank g;
    CHECK_STATUS(gpu_open(&g, c, c->rank, LIMIT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "open nccl: ");
    CHECK_HAS(tdm_error_message(), "waited 4000 ms for NCCL to start it");
    gpu_close(&g);
}

TEST(opening_has_a_deadline) {
    fake_nccl_hang_init(1);
    run(2, TIMEOUT_MS, not_begun_rank, NULL, 2);
}

/* ---- failures of NCCL ---- */

static void failing_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    tdm_status status = TDM_OK;
    for (int i = 0; i < 4 && status == TDM_OK; i++) status = gpu_reduce_and_wait(&g);
    CHECK_INT(status, TDM_E_COMM);
    /* Who has not seen the end of the call before is told in that one. */
    CHECK_HAS(tdm_error_message(), "all_reduce (call ");
    CHECK_HAS(tdm_error_message(), ", 1000 f32, sum): rank 0: ");
    CHECK_HAS(tdm_error_message(), "all_reduce (call 2, 1000 f32, sum): ");
    CHECK_HAS(tdm_error_message(), (const char *)c->user);
    gpu_close(&g);
}

TEST(an_asynchronous_error) {
    char wanted[] = "NCCL: remote process exited or there was a network error: socket progress: Connection closed by "
                    "remote peer (NCCL_DEBUG=WARN prints more)";
    fake_nccl_fail_at(0, 2);
    run(3, TIMEOUT_MS, failing_rank, wanted, 3);
}

TEST(a_call_that_nccl_refuses) {
    char wanted[] = "NCCL: unhandled system error (run with NCCL_DEBUG=INFO for details): Call to socket failed:  no "
                    "more of them";
    fake_nccl_refuse_at(0, 2);
    run(2, TIMEOUT_MS, failing_rank, wanted, 2);
    fake_nccl_refuse_at(0, 2);
    fake_nccl_pending(2);
    run(2, TIMEOUT_MS, failing_rank, wanted, 2);
}

/* Every answer takes some asking: nothing may be put behind a call that NCCL has not taken yet. */
static void patient_rank(rank_context *c) {
    gpu_rank g;
    const int both[] = {1, 0};
    tdm_comm *pair = NULL;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    for (int i = 0; i < 3; i++) CHECK_OK(gpu_reduce(&g));
    CHECK_OK(g.nccl->ops->join(g.nccl));
    gpu_check(&g, 8);
    CHECK_OK(tdm__comm_split(g.nccl, both, 2, &pair));
    CHECK_INT(pair->rank, 1 - c->rank);
    CHECK_OK(tdm_comm_all_reduce(pair, (tdm_span){g.data, GPU_COUNT, TDM_DTYPE_F32}, TDM_REDUCE_MAX));
    CHECK_OK(pair->ops->wait(pair, NULL));
    pair->ops->close(pair);
    gpu_close(&g);
}

TEST(calls_in_progress) {
    for (int polls = 0; polls < 40; polls += 13) {
        fake_nccl_pending(polls);
        run(2, TIMEOUT_MS, patient_rank, NULL, 0);
    }
}

/* ---- aborts ---- */

typedef struct aborting {
    rank_context *context;
    tdm_comm *nccl;
} aborting;

static void *abort_when_all_wait(void *argument) {
    aborting *own = argument;
    ranks_meet(own->context, 3);
    own->nccl->ops->abort(own->nccl, NULL);
    return NULL;
}

static void aborting_rank(rank_context *c) {
    gpu_rank g;
    pthread_t thread;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    aborting own = {c, g.nccl};
    if (c->rank == 0) REQUIRE(pthread_create(&thread, NULL, abort_when_all_wait, &own) == 0);
    if (c->rank < 2) { /* rank 2 never comes */
        CHECK_OK(gpu_reduce(&g));
        ranks_meet(c, 3);
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_TEXT(tdm_error_message(), "all_reduce (call 1, 1000 f32, sum): rank 0 called abort");
    }
    if (c->rank == 0) pthread_join(thread, NULL);
    gpu_close(&g);
}

TEST(an_abort_wakes_all) {
    /* Rank 2 closes an idle communicator of a job that has ended. */
    run(3, TIMEOUT_MS, aborting_rank, NULL, 3);
}

static void reason_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    if (c->rank == 1) tdm_comm_abort(g.nccl, "row 7 of the data is damaged");
    tdm_status status = TDM_OK;
    while (status == TDM_OK) status = gpu_reduce_and_wait(&g);
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1: row 7 of the data is damaged");
    gpu_close(&g);
}

TEST(an_abort_with_a_reason) {
    run(2, TIMEOUT_MS, reason_rank, NULL, 2);
}

/* The keeper aborts while the owner waits for the stream, which has no deadline of its own. */
static void stuck_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    if (c->rank == 0) {
        CHECK_OK(gpu_reduce(&g));
        CHECK_OK(g.nccl->ops->join(g.nccl));
        ranks_meet(c, 2);
        CHECK_OK(g.device->ops->queues->finish(g.device, NULL));
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "rank 1: enough");
    } else {
        ranks_meet(c, 2);
        gpu_nap(100); /* in most runs the other waits by then */
        tdm_comm_abort(c->comm, "enough");
    }
    gpu_close(&g);
}

TEST(the_end_of_the_job_frees_the_stream) {
    run(2, TIMEOUT_MS, stuck_rank, NULL, 2);
}

static void group_rank(rank_context *c) {
    gpu_rank g;
    const int first[] = {0, 1}, second[] = {2, 3};
    tdm_comm *a, *b;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    REQUIRE_OK(tdm__comm_split(g.nccl, first, 2, &a));
    REQUIRE_OK(tdm__comm_split(g.nccl, second, 2, &b));
    tdm_comm *own = a != NULL ? a : b;
    CHECK((a != NULL) == (c->rank < 2));
    ranks_meet(c, 4);
    if (c->rank == 3) tdm_comm_abort(b, "no more");
    tdm_status status = TDM_OK;
    while (status == TDM_OK) {
        status = tdm_comm_all_reduce(own, (tdm_span){g.data, GPU_COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
        if (status == TDM_OK) status = own->ops->wait(own, NULL);
    }
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 3: no more");
    /* Parents go first, too. */
    if (c->rank == 0) {
        g.nccl->ops->close(g.nccl);
        g.nccl = NULL;
    }
    own->ops->close(own);
    gpu_close(&g);
}

TEST(a_group_that_ends_ends_the_job) {
    run(4, TIMEOUT_MS, group_rank, NULL, 8);
}

/* ---- graphs ---- */

static void capturing_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    CHECK_OK(gpu_reduce_and_wait(&g)); /* 2 */
    tdm_capture *capture = gpu_capture(&g, 2);
    REQUIRE(capture != NULL);
    for (int run = 0; run < 3; run++) {
        gpu_put(&g, 1);
        CHECK_OK(g.device->ops->captures->run(g.device, capture));
        CHECK_OK(g.nccl->ops->wait(g.nccl, NULL)); /* the device's queue, too: the graph runs there */
        gpu_check(&g, 4);
        CHECK_OK(gpu_reduce_and_wait(&g)); /* and calls between the runs */
        gpu_check(&g, 8);
    }
    g.device->ops->captures->free(g.device, capture);
    gpu_close(&g);
}

TEST(capture_and_replay) {
    run(2, TIMEOUT_MS, capturing_rank, NULL, 0);
    fake_nccl_pending(3);
    run(2, TIMEOUT_MS, capturing_rank, NULL, 0);
}

/* Frees the graph as every caller does after a failure, and closes: soon, as nothing is left to wait for. */
static void free_and_close(gpu_rank *g, tdm_capture *capture) {
    int64_t start = tdm__now_ns();
    CHECK_OK(g->device->ops->queues->finish(g->device, NULL));
    g->device->ops->captures->free(g->device, capture);
    gpu_close(g);
    CHECK(tdm__ms_since(start) < SOON_MS);
}

/* The job ends while all but rank 1 replay. NCCL does not end a communicator whose graphs are left: who has to free
 * them is told before. */
static void replaying_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    tdm_capture *capture = gpu_capture(&g, 2), *idle = gpu_capture(&g, 1);
    REQUIRE(capture != NULL && idle != NULL);
    CHECK_OK(g.device->ops->captures->run(g.device, capture));
    CHECK_OK(g.nccl->ops->wait(g.nccl, NULL));
    gpu_check(&g, 9);
    int64_t start = tdm__now_ns();
    if (c->rank != 1) CHECK_OK(g.device->ops->captures->run(g.device, capture));
    ranks_meet(c, 3);
    if (c->rank == 1) {
        gpu_nap(100); /* in most runs the others wait by then */
        tdm_comm_abort(g.nccl, "enough");
    }
    CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1: enough");
    CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_COMM); /* and it stays ended */
    CHECK(tdm__ms_since(start) < SOON_MS);
    CHECK(fake_nccl_live() > 0);
    g.device->ops->captures->free(g.device, idle);
    CHECK(fake_nccl_live() > 0);
    free_and_close(&g, capture);
}

TEST(the_end_of_the_job_in_a_replay) {
    run(3, TIMEOUT_MS, replaying_rank, NULL, 3);
}

/* A device that fails between two replays: its rank is told what failed, and nobody waits for graphs. */
static void broken_replay_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    tdm_capture *capture = gpu_capture(&g, 1);
    REQUIRE(capture != NULL);
    CHECK_OK(g.device->ops->captures->run(g.device, capture));
    CHECK_OK(g.nccl->ops->wait(g.nccl, NULL));
    int64_t start = tdm__now_ns();
    if (c->rank == 0) {
        ranks_meet(c, 2);
        cuda_emulated_fail_work_at(1);
        CHECK_OK(g.device->ops->queues->copy(g.device, NULL, g.data, g.data, sizeof(float)));
        CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_DEVICE);
        CHECK_HAS(tdm_error_message(), "illegal");
    } else {
        CHECK_OK(g.device->ops->captures->run(g.device, capture));
        ranks_meet(c, 2);
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "cuda:0 failed");
    }
    CHECK(tdm__ms_since(start) < SOON_MS);
    start = tdm__now_ns();
    g.device->ops->captures->free(g.device, capture);
    gpu_close(&g);
    CHECK(tdm__ms_since(start) < SOON_MS);
}

TEST(a_gpu_that_fails_before_a_replay) {
    run(2, TIMEOUT_MS, broken_replay_rank, NULL, 2);
}

/* A peer that is missing inside a graph: the device's queue waits, and wait still has its deadline. */
static void lonely_replay_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, LIMIT_MS));
    gpu_put(&g, 1);
    tdm_capture *capture = gpu_capture(&g, 1);
    int64_t start = tdm__now_ns();
    if (c->rank == 0) {
        CHECK_OK(g.device->ops->captures->run(g.device, capture));
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "waited 4000 ms for it to end on cuda:0");
        CHECK(tdm__ms_since(start) < SOON_MS);
        ranks_meet(c, 2);
    } else {
        ranks_meet(c, 2);
        await_end(&g);
        CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "rank 0: ");
    }
    free_and_close(&g, capture);
}

TEST(a_replay_without_a_peer) {
    run(2, TIMEOUT_MS, lonely_replay_rank, NULL, 2);
}

/* ---- GPUs ---- */

static void broken_gpu_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    CHECK_OK(g.device->ops->queues->finish(g.device, NULL));
    if (c->rank == 0) {
        ranks_meet(c, 2);
        cuda_emulated_fail_work_at(1);
        CHECK_OK(g.device->ops->queues->copy(g.device, NULL, g.data, g.data, sizeof(float)));
        tdm_status status = gpu_reduce_and_wait(&g);
        CHECK_INT(status, TDM_E_DEVICE);
        CHECK_HAS(tdm_error_message(), "illegal");
    } else {
        CHECK_OK(gpu_reduce(&g));
        ranks_meet(c, 2);
        CHECK_STATUS(g.nccl->ops->wait(g.nccl, NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "rank 0: all_reduce (call 1, 1000 f32, sum): cuda:0 failed");
    }
    gpu_close(&g);
}

TEST(a_gpu_that_fails) {
    run(2, TIMEOUT_MS, broken_gpu_rank, NULL, 2);
}

/* Every call of CUDA and of NCCL fails once: it is told, nothing hangs, nothing is left. */
static atomic_int failures;

static void sweep_rank(rank_context *c) {
    gpu_rank g;
    tdm_status status = gpu_open(&g, c, c->rank, TIMEOUT_MS);
    for (int i = 0; i < 2 && status == TDM_OK; i++) status = gpu_reduce_and_wait(&g);
    if (status != TDM_OK) {
        atomic_fetch_add(&failures, 1);
        CHECK(tdm_error_message()[0] != '\0');
        tdm_comm_abort(c->comm, "a call failed"); /* the device may have failed before the communicator was opened */
    }
    gpu_close(&g);
}

TEST(every_call_may_fail) {
    for (int world = 1; world <= 2; world++) {
        atomic_store(&failures, 0);
        for (long k = 1; k < 2000; k += world == 1 ? 1 : 7) {
            cuda_emulated_fail_at(k);
            int before = atomic_load(&failures);
            ranks_run(BACKEND_LOCAL, world, TIMEOUT_MS, sweep_rank, NULL);
            CHECK_INT(fake_nccl_live(), 0);
            CHECK_INT(cuda_emulated_live(), 0);
            bool beyond = atomic_load(&failures) == before && k > 60;
            cuda_emulated_reset();
            if (beyond) break;
        }
        CHECK(atomic_load(&failures) > 10);
    }
}

/* The k-th allocation of a communicator fails: TDM_E_MEMORY, nothing is kept, and nobody waits. */
TEST(no_memory) {
    const tdm_device_ops *device_ops;
    const tdm_comm_ops *comm_ops;
    tdm_device *device;
    REQUIRE_OK(nccl_find(&device_ops, &comm_ops));
    REQUIRE_OK(device_ops->open(&device, tdm_host_default(), &(tdm_device_options){.index = 0}));
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        tdm_comm *control, *nccl, *part = NULL;
        const int self = 0;
        tdm_failing_host_init(&failing, 0);
        REQUIRE_OK(tdm_comm_open_threads(&control, 1, &failing.host, TIMEOUT_MS));
        failing.fail_at = failing.calls + k;
        tdm_status status = comm_ops->open(&nccl, device, control, TIMEOUT_MS);
        if (status == TDM_OK) status = tdm__comm_split(nccl, &self, 1, &part);
        if (part != NULL) part->ops->close(part);
        if (nccl != NULL) nccl->ops->close(nccl);
        tdm_comm_close(control);
        CHECK_INT(failing.live, 0);
        CHECK_INT(fake_nccl_live(), 0);
        if (!failing.failed) {
            CHECK_OK(status);
            CHECK(k > 3);
            break;
        }
        CHECK_INT(status, TDM_E_MEMORY);
    }
    device_ops->close(device);
    CHECK_INT(cuda_emulated_live(), 0);
}

TEST_MAIN({
    RUN(a_rank_that_does_not_come);
    RUN(a_collective_that_hangs);
    RUN(opening_has_a_deadline);
    RUN(an_asynchronous_error);
    RUN(a_call_that_nccl_refuses);
    RUN(calls_in_progress);
    RUN(an_abort_wakes_all);
    RUN(an_abort_with_a_reason);
    RUN(the_end_of_the_job_frees_the_stream);
    RUN(a_group_that_ends_ends_the_job);
    RUN(capture_and_replay);
    RUN(the_end_of_the_job_in_a_replay);
    RUN(a_gpu_that_fails_before_a_replay);
    RUN(a_replay_without_a_peer);
    RUN(a_gpu_that_fails);
    RUN(every_call_may_fail);
    RUN(no_memory);
})
