/* The meeting of as many ranks as a job can have; here threads, each of which is one rank. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/comm/comm.h"
#include "runtime/comm/meeting/meeting.h"
#include "tests/support/tdm_test.h"

enum { WORLD = TDM_COMM_WORLD_MAX, TIMEOUT_MS = 120000, STACK = 256 * 1024 };

typedef struct guest {
    pthread_t thread;
    tdm_meeting meeting;
    tdm_status status;
    int fd[WORLD];
    tdm_peer peer[WORLD];
} guest;

static void *attend(void *argument) {
    guest *g = argument;
    g->status = g->meeting.rank == 0 ? tdm__meeting_hold(&g->meeting) : tdm__meeting_join(&g->meeting);
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

TEST_MAIN(RUN(as_many_ranks_as_there_can_be_meet);)
