/* The public calls, and their asynchronous forms, over BACKENDS; hosts_ranks.c and mpi_ranks.c run them over theirs. */
#include <tandem/tandem.h>

#include "runtime/base/system/clock.h"
#include "tests/comm/ranks.h"

enum { TIMEOUT_MS = 20000, COUNT = 30000, CALLS = 100 };

static void overlapping_rank(rank_context *c) {
    tdm_comm_request *request[CALLS];
    float *data[CALLS];
    const int64_t start_ns = tdm__now_ns();
    for (int i = 0; i < CALLS; i++) {
        data[i] = malloc(COUNT * sizeof(float));
        for (int k = 0; k < COUNT; k++) data[i][k] = (float)(c->rank + i);
    }
    CHECK_INT(tdm_comm_rank(c->comm), c->rank);
    CHECK_INT(tdm_comm_world(c->comm), c->world);
    /* More than any fixed queue holds, and waited for in another order. */
    for (int i = 0; i < CALLS; i++)
        REQUIRE_OK(
            tdm_comm_start_all_reduce(c->comm, (tdm_span){data[i], COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM, &request[i]));
    /* A call in between comes in its turn. */
    int64_t sum = c->rank;
    CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){&sum, 1, TDM_DTYPE_I64}, TDM_REDUCE_SUM));
    CHECK_INT(sum, c->world * (c->world - 1) / 2);
    CHECK(tdm_comm_done(request[CALLS - 1]));
    for (int i = CALLS - 1; i >= 0; i -= 2) {
        double ms = -1;
        CHECK_OK(tdm_comm_wait(request[i], &ms));
        CHECK(ms > 0 && ms <= tdm__ms_since(start_ns));
    }
    for (int i = CALLS - 2; i > 0; i -= 2) CHECK_OK(tdm_comm_wait(request[i], NULL));
    for (int i = 1; i < CALLS; i++) {
        float want = (float)(c->world * i + c->world * (c->world - 1) / 2);
        CHECK(data[i][0] == want && data[i][COUNT - 1] == want);
    }
    /* Request 0 is left to the close. */
    CHECK_OK(tdm_comm_barrier(c->comm));
    for (int i = 0; i < CALLS; i++) free(data[i]);
}

/* Calls of several spans or messages, among four ranks. */
static void every_list_rank(rank_context *c) {
    tdm_comm_request *request[2];
    const int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    int32_t pair_of[2] = {c->rank, 7}, all_of[8], sum_of[2];
    const tdm_span ins[] = {{&pair_of[0], 1, TDM_DTYPE_I32}, {&pair_of[1], 1, TDM_DTYPE_I32}};
    const tdm_span outs[] = {{&all_of[0], 4, TDM_DTYPE_I32}, {&all_of[4], 4, TDM_DTYPE_I32}};
    const tdm_span sum_spans[] = {{&sum_of[0], 1, TDM_DTYPE_I32}, {&sum_of[1], 1, TDM_DTYPE_I32}};
    REQUIRE_OK(tdm_comm_start_all_gather_coalesced(c->comm, ins, outs, 2, &request[0]));
    REQUIRE_OK(tdm_comm_start_reduce_scatter_coalesced(c->comm, outs, sum_spans, 2, TDM_REDUCE_SUM, &request[1]));
    for (int i = 0; i < 2; i++) CHECK_OK(tdm_comm_wait(request[i], NULL));
    for (int r = 0; r < 4; r++) CHECK(all_of[r] == r && all_of[4 + r] == 7);
    CHECK(sum_of[0] == 4 * c->rank && sum_of[1] == 28);
    int32_t come = -1;
    const tdm_transfer swap[] = {{1, next, {pair_of, 1, TDM_DTYPE_I32}}, {0, before, {&come, 1, TDM_DTYPE_I32}}};
    REQUIRE_OK(tdm_comm_start_batch_send_receive(c->comm, swap, 2, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    CHECK_INT(come, before);
}

static void every_call_rank(rank_context *c) {
    tdm_comm_request *request[8];
    int32_t one = c->rank + 1, all[4] = {0}, part = 0, sum = c->rank, root = c->rank;
    int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    tdm_span own = {&one, 1, TDM_DTYPE_I32}, many = {all, (size_t)c->world, TDM_DTYPE_I32};
    tdm_span got = {&part, 1, TDM_DTYPE_I32};
    REQUIRE_OK(tdm_comm_start_all_gather(c->comm, own, many, &request[0]));
    REQUIRE_OK(tdm_comm_start_reduce(c->comm, (tdm_span){&sum, 1, TDM_DTYPE_I32}, 1, TDM_REDUCE_MAX, &request[1]));
    REQUIRE_OK(tdm_comm_start_broadcast(c->comm, (tdm_span){&root, 1, TDM_DTYPE_I32}, 2, &request[2]));
    REQUIRE_OK(tdm_comm_start_barrier(c->comm, &request[3]));
    for (int i = 0; i < 4; i++) CHECK_OK(tdm_comm_wait(request[i], NULL));
    for (int r = 0; r < c->world; r++) CHECK_INT(all[r], r + 1);
    CHECK_INT(sum, c->rank == 1 ? c->world - 1 : c->rank);
    CHECK_INT(root, 2);
    REQUIRE_OK(tdm_comm_start_scatter(c->comm, many, got, 0, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    CHECK_INT(part, c->rank + 1);
    REQUIRE_OK(tdm_comm_start_gather(c->comm, own, many, 3, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    int32_t mine[4] = {c->rank, c->rank + 10, c->rank + 20, c->rank + 30}, from_all[4];
    tdm_span parts = {mine, (size_t)c->world, TDM_DTYPE_I32}, exchanged = {from_all, (size_t)c->world, TDM_DTYPE_I32};
    REQUIRE_OK(tdm_comm_start_all_to_all(c->comm, parts, exchanged, &request[0]));
    REQUIRE_OK(tdm_comm_start_reduce_scatter(c->comm, parts, got, TDM_REDUCE_BOR, &request[1]));
    for (int i = 0; i < 2; i++) CHECK_OK(tdm_comm_wait(request[i], NULL));
    for (int r = 0; r < c->world; r++) CHECK_INT(from_all[r], r + 10 * c->rank);
    int32_t sums[3] = {c->rank, 5, 1};
    const tdm_span both[] = {{&sums[0], 1, TDM_DTYPE_I32}, {&sums[2], 1, TDM_DTYPE_I32}};
    REQUIRE_OK(tdm_comm_start_all_reduce_coalesced(c->comm, both, 2, TDM_REDUCE_SUM, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    CHECK(sums[0] == 6 && sums[1] == 5 && sums[2] == 4);
    /* Rank 3 sends r + 1 elements to rank r, the others nothing. */
    int32_t ten[10] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3}, some[4];
    const size_t to[4] = {c->rank == 3 ? 1 : 0, c->rank == 3 ? 2 : 0, c->rank == 3 ? 3 : 0, c->rank == 3 ? 4 : 0};
    const size_t from[4] = {0, 0, 0, (size_t)c->rank + 1};
    REQUIRE_OK(tdm_comm_start_all_to_all_v(c->comm, (tdm_span){ten, c->rank == 3 ? 10 : 0, TDM_DTYPE_I32}, to,
                                           (tdm_span){some, from[3], TDM_DTYPE_I32}, from, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    for (int i = 0; i <= c->rank; i++) CHECK_INT(some[i], c->rank);
    CHECK_INT(part, (0 + 10 * c->rank) | (1 + 10 * c->rank) | (2 + 10 * c->rank) | (3 + 10 * c->rank));
    int sender = -1;
    if (c->rank == 3) REQUIRE_OK(tdm_comm_start_send(c->comm, own, 0, &request[0]));
    if (c->rank == 0) REQUIRE_OK(tdm_comm_start_receive_any(c->comm, got, &sender, &request[0]));
    if (c->rank == 3 || c->rank == 0) CHECK_OK(tdm_comm_wait(request[0], NULL));
    if (c->rank == 0) CHECK(sender == 3 && part == 4);
    bool first = c->rank % 2 == 0;
    if (first) REQUIRE_OK(tdm_comm_start_send(c->comm, own, next, &request[0]));
    REQUIRE_OK(tdm_comm_start_receive(c->comm, got, before, &request[1]));
    if (!first) REQUIRE_OK(tdm_comm_start_send(c->comm, own, next, &request[0]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    CHECK_OK(tdm_comm_wait(request[1], NULL));
    CHECK_INT(part, before + 1);
    /* Groups and memory, through the queue. */
    const int pair[] = {1, 0};
    tdm_comm *group;
    void *memory;
    CHECK_OK(tdm_comm_split(c->comm, pair, 2, &group));
    CHECK((group != NULL) == (c->rank < 2));
    if (group != NULL) {
        CHECK_OK(tdm_comm_allocate(group, 100000, &memory));
        memset(memory, c->rank, 100000);
        CHECK_OK(tdm_comm_broadcast(group, (tdm_span){memory, 100000, TDM_DTYPE_U8}, 0));
        CHECK_INT(((unsigned char *)memory)[99999], 1);
    }
    tdm_comm_close(group);
}

static void run_over_all(int world, rank_fn fn) {
    static const backend all[] = {BACKENDS};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) ranks_run(all[i], world, TIMEOUT_MS, fn, NULL);
}

TEST(calls_overlap_and_keep_their_order) {
    run_over_all(3, overlapping_rank);
}

TEST(every_asynchronous_call) {
    run_over_all(4, every_call_rank);
    run_over_all(4, every_list_rank);
}

#ifndef ONE_JOB /* mpirun's processes cannot begin again */
static void failing_rank(rank_context *c) {
    tdm_comm_request *request[3];
    float x[3] = {0};
    for (int i = 0; i < 3; i++)
        REQUIRE_OK(tdm_comm_start_all_reduce(c->comm, (tdm_span){x + i, 1, TDM_DTYPE_F32},
                                             c->rank == 1 && i == 1 ? TDM_REDUCE_MAX : TDM_REDUCE_SUM, &request[i]));
    CHECK_OK(tdm_comm_wait(request[0], NULL));
    CHECK_STATUS(tdm_comm_wait(request[2], NULL), TDM_E_COMM);
    CHECK_STATUS(tdm_comm_wait(request[1], NULL), TDM_E_USAGE);
    /* The worker's error is this thread's now. */
    CHECK_HAS(tdm_error_message(), "rank 0 all_reduce (call 2, 1 f32, sum), rank 1 all_reduce (call 2, 1 f32, max)");
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
}

TEST(failures_come_to_whoever_waits) {
    run_over_all(2, failing_rank);
}
#endif

/* The queue by itself. */
static void queue_rank(rank_context *c) {
    tdm_comm_queue *queue;
    tdm_comm_request *request;
    double x = 1, ms;
    const tdm_comm_call sum = {.kind = TDM_COMM_ALL_REDUCE, .rank = -1, .in = {&x, 1, TDM_DTYPE_F64}};
    REQUIRE_OK(tdm__comm_queue_open(&queue, c->comm));
    for (int i = 0; i < 50; i++) {
        REQUIRE_OK(tdm__comm_start(queue, &sum, &request));
        CHECK_OK(tdm_comm_wait(request, &ms));
        x = x / c->world;
    }
    CHECK(x == 1);
    tdm__comm_queue_close(queue);
    CHECK_OK(tdm_comm_barrier(c->comm));
}

TEST(a_queue_of_its_own) {
    run_over_all(2, queue_rank);
}

TEST(public_opening) {
    tdm_comm *comm[1];
    int32_t x = 5;
    REQUIRE_OK(tdm_comm_open_threads(comm, 1, NULL, 1000));
    CHECK_TEXT(tdm_comm_backend(comm[0]), "local");
    CHECK_OK(tdm_comm_all_reduce(comm[0], (tdm_span){&x, 1, TDM_DTYPE_I32}, TDM_REDUCE_SUM));
    CHECK_INT(x, 5);
    tdm_comm_abort(comm[0], "enough");
    CHECK_STATUS(tdm_comm_barrier(comm[0]), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "barrier (call 2): rank 0: enough");
    tdm_comm_close(comm[0]);
    int fd;
    REQUIRE_OK(tdm_launch_create(&fd, 1));
    REQUIRE_OK(tdm_comm_open_shm(comm, fd, 0, 1, NULL, 1000));
    CHECK_TEXT(tdm_comm_backend(comm[0]), "shm");
    CHECK_OK(tdm_comm_barrier(comm[0]));
    tdm_launch_abort(fd, -1, "interrupted");
    CHECK_STATUS(tdm_comm_barrier(comm[0]), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "barrier (call 2): the launcher ended the job: interrupted");
    tdm_comm_close(comm[0]);
    tdm_comm_close(NULL);
}

TEST_MAIN({
    RUN(calls_overlap_and_keep_their_order);
    RUN(every_asynchronous_call);
#ifndef ONE_JOB
    RUN(failures_come_to_whoever_waits);
#endif
    RUN(a_queue_of_its_own);
    RUN(public_opening);
})
