/* What mpi_links.c sees of connections: here those of this process with itself, as if each address of 127.0.0.0/8 were
 * a host. */
#include "runtime/backends/mpi/mpi_links.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/backends/kit/module_host.h"
#include "tests/support/tdm_test.h"

enum { WORLD = 3, SILENCE_MS = 3600000, LOOKS = 100 };

void *tdm__module_new(const tdm_host *host, size_t bytes) {
    (void)host;
    return calloc(1, bytes);
}

void tdm__module_delete(void *pointer) {
    free(pointer);
}

/* Rank r's host is 127.0.0.(r + 1), written as an address of IPv6; this one is rank 0. Takes the place of MPI's. */
int MPI_Allgather(const void *send, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm) {
    (void)send, (void)count, (void)type, (void)out_type, (void)comm;
    for (int r = 0; r < WORLD; r++) {
        char text[32];
        snprintf(text, sizeof(text), "::ffff:127.0.0.%d", r + 1);
        memset((char *)out + r * out_count, 0, (size_t)out_count);
        CHECK_INT(inet_pton(AF_INET6, text, (char *)out + r * out_count), 1);
    }
    return MPI_SUCCESS;
}

int MPI_Allreduce(const void *send, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    (void)count, (void)type, (void)op, (void)comm;
    memcpy(out, send, sizeof(int));
    return MPI_SUCCESS;
}

/* Connects this host with another one. */
static void connect_with(int rank, int fd[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)rank)};
    socklen_t bytes = sizeof(at);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(listener >= 0 && fd[0] >= 0);
    REQUIRE(bind(listener, (const struct sockaddr *)&at, bytes) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&at, &bytes) == 0);
    REQUIRE(connect(fd[0], (const struct sockaddr *)&at, bytes) == 0);
    fd[1] = accept(listener, NULL, NULL);
    REQUIRE(fd[1] >= 0);
    close(listener);
}

static int find_lost(mpi_links *links, int waits_for) {
    bool is_waited_for[WORLD] = {false};
    int lost = -1;
    is_waited_for[waits_for] = true;
    for (int i = 0; i < LOOKS && lost < 0; i++) {
        lost = tdm__mpi_links_lost(links, is_waited_for);
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000L}, NULL);
    }
    return lost;
}

/* Its rank waits for the first time after the connections are gone. Of rank 1 a message had come; rank 2 may not have
 * been connected yet. */
TEST(a_connection_that_was_reset_before_the_first_wait_is_missed) {
    int one[2], two[2];
    mpi_links *links = tdm__mpi_links_open(tdm_host_default(), MPI_COMM_NULL, 0, WORLD, SILENCE_MS);
    REQUIRE(links != NULL);
    connect_with(1, one);
    connect_with(2, two);
    tdm__mpi_links_heard(links, 1);
    close(two[0]); /* of rank 2 nothing has come, so it is not looked for */
    tdm__mpi_links_see(links);
    close(one[0]);
    CHECK_INT(find_lost(links, 2), -1);
    CHECK_INT(find_lost(links, 1), 1);
    close(one[1]);
    close(two[1]);
    tdm__mpi_links_close(links);
}

TEST(a_connection_that_is_there_is_not_missed) {
    int one[2];
    mpi_links *links = tdm__mpi_links_open(tdm_host_default(), MPI_COMM_NULL, 0, WORLD, SILENCE_MS);
    REQUIRE(links != NULL);
    connect_with(1, one);
    tdm__mpi_links_heard(links, 1);
    tdm__mpi_links_see(links);
    CHECK_INT(find_lost(links, 1), -1);
    close(one[0]);
    close(one[1]);
    tdm__mpi_links_close(links);
}

TEST_MAIN({
    RUN(a_connection_that_was_reset_before_the_first_wait_is_missed);
    RUN(a_connection_that_is_there_is_not_missed);
})
