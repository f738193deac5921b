/* Connections between hosts: what the kernel does that a caller would not expect. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/comm/meeting/socket.h"
#include "tests/support/tdm_test.h"

/* ATTEMPTS: the kernel goes through its ports in small steps of random size, and comes to the wanted one several times. */
enum { ATTEMPTS = 150000, LONG_MS = 60000 };

/* A port that the kernel gives to sockets that connect, at which nobody listens. */
static int free_port(void) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, ours = {0};
    socklen_t bytes = sizeof(there);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&there, sizeof(there)) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&there, &bytes) == 0 &&
        connect(visitor, (struct sockaddr *)&there, sizeof(there)) == 0)
        (void)getsockname(visitor, (struct sockaddr *)&ours, &bytes);
    /* The listener's end of the connection goes first, and so keeps the port of the visitor free of TIME_WAIT. */
    close(listener);
    close(visitor);
    return ntohs(ours.sin_port);
}

static bool is_own(int fd) {
    struct sockaddr_in ours = {0}, theirs = {0};
    socklen_t bytes = sizeof(ours);
    return getsockname(fd, (struct sockaddr *)&ours, &bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &bytes) == 0 && ours.sin_port == theirs.sin_port;
}

/* A rank tries again and again to connect to a port at which another will listen. It must not take that port. */
TEST(never_to_itself) {
    char why[100] = "";
    int fd = -1;
    const tdm_endpoint at = {.host = "127.0.0.1", .port = free_port()};
    REQUIRE(at.port != 0);
    for (int i = 0; i < ATTEMPTS && fd < 0; i += TDM_EVERY(10))
        REQUIRE_OK(tdm__socket_connect(&fd, &at, LONG_MS, why, sizeof(why)));
    CHECK(fd < 0 || !is_own(fd)); /* another program may have begun to listen there */
    if (fd < 0) CHECK_TEXT(why, "Connection refused");
    if (fd >= 0) close(fd);
}

TEST_MAIN(RUN(never_to_itself);)
