/* As misuse_test.c: communicators and launchers. */
#include <tandem/tandem.h>

#include <tandem/comm.h>

#include "tests/api/misuse.h"
#include "tests/support/tdm_test.h"

TEST(communicators) {
    tdm_comm *two[2], *out = NULL;
    int64_t numbers[4] = {0};
    void *memory = NULL;
    const tdm_span span = {numbers, 1, TDM_DTYPE_I64}, wide = {numbers, 2, TDM_DTYPE_I64};
    const size_t one[] = {1};
    const tdm_span nowhere = {NULL, 1, TDM_DTYPE_I64}, no_type = {numbers, 1, TDM_DTYPE_COUNT};
    MISUSE(tdm_comm_open_threads(NULL, 2, NULL, 1000));
    MISUSE(tdm_comm_open_threads(two, 0, NULL, 1000));
    MISUSE(tdm_comm_open_threads(two, 257, NULL, 1000));
    MISUSE(tdm_comm_open_threads(two, 2, NULL, 0));
    MISUSE(tdm_comm_open_shm(NULL, 0, 0, 1, NULL, 1000));
    CHECK(tdm_comm_open_shm(&out, -1, 0, 1, NULL, 1000) != TDM_OK);
    tdm_comm_close(NULL);
    tdm_comm_abort(NULL, NULL);
    CHECK_INT(tdm_comm_rank(NULL), -1);
    CHECK_INT(tdm_comm_world(NULL), 0);
    CHECK_TEXT(tdm_comm_backend(NULL), "none");
    MISUSE(tdm_comm_barrier(NULL));
    MISUSE(tdm_comm_all_reduce(NULL, span, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_broadcast(NULL, span, 0));
    MISUSE(tdm_comm_reduce(NULL, span, 0, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_gather(NULL, span, span, 0));
    MISUSE(tdm_comm_all_gather(NULL, span, span));
    MISUSE(tdm_comm_scatter(NULL, span, span, 0));
    MISUSE(tdm_comm_send(NULL, span, 1));
    MISUSE(tdm_comm_receive(NULL, span, 1));
    MISUSE(tdm_comm_receive_any(NULL, span, NULL));
    MISUSE(tdm_comm_reduce_scatter(NULL, span, span, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_all_to_all(NULL, span, span));
    MISUSE(tdm_comm_all_to_all_v(NULL, span, one, span, one));
    MISUSE(tdm_comm_all_reduce_coalesced(NULL, &span, 1, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_all_gather_coalesced(NULL, &span, &span, 1));
    MISUSE(tdm_comm_reduce_scatter_coalesced(NULL, &span, &span, 1, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_batch_send_receive(NULL, &(tdm_transfer){1, 1, span}, 1));
    MISUSE(tdm_comm_allocate(NULL, 64, &memory));
    MISUSE(tdm_comm_split(NULL, (int[]){0}, 1, &out));
    REQUIRE_OK(tdm_comm_open_threads(two, 1, NULL, 1000));
    MISUSE(tdm_comm_all_reduce(two[0], nowhere, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_all_reduce(two[0], no_type, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_all_reduce(two[0], span, (tdm_reduce_op)9));
    MISUSE(tdm_comm_broadcast(two[0], span, 1));
    MISUSE(tdm_comm_all_gather(two[0], span, wide));
    MISUSE(tdm_comm_all_to_all_v(two[0], span, NULL, span, one));
    MISUSE(tdm_comm_all_reduce_coalesced(two[0], NULL, 1, TDM_REDUCE_SUM));
    CHECK_HAS(tdm_error_message(), "the list of spans is NULL");
    MISUSE(tdm_comm_all_gather_coalesced(two[0], &span, NULL, 1));
    MISUSE(tdm_comm_reduce_scatter_coalesced(two[0], &span, &wide, 1, TDM_REDUCE_SUM));
    MISUSE(tdm_comm_batch_send_receive(two[0], NULL, 1));
    CHECK_HAS(tdm_error_message(), "the list of messages is NULL");
    MISUSE(tdm_comm_batch_send_receive(two[0], &(tdm_transfer){1, 0, span}, 1));
    MISUSE(tdm_comm_send(two[0], span, 5));
    MISUSE(tdm_comm_allocate(two[0], 64, NULL));
    MISUSE(tdm_comm_split(two[0], NULL, 1, &out));
    MISUSE(tdm_comm_split(two[0], (int[]){0}, 1, NULL));
    MISUSE(tdm_comm_start_barrier(two[0], NULL));
    tdm_comm_close(two[0]);
}

TEST(asynchronous_calls) {
    tdm_comm_request *request = NULL;
    int64_t numbers[4] = {0};
    const tdm_span span = {numbers, 1, TDM_DTYPE_I64};
    const size_t one[] = {1};
    MISUSE(tdm_comm_start_barrier(NULL, &request));
    MISUSE(tdm_comm_start_all_reduce(NULL, span, TDM_REDUCE_SUM, &request));
    MISUSE(tdm_comm_start_broadcast(NULL, span, 0, &request));
    MISUSE(tdm_comm_start_reduce(NULL, span, 0, TDM_REDUCE_SUM, &request));
    MISUSE(tdm_comm_start_gather(NULL, span, span, 0, &request));
    MISUSE(tdm_comm_start_all_gather(NULL, span, span, &request));
    MISUSE(tdm_comm_start_scatter(NULL, span, span, 0, &request));
    MISUSE(tdm_comm_start_send(NULL, span, 1, &request));
    MISUSE(tdm_comm_start_receive(NULL, span, 1, &request));
    MISUSE(tdm_comm_start_receive_any(NULL, span, NULL, &request));
    MISUSE(tdm_comm_start_reduce_scatter(NULL, span, span, TDM_REDUCE_SUM, &request));
    MISUSE(tdm_comm_start_all_to_all(NULL, span, span, &request));
    MISUSE(tdm_comm_start_all_to_all_v(NULL, span, one, span, one, &request));
    MISUSE(tdm_comm_start_all_reduce_coalesced(NULL, &span, 1, TDM_REDUCE_SUM, &request));
    MISUSE(tdm_comm_start_all_gather_coalesced(NULL, &span, &span, 1, &request));
    MISUSE(tdm_comm_start_reduce_scatter_coalesced(NULL, &span, &span, 1, TDM_REDUCE_SUM, &request));
    MISUSE(tdm_comm_start_batch_send_receive(NULL, &(tdm_transfer){1, 1, span}, 1, &request));
    MISUSE(tdm_comm_wait(NULL, NULL));
    CHECK_INT(tdm_comm_done(NULL), 1);
}

TEST(launching) {
    int fd = -1;
    tdm_comm *comm;
    tdm_hosts_options between = TDM_HOSTS_OPTIONS_INIT;
    tdm_launch_facts facts = {.size = sizeof(facts), .world = 2, .local_world = 2, .fd = -1};
    MISUSE(tdm_launch_create(NULL, 2));
    MISUSE(tdm_launch_create(&fd, 0));
    MISUSE(tdm_launch_create(&fd, 100000));
    tdm_launch_abort(-1, 0, NULL);
    MISUSE(tdm_launch_ended(NULL, 0, 0, ""));
    MISUSE(tdm_launch_ended("", 0, 0, NULL));
    MISUSE(tdm_launch_from_env(NULL));
    MISUSE(tdm_launch_meet(NULL, &facts, NULL, NULL, 100, 0));
    MISUSE(tdm_comm_open_hosts(NULL, &facts, &between));
    MISUSE(tdm_comm_open_hosts(&comm, NULL, &between));
    MISUSE(tdm_comm_open_hosts(&comm, &facts, NULL));
    between.size = 1;
    MISUSE(tdm_comm_open_hosts(&comm, &facts, &between));
    between.size = sizeof(between);
    between.backend = "shm";
    MISUSE(tdm_comm_open_hosts(&comm, &facts, &between));
    MISUSE(tdm_launch_meet(&fd, NULL, NULL, NULL, 100, 0));
    MISUSE(tdm_launch_meet(&fd, &facts, NULL, "poem://", 100, 0));
    MISUSE(tdm_launch_meet(&fd, &facts, NULL, NULL, 0, 0));
    MISUSE(tdm_launch_meet(&fd, &facts, NULL, NULL, 100, 999));
    MISUSE(tdm_launch_meet(&fd, &facts, NULL, NULL, 100, -1));
    tdm_launch_fail(NULL, NULL, NULL);
    tdm_launch_fail(&facts, "poem://", NULL);
    CHECK(tdm_launch_source_name((tdm_launch_source)77) != NULL);
    CHECK(tdm_dtype_bytes((tdm_dtype)77) == 0);
    CHECK_TEXT(tdm_dtype_name((tdm_dtype)77), "unknown");
    CHECK_INT(fd, -1);
}

TEST_MAIN(RUN(communicators); RUN(asynchronous_calls); RUN(launching);)
