/* The meeting of as many ranks as a job can have, here threads, each of which is one rank; and one that fails. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/meeting/hello.h"
#include "tests/support/tdm_test.h"

enum { WORLD = TDM_COMM_WORLD_MAX, TIMEOUT_MS = 120000, STACK = 256 * 1024 };

typedef struct guest {
    pthread_t thread;
    tdm_meeting meeting;
    tdm_status status;
    char error[500];
    int fd[WORLD];
    tdm_peer peer[WORLD];
} guest;

static void *attend(void *argument) {
    guest *g = argument;
    g->status = g->meeting.rank == 0 ? tdm__meeting_hold(&g->meeting) : tdm__meeting_join(&g->meeting);
    snprintf(g->error, sizeof(g->error), "%s", g->status == TDM_OK ? "" : tdm_error_message());
    return NULL;
}

static void check_guest(const guest *g) {
    CHECK_INT(g->status, TDM_OK);
    for (int r = 0; r < WORLD; r++) {
        if (g->peer[r].token != (uint64_t)r + 1) CHECK_INT(g->peer[r].token, r + 1);
        const bool has_line = g->meeting.rank == 0 ? r > 0 : r == 0;
        if ((g->fd[r] >= 0) != has_line) CHECK_INT(g->fd[r], has_line);
    }
}

TEST(as_many_ranks_as_there_can_be_meet) {
    guest *all = calloc(WORLD, sizeof(*all));
    tdm_endpoint at = {.host = "127.0.0.1"};
    pthread_attr_t attributes;
    int listener;
    REQUIRE(all != NULL);
    REQUIRE_OK(tdm__socket_listen(&listener, &at));
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (int r = WORLD - 1; r >= 0; r--) { /* rank 0 comes last: the others must be let wait */
        guest *g = &all[r];
        g->meeting = (tdm_meeting){.host = tdm_host_default(),
                                   .rank = r,
                                   .world = WORLD,
                                   .job = 1,
                                   .at = at,
                                   .listener = r == 0 ? listener : -1,
                                   .timeout_ms = TIMEOUT_MS,
                                   .heartbeat_ms = TIMEOUT_MS,
                                   .fd = g->fd,
                                   .peer = g->peer};
        for (int i = 0; i < WORLD; i++) g->fd[i] = -1;
        g->peer[r].token = (uint64_t)r + 1;
        REQUIRE(pthread_create(&g->thread, &attributes, attend, g) == 0);
    }
    for (int r = 0; r < WORLD; r++) pthread_join(all[r].thread, NULL);
    for (int r = 0; r < WORLD; r++) check_guest(&all[r]);
    for (int r = 0; r < WORLD; r++)
        for (int i = 0; i < WORLD; i++)
            if (all[r].fd[i] >= 0) close(all[r].fd[i]);
    pthread_attr_destroy(&attributes);
    close(listener);
    free(all);
}

/* ---- who has come is told of a failure at once ---- */

enum { FEW = 4 };

static tdm_meeting meeting_of(guest *g, int rank, tdm_endpoint at) {
    for (int i = 0; i < FEW; i++) g->fd[i] = -1;
    return (tdm_meeting){.host = tdm_host_default(),
                         .rank = rank,
                         .world = FEW,
                         .job = 1,
                         .at = at,
                         .listener = -1,
                         .timeout_ms = TIMEOUT_MS,
                         .heartbeat_ms = TIMEOUT_MS,
                         .fd = g->fd,
                         .peer = g->peer};
}

static void hold_elsewhere(pid_t *root, guest *g, tdm_endpoint at, int listener) {
    *root = fork();
    REQUIRE(*root >= 0);
    if (*root != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    g->meeting = meeting_of(g, 0, at);
    g->meeting.listener = listener;
    (void)tdm__meeting_hold(&g->meeting);
    _exit(0);
}

static void next_answer(int fd, const tdm_hosts_hello *hello, tdm_hosts_answer *answer) {
    const tdm_secret none = {.bytes = 0};
    REQUIRE(tdm__socket_read(fd, answer, sizeof(*answer), tdm__deadline_ns(tdm__now_ns(), TIMEOUT_MS)));
    CHECK(tdm__answer_check(answer, hello, &none));
}

/* How the meeting ended; not who was missing until then. */
static void last_answer(int fd, const tdm_hosts_hello *hello, tdm_hosts_answer *answer) {
    do next_answer(fd, hello, answer);
    while (answer->status == TDM_OK && answer->text[0] != '\0');
}

/* A rank comes, by hand: returns when rank 0 has admitted it. */
static void come(int *fd, tdm_hosts_hello *hello, int rank, const tdm_endpoint *at) {
    char why[160];
    tdm_challenge challenge;
    tdm_hosts_answer answer;
    const tdm_secret none = {.bytes = 0};
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), TIMEOUT_MS);
    *hello = (tdm_hosts_hello){.job = 1, .rank = rank, .world = FEW};
    REQUIRE_OK(tdm__socket_connect(fd, at, TIMEOUT_MS, why, sizeof(why)));
    REQUIRE(*fd >= 0 && tdm__socket_read(*fd, &challenge, sizeof(challenge), deadline));
    tdm__hello_sign(hello, &challenge, &none);
    REQUIRE(tdm__socket_write(*fd, hello, sizeof(*hello), deadline));
    next_answer(*fd, hello, &answer);
    CHECK_TEXT(answer.text, "");
}

/* Rank 3 never comes, and rank 0 is killed as soon as rank 1 has said that it failed: its launcher does that. */
TEST(who_has_come_is_told_of_a_failure_before_who_has_failed) {
    guest *all = calloc(2, sizeof(*all));
    tdm_endpoint at = {.host = "127.0.0.1"};
    tdm_hosts_hello hello;
    tdm_hosts_answer answer;
    int listener, fd;
    REQUIRE(all != NULL);
    REQUIRE_OK(tdm__socket_listen(&listener, &at));
    pid_t root;
    hold_elsewhere(&root, &all[0], at, listener);
    come(&fd, &hello, 2, &at);
    all[1].meeting = meeting_of(&all[1], 1, at);
    all[1].meeting.failure = "it was lost";
    CHECK_STATUS(tdm__meeting_join(&all[1].meeting), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1 has failed: it was lost");
    CHECK(kill(root, SIGKILL) == 0 && waitpid(root, NULL, 0) == root);
    last_answer(fd, &hello, &answer);
    CHECK_INT(answer.status, TDM_E_COMM);
    CHECK_TEXT(answer.text, "rank 1 has failed: it was lost");
    close(fd);
    close(all[1].fd[0]);
    close(listener);
    free(all);
}

/* Rank 3 never comes, which rank 0 tells the others; then its launcher ends rank 0, too. */
TEST(who_has_come_knows_who_was_missing_when_rank_0_ends) {
    guest *all = calloc(2, sizeof(*all));
    tdm_endpoint at = {.host = "127.0.0.1"};
    tdm_hosts_hello hello;
    tdm_hosts_answer answer;
    pid_t root;
    int listener, fd;
    REQUIRE(all != NULL);
    REQUIRE_OK(tdm__socket_listen(&listener, &at));
    hold_elsewhere(&root, &all[0], at, listener);
    come(&fd, &hello, 2, &at);
    next_answer(fd, &hello, &answer);
    CHECK_INT(answer.status, TDM_OK);
    CHECK_TEXT(answer.text, "ranks 1, 3 had not come");
    all[1].meeting = meeting_of(&all[1], 1, at);
    REQUIRE(pthread_create(&all[1].thread, NULL, attend, &all[1]) == 0);
    next_answer(fd, &hello, &answer); /* rank 1 has been told before */
    CHECK_TEXT(answer.text, "rank 3 had not come");
    CHECK(kill(root, SIGKILL) == 0 && waitpid(root, NULL, 0) == root);
    close(listener);
    pthread_join(all[1].thread, NULL);
    CHECK_STATUS(all[1].status, TDM_E_COMM);
    CHECK_HAS(all[1].error, "rank 0 is gone; rank 3 had not come");
    close(fd);
    close(all[1].fd[0]);
    free(all);
}

/* A launcher ends all ranks of its host when one of them has died. */
TEST(who_is_gone_is_told_with_who_was_missing) {
    guest *all = calloc(1, sizeof(*all));
    tdm_endpoint at = {.host = "127.0.0.1"};
    tdm_hosts_hello first, second;
    tdm_hosts_answer answer;
    pid_t root;
    int listener, one, two;
    REQUIRE(all != NULL);
    REQUIRE_OK(tdm__socket_listen(&listener, &at));
    hold_elsewhere(&root, &all[0], at, listener);
    come(&one, &first, 1, &at);
    come(&two, &second, 2, &at);
    close(two);
    last_answer(one, &first, &answer);
    CHECK_INT(answer.status, TDM_E_COMM);
    CHECK_TEXT(answer.text, "rank 2 (host , pid 0) is gone; rank 3 had not come");
    CHECK(kill(root, SIGKILL) == 0 && waitpid(root, NULL, 0) == root);
    close(one);
    close(listener);
    free(all);
}

TEST_MAIN({
    RUN(as_many_ranks_as_there_can_be_meet);
    RUN(who_has_come_is_told_of_a_failure_before_who_has_failed);
    RUN(who_has_come_knows_who_was_missing_when_rank_0_ends);
    RUN(who_is_gone_is_told_with_who_was_missing);
})
