/* Ranks in processes of their own over NCCL: what the survivors of a death are told and when, and what is found out
 * before NCCL is asked for anything. Nothing here uses CUDA before it forks. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "tests/comm/nccl_gpu.h"

enum { TIMEOUT_MS = 50000, SOON_MS = 20000, LIMIT_MS = 4000 };

static void run(int world, rank_fn fn, void *user) {
    ranks_run(BACKEND_SHM, world, TIMEOUT_MS, fn, user);
}

/* ---- deaths ---- */

static void check_death(tdm_status status, int64_t start) {
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), ": rank 1 (pid ");
    CHECK_HAS(tdm_error_message(), ") is gone");
    CHECK(tdm__ms_since(start) < SOON_MS);
}

/* Rank 1 dies inside an all-reduce that waits for rank 2, which kills it. */
static void killed_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    CHECK_OK(gpu_reduce_and_wait(&g));
    gpu_check(&g, (float)c->world);
    ranks_meet(c, c->world); /* all have their first sum */
    int64_t start = tdm__now_ns();
    if (c->rank == 2) {
        gpu_nap(200); /* in most runs the others wait by then */
        kill(c->pids[1], SIGKILL);
        gpu_nap(200);
    }
    tdm_status status = gpu_reduce(&g);
    if (status == TDM_OK) status = g.nccl->ops->wait(g.nccl, NULL);
    check_death(status, start);
    CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_COMM); /* and it stays ended */
    start = tdm__now_ns();
    gpu_close(&g);
    CHECK(tdm__ms_since(start) < SOON_MS);
}

TEST(a_peer_killed_in_an_all_reduce) {
    for (int world = 3; world <= 4; world++) {
        int status[4];
        ranks_fork(world, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_rank, NULL, status);
        for (int r = 0; r < world; r++) {
            if (r == 1)
                CHECK(WIFSIGNALED(status[r]) && WTERMSIG(status[r]) == SIGKILL);
            else
                CHECK_INT(status[r], 0);
        }
    }
}

/* The survivors sit in a wait for the stream, without a deadline: the keeper frees them. */
static void killed_in_stream_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    if (c->rank == 1) {
        ranks_meet(c, 2);
        gpu_nap(100); /* in most runs the other waits by then */
        raise(SIGKILL);
    }
    int64_t start = tdm__now_ns();
    CHECK_OK(gpu_reduce(&g));
    CHECK_OK(g.nccl->ops->join(g.nccl));
    ranks_meet(c, 2);
    CHECK_OK(g.device->ops->queues->finish(g.device, NULL));
    check_death(g.nccl->ops->wait(g.nccl, NULL), start);
    gpu_close(&g);
}

TEST(a_peer_killed_while_the_stream_is_waited_for) {
    int status[2];
    ranks_fork(2, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_in_stream_rank, NULL, status);
    CHECK_INT(status[0], 0);
}

/* As a_peer_killed_in_an_all_reduce, in the third run of a graph: the survivors are told while their graphs are there,
 * which NCCL's abort waits for, then free them, and nothing is left. */
static void killed_in_replay_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    tdm_capture *capture = gpu_capture(&g, 1);
    for (int i = 0; i < 2; i++) {
        gpu_put(&g, 1);
        CHECK_OK(g.device->ops->captures->run(g.device, capture));
        CHECK_OK(g.nccl->ops->wait(g.nccl, NULL));
        gpu_check(&g, (float)c->world);
    }
    ranks_meet(c, c->world); /* all have their first sums */
    int64_t start = tdm__now_ns();
    if (c->rank == 2) {
        gpu_nap(200); /* in most runs the others wait by then */
        kill(c->pids[1], SIGKILL);
        gpu_nap(200);
    }
    CHECK_OK(g.device->ops->captures->run(g.device, capture));
    check_death(g.nccl->ops->wait(g.nccl, NULL), start);
    start = tdm__now_ns();
    CHECK_INT(gpu_keepers(1), 1);
    CHECK_OK(g.device->ops->queues->finish(g.device, NULL));
    g.device->ops->captures->free(g.device, capture);
    gpu_close(&g);
    CHECK(tdm__ms_since(start) < SOON_MS);
    CHECK_INT(gpu_keepers(0), 0);
}

TEST(a_peer_killed_in_a_replay) {
    int status[4];
    ranks_fork(4, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_in_replay_rank, NULL, status);
    for (int r = 0; r < 4; r++) {
        if (r == 1)
            CHECK(WIFSIGNALED(status[r]) && WTERMSIG(status[r]) == SIGKILL);
        else
            CHECK_INT(status[r], 0);
    }
}

static void killed_in_open_rank(rank_context *c) {
    gpu_rank g;
    int64_t start = tdm__now_ns();
    if (c->rank == 1) {
        setenv("FAKE_NCCL_HANG_INIT", "1", 1);
        alarm(1);
        signal(SIGALRM, SIG_DFL);
    }
    check_death(gpu_open(&g, c, c->rank, TIMEOUT_MS), start);
    gpu_close(&g);
}

TEST(a_peer_killed_while_nccl_is_opened) {
    int status[3];
    ranks_fork(3, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_in_open_rank, NULL, status);
    CHECK(WIFSIGNALED(status[1]));
    CHECK_INT(status[0], 0);
    CHECK_INT(status[2], 0);
}

static void stopped_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, LIMIT_MS));
    gpu_put(&g, 1);
    if (c->rank == 1) {
        raise(SIGSTOP);
    } else {
        CHECK_STATUS(gpu_reduce_and_wait(&g), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(),
                  "all_reduce (call 1, 1000 f32, sum): rank 0: waited 4000 ms for it to end on cuda:0");
        kill(c->pids[1], SIGCONT);
    }
    /* What rank 0 had sent before it gave up may still be taken. */
    tdm_status status = TDM_OK;
    for (int i = 0; i < 3 && status == TDM_OK; i++) status = gpu_reduce_and_wait(&g);
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(),
              "rank 0: all_reduce (call 1, 1000 f32, sum): waited 4000 ms for it to end on cuda:0");
    gpu_close(&g);
}

TEST(a_peer_that_is_stopped) {
    int status[2];
    ranks_fork(2, TIMEOUT_MS, TIMEOUT_MS, stopped_rank, NULL, status); /* the heartbeat would find it, too */
    CHECK_INT(status[0], 0);
    CHECK_INT(status[1], 0);
}

/* A heartbeat below the timeout: the control plane finds it. */
static void frozen_rank(rank_context *c) {
    gpu_rank g;
    REQUIRE_OK(gpu_open(&g, c, c->rank, TIMEOUT_MS));
    gpu_put(&g, 1);
    if (c->rank == 1) raise(SIGSTOP);
    tdm_status status = TDM_OK; /* what rank 0 had sent before may still be taken */
    for (int i = 0; i < 3 && status == TDM_OK; i++) status = gpu_reduce_and_wait(&g);
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), ": rank 1 (pid ");
    CHECK_HAS(tdm_error_message(), "has not been heard of for ");
    if (c->rank == 0) kill(c->pids[1], SIGCONT);
    gpu_close(&g);
}

TEST(a_peer_without_a_sign_of_life) {
    int status[2];
    ranks_fork(2, TIMEOUT_MS, 2000, frozen_rank, NULL, status);
    CHECK_INT(status[0], 0);
    CHECK_INT(status[1], 0);
}

/* ---- what is agreed first ---- */

typedef struct refusal {
    const char *variable[2]; /* of rank 0, of rank 1: "NAME=value" */
    int device[2];
    tdm_status status;
    const char *sentence;
} refusal;

static void refused_rank(rank_context *c) {
    const refusal *r = c->user;
    gpu_rank g;
    if (r->variable[c->rank] != NULL) putenv((char *)(uintptr_t)r->variable[c->rank]);
    CHECK_STATUS(gpu_open(&g, c, r->device[c->rank], TIMEOUT_MS), r->status);
    CHECK_HAS(tdm_error_message(), r->sentence);
    /* Refused together, before anything began: the ranks may go on without NCCL. */
    CHECK_OK(tdm_comm_barrier(c->comm));
    gpu_close(&g);
}

TEST(ranks_that_do_not_fit_together) {
    const refusal all[] = {
        {{NULL, NULL},
         {0, 0},
         TDM_E_DEVICE,
         "nccl: cuda:0 of rank 0 and cuda:0 of rank 1 are one GPU, and NCCL 2.30.7 allows one rank per GPU; give each "
         "rank its own GPU, or set parallel.ddp.backend: shm (or try NCCL_MULTI_RANK_GPU_ENABLE=1"},
        {{"NCCL_HOSTID=a", "NCCL_HOSTID=a"},
         {0, 0},
         TDM_E_DEVICE,
         "nccl: cuda:0 of rank 0 and cuda:0 of rank 1 are one GPU"},
        {{NULL, "NCCL_MULTI_RANK_GPU_ENABLE=1"},
         {1, 1},
         TDM_E_DEVICE,
         "nccl: cuda:1 of rank 0 and cuda:1 of rank 1 are one GPU"},
        {{NULL, "CUDA_EMULATED_FIRST=1"},
         {1, 0},
         TDM_E_DEVICE,
         "nccl: cuda:1 of rank 0 and cuda:0 of rank 1 are one GPU"},
        {{NULL, "FAKE_NCCL_VERSION=22703"},
         {0, 1},
         TDM_E_UNSUPPORTED,
         "nccl: ranks have different versions: rank 0 NCCL 2.30.7, rank 1 NCCL 2.27.3; make all ranks find the same "
         "libnccl.so.2 (TANDEM_CUDA_LIBRARIES)"},
        {{"NCCL_COMM_BLOCKING=1", NULL}, {0, 1}, TDM_E_USAGE, "nccl: rank 0: NCCL_COMM_BLOCKING=1 is set"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        refusal one = all[i];
        run(2, refused_rank, &one);
    }
}

/* Parts of a GPU, which are GPUs of their own to CUDA and to tandem, and one to NCCL. */
static void twins_rank(rank_context *c) {
    gpu_rank g;
    const bool is_old = *(bool *)c->user;
    if (is_old) setenv("FAKE_NCCL_VERSION", "22703", 1);
    setenv("CUDA_EMULATED_PART", c->rank == 0 ? "1" : "2", 1);
    tdm_status status = gpu_open(&g, c, 0, TIMEOUT_MS); /* who has not found it first is told */
    CHECK(status == TDM_E_DEVICE || status == TDM_E_COMM);
    CHECK_HAS(tdm_error_message(),
              is_old ? "NCCL allows one rank per GPU, and another rank uses cuda:0, too (Duplicate GPU detected"
                     : "another rank uses cuda:0, too (Multiple Ranks are using the same GPU/Partition");
    CHECK_HAS(tdm_error_message(), "give each rank its own GPU, or set parallel.ddp.backend: shm");
    gpu_close(&g);
}

TEST(two_parts_of_one_gpu) {
    run(2, twins_rank, &(bool){false});
    run(2, twins_rank, &(bool){true});
}

/* As in containers, and under schedulers that show each rank its own GPU alone. */
static void rank_with_one_gpu(rank_context *c) {
    gpu_rank g;
    setenv("CUDA_EMULATED_FIRST", c->rank == 0 ? "0" : "1", 1);
    REQUIRE_OK(gpu_open(&g, c, 0, TIMEOUT_MS));
    gpu_put(&g, 2);
    CHECK_OK(gpu_reduce_and_wait(&g));
    gpu_check(&g, 4);
    gpu_close(&g);
}

TEST(each_rank_calls_its_gpu_the_first) {
    run(2, rank_with_one_gpu, NULL);
}

/* Each host counts its GPUs from 0. */
static void rank_of_another_host(rank_context *c) {
    gpu_rank g;
    setenv("NCCL_HOSTID", c->rank < 2 ? "a" : "b", 1);
    REQUIRE_OK(gpu_open(&g, c, c->rank % 2, TIMEOUT_MS));
    gpu_put(&g, (float)(1 << c->rank));
    CHECK_OK(gpu_reduce_and_wait(&g));
    gpu_check(&g, 15);
    gpu_close(&g);
}

TEST(two_hosts_with_two_gpus_each) {
    run(4, rank_of_another_host, NULL);
}

static void sharing_rank(rank_context *c) {
    gpu_rank g;
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    REQUIRE_OK(gpu_open(&g, c, 0, TIMEOUT_MS));
    gpu_put(&g, 2);
    CHECK_OK(gpu_reduce_and_wait(&g));
    gpu_check(&g, 4);
    gpu_close(&g);
}

TEST(ranks_that_share_a_gpu) {
    run(2, sharing_rank, NULL);
}

TEST_MAIN({
    RUN(a_peer_killed_in_an_all_reduce);
    RUN(a_peer_killed_while_the_stream_is_waited_for);
    RUN(a_peer_killed_in_a_replay);
    RUN(a_peer_killed_while_nccl_is_opened);
    RUN(a_peer_that_is_stopped);
    RUN(a_peer_without_a_sign_of_life);
    RUN(ranks_that_do_not_fit_together);
    RUN(two_parts_of_one_gpu);
    RUN(each_rank_calls_its_gpu_the_first);
    RUN(two_hosts_with_two_gpus_each);
    RUN(ranks_that_share_a_gpu);
})
