/* What the gloo module must bear of its peers before it is connected to them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/sys/module.h>
#include <tandem/sys/transport.h>

#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

enum { TIMEOUT_MS = 3000, TRIALS = 4 };

static const tdm_transport_ops *gloo;

/* What the two processes tell each other: the test, as rank 1, and the one that waits, as rank 0. */
typedef struct told {
    _Atomic int is_known, is_open;                /* of_peer; addresses */
    unsigned char of_peer[1024], addresses[1024]; /* as `open` wrote them */
    tdm_status status;                            /* of `connect`, or of the first message */
    char message[256];
    pid_t pid; /* of the one that waits */
} told;

static void open_rank(tdm_transport **out, int rank, const char *interface, unsigned char *addresses) {
    REQUIRE(2 * gloo->address_bytes <= sizeof(((told *)0)->addresses));
    REQUIRE_OK(gloo->open(out, tdm_host_default(), rank, 2, interface, TIMEOUT_MS, 0, addresses));
}

static tdm_status receive_one(tdm_transport *transport) {
    unsigned char byte;
    int lost;
    return gloo->exchange(transport, &(tdm_message){.peer = 1, .tag = 1, .data = &byte, .bytes = 1}, 1, &lost);
}

/* Rank 0, whose address is the smaller one: it waits for rank 1's connection. */
static void wait_for_peer(told *t) {
    unsigned char addresses[sizeof(t->addresses)] = {0};
    tdm_transport *transport;
    while (t->is_known == 0) usleep(1000);
    open_rank(&transport, 0, "127.0.0.1", t->addresses);
    memcpy(addresses + gloo->address_bytes, t->of_peer, gloo->address_bytes);
    t->is_open = 1;
    t->status = gloo->connect(transport, addresses);
    /* Gloo's thread may have looked once, and not yet read: then the first message fails. */
    if (t->status == TDM_OK) t->status = receive_one(transport);
    snprintf(t->message, sizeof(t->message), "%s", tdm_error_message());
    gloo->close(transport);
    exit(0);
}

/* An address is its length and Gloo's bytes, which begin with the socket's. */
static struct sockaddr_in address_of(const unsigned char *addresses) {
    struct sockaddr_in address;
    memcpy(&address, addresses + gloo->address_bytes + sizeof(uint32_t), sizeof(address));
    return address;
}

/* The connection is there and reset before the process can look at it, because it is stopped. */
static void connect_and_die(pid_t pid, const struct sockaddr_in *to) {
    const struct linger reset = {.l_onoff = 1};
    int wait_status;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && kill(pid, SIGSTOP) == 0);
    REQUIRE(waitpid(pid, &wait_status, WUNTRACED) == pid && WIFSTOPPED(wait_status));
    CHECK_INT(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(fd);
    CHECK_INT(kill(pid, SIGCONT), 0);
}

/* Before this process has threads: one of Gloo's might hold a lock of the allocator meanwhile, and the new process would
 * wait for it for ever. */
static void start_waiting(told **out) {
    told *t = *out = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(t != MAP_FAILED);
    fflush(NULL);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) wait_for_peer(t);
    t->pid = pid;
}

static void try_one(told *t, const unsigned char *of_peer) {
    int wait_status = 0;
    memcpy(t->of_peer, of_peer, sizeof(t->of_peer));
    t->is_known = 1;
    while (t->is_open == 0 && waitpid(t->pid, &wait_status, WNOHANG) == 0) usleep(1000);
    REQUIRE(t->is_open != 0);
    const struct sockaddr_in to = address_of(t->addresses);
    connect_and_die(t->pid, &to);
    CHECK(waitpid(t->pid, &wait_status, 0) == t->pid);
    CHECK_INT(wait_status, 0);
    if (wait_status == 0) {
        CHECK_INT(t->status, TDM_E_COMM);
        CHECK_HAS(t->message, "gloo: ");
    }
    munmap(t, sizeof(*t));
}

TEST(a_peer_that_dies_as_soon_as_it_is_connected_is_a_failure_not_an_end) {
    tdm_transport *peer;
    unsigned char of_peer[1024] = {0};
    told *t[TRIALS];
    for (int i = 0; i < TRIALS; i++) start_waiting(&t[i]);
    open_rank(&peer, 1, "127.0.0.2", of_peer);
    for (int i = 0; i < TRIALS; i++) try_one(t[i], of_peer);
    gloo->close(peer);
}

static bool find_gloo(void) {
    const tdm_module *module;
    tdm_module_report report;
    if (tdm__module_find(&module, tdm_host_default(), "gloo", NULL, &report) != TDM_OK || module == NULL) return false;
    gloo = module->transport;
    return true;
}

TEST_MAIN(if (!find_gloo()) return 1; RUN(a_peer_that_dies_as_soon_as_it_is_connected_is_a_failure_not_an_end);)
