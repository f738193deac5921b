/* A rank whose network is cut, without a network that can be: its connection to rank 0 goes through a proxy that stops
 * forwarding and stays open, and its transport then neither sends nor hears. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <tandem/comm.h>
#include <tandem/sys/module.h>
#include <tandem/sys/transport.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

/* TIMEOUT_MS: a test that ended by it would not end in time. */
enum { WORLD = 3, VICTIM = 2, TIMEOUT_MS = 300000, COUNT = 1000 };

typedef struct stage {
    atomic_bool is_cut;
    tdm_status status[WORLD];
    char message[WORLD][400];
} stage;

static stage *shared;
static char folder[] = "/tmp/tandem-test-XXXXXX";

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the proxy ---- */

static int connection(int port, bool listens) {
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool ok = listens ? bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 4) == 0
                            : connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
    return ok ? fd : -1;
}

static int port_of(int fd) {
    struct sockaddr_in at;
    socklen_t bytes = sizeof(at);
    return getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 ? ntohs(at.sin_port) : 0;
}

/* Where rank 0 can be met, with the port of `listener` instead of its own, which is returned. */
static int write_door(int listener) {
    char place[64], part[64], door[64], text[256] = "";
    int port = 0;
    FILE *file;
    snprintf(place, sizeof(place), "%s/place", folder);
    snprintf(part, sizeof(part), "%s/part", folder);
    snprintf(door, sizeof(door), "%s/door", folder);
    while ((file = fopen(place, "r")) == NULL) nap();
    (void)!fgets(text, sizeof(text), file);
    fclose(file);
    char *colon = strrchr(text, ':');
    if (colon == NULL || sscanf(colon, ":%d", &port) != 1 || (file = fopen(part, "w")) == NULL) return 0;
    fprintf(file, "%.*s:%d\n", (int)(colon - text), text, port_of(listener));
    fclose(file);
    return rename(part, door) == 0 ? port : 0;
}

static bool forward(int from, int to) {
    char data[4096];
    const ssize_t n = recv(from, data, sizeof(data), 0);
    return n > 0 && send(to, data, (size_t)n, MSG_NOSIGNAL) == n;
}

static void be_proxy(void) {
    const int listener = connection(0, true);
    const int port = write_door(listener);
    const int outer = accept(listener, NULL, NULL), inner = connection(port, false);
    bool goes_on = outer >= 0 && inner >= 0;
    while (goes_on && !atomic_load(&shared->is_cut)) {
        struct pollfd entry[] = {{.fd = outer, .events = POLLIN}, {.fd = inner, .events = POLLIN}};
        (void)poll(entry, 2, 1);
        if (entry[0].revents != 0) goes_on = forward(outer, inner);
        if (entry[1].revents != 0 && goes_on) goes_on = forward(inner, outer);
    }
    for (;;) pause(); /* until it is killed: both connections stay open */
}

/* ---- a transport over a network that is cut ---- */

static const tdm_transport_ops *gloo;
static tdm_transport_ops cut;
static atomic_bool is_aborted;

static tdm_status open_cut(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                           int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    const tdm_status status = gloo->open(out, host, rank, world, interface, timeout_ms, silence_ms, addresses);
    if (status == TDM_OK) (*out)->ops = &cut;
    return status;
}

static void begin(tdm_transport *transport, const tdm_message *message, int count) {
    if (!atomic_load(&shared->is_cut)) gloo->begin(transport, message, count);
}

static tdm_status exchange(tdm_transport *transport, const tdm_message *message, int count, int *lost) {
    if (!atomic_load(&shared->is_cut)) return gloo->exchange(transport, message, count, lost);
    while (!atomic_load(&is_aborted)) nap();
    *lost = -1;
    return tdm__fail(TDM_E_COMM, __FILE__, __LINE__, NULL, "the network is cut");
}

static void abort_cut(tdm_transport *transport) {
    atomic_store(&is_aborted, true);
    gloo->abort(transport);
}

/* ---- the ranks ---- */

static void call_until_the_end(tdm_comm *comm, int rank) {
    float x[COUNT] = {0};
    for (int i = 0; shared->status[rank] == TDM_OK; i++) {
        if (rank == VICTIM && i == 20) atomic_store(&shared->is_cut, true);
        shared->status[rank] = tdm_comm_all_reduce(comm, (tdm_span){x, COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
    }
}

static void be_rank(int rank) {
    char place[80];
    tdm_comm *comm;
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    const tdm_launch_facts facts = {
        .size = sizeof(facts), .source = TDM_LAUNCH_TORCHRUN, .rank = rank, .world = WORLD, .local_world = 1, .fd = -1};
    snprintf(place, sizeof(place), "file://%s/%s", folder, rank == VICTIM ? "door" : "place");
    options.init_method = place;
    options.interface = "lo";
    options.timeout_ms = TIMEOUT_MS;
    options.host = tdm_host_default();
    shared->status[rank] = tdm__hosts_open(&comm, rank == VICTIM ? &cut : gloo, &facts, &options);
    if (comm != NULL) call_until_the_end(comm, rank);
    snprintf(shared->message[rank], sizeof(shared->message[rank]), "%s", tdm_error_message());
    tdm_comm_close(comm);
}

static pid_t start(void (*work)(int), int rank) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (work != NULL)
        work(rank);
    else
        be_proxy();
    _exit(0);
}

TEST(a_rank_whose_network_is_cut_is_named) {
    const tdm_module *module;
    tdm_module_report report;
    pid_t pid[WORLD];
    char door[64], name[64];
    REQUIRE_OK(tdm__module_find(&module, tdm_host_default(), "gloo", NULL, &report));
    REQUIRE(module != NULL && mkdtemp(folder) != NULL);
    gloo = module->transport;
    cut = *gloo;
    cut.open = open_cut;
    cut.begin = begin;
    cut.exchange = exchange;
    cut.abort = abort_cut;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    const pid_t proxy = start(NULL, 0);
    for (int r = 0; r < WORLD; r++) pid[r] = start(be_rank, r);
    for (int r = 0; r < WORLD; r++) CHECK(waitpid(pid[r], NULL, 0) == pid[r]);
    CHECK(kill(proxy, SIGKILL) == 0 && waitpid(proxy, NULL, 0) == proxy);
    for (int r = 0; r < WORLD; r++) {
        const int lost = r == VICTIM ? 0 : VICTIM;
        snprintf(name, sizeof(name), ", pid %d) has not been heard of for ", (int)pid[lost]);
        CHECK_INT(shared->status[r], TDM_E_COMM);
        CHECK_HAS(shared->message[r], lost == 0 ? "rank 0 (host " : "rank 2 (host ");
        CHECK_HAS(shared->message[r], name);
        CHECK_HAS(shared->message[r], "or its network is cut");
    }
    snprintf(door, sizeof(door), "%s/door", folder);
    CHECK(unlink(door) == 0 && rmdir(folder) == 0);
}

TEST_MAIN({ RUN(a_rank_whose_network_is_cut_is_named); })
