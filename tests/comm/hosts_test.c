/* What is special between hosts: the meeting, its secret, strangers at the port, and ends. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tandem/comm.h>
#include <tandem/sys/module.h>
#include <tandem/sys/transport.h>

#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "runtime/comm/meeting/secret.h"
#include "runtime/comm/meeting/socket.h"
#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

/* LIMIT_MS is for tests that end by it: a machine may stand still for seconds. */
enum { TIMEOUT_MS = 30000, LIMIT_MS = 4000, RANKS_MAX = 4 };

/* A meeting of processes, each of which is told how it should be. */
typedef struct party party;
struct party {
    int world, timeout_ms;
    const char *secret[RANKS_MAX]; /* NULL: none */
    int claims_world[RANKS_MAX];   /* 0: the right one */
    const char *job[RANKS_MAX];    /* NULL: "job" */
    bool stays_away[RANKS_MAX];
    int gives_up_ms[RANKS_MAX]; /* 0: timeout_ms */
    void (*work)(tdm_comm *comm, int rank);
    void (*after_root)(const party *p); /* comes when rank 0 has started and the others have not; NULL: nothing */
    const tdm_transport_ops *transport; /* NULL: gloo's */
    char folder[64];
};

/* What became of a rank. */
typedef struct outcome {
    tdm_status status;
    int wait_status; /* 0: it ended well; else it may have been killed */
    char message[400];
    char backend[8];
} outcome;

static void attend(const party *p, int rank, outcome *out) {
    char place[128];
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    tdm_launch_facts facts = {.size = sizeof(facts),
                              .source = TDM_LAUNCH_TORCHRUN,
                              .rank = rank,
                              .world = p->claims_world[rank] != 0 ? p->claims_world[rank] : p->world,
                              .local_world = 1,
                              .fd = -1};
    tdm_comm *comm;
    snprintf(facts.job, sizeof(facts.job), "%s", p->job[rank] != NULL ? p->job[rank] : "job");
    snprintf(place, sizeof(place), "file://%s/place", p->folder);
    if (p->secret[rank] != NULL) setenv("TANDEM_SECRET", p->secret[rank], 1);
    options.init_method = place;
    options.interface = "lo";
    options.timeout_ms = p->gives_up_ms[rank] != 0 ? p->gives_up_ms[rank] : p->timeout_ms;
    options.host = tdm_host_default();
    out->status = p->transport != NULL ? tdm__hosts_open(&comm, p->transport, &facts, &options)
                                       : tdm_comm_open_hosts(&comm, &facts, &options);
    snprintf(out->message, sizeof(out->message), "%s", out->status != TDM_OK ? tdm_error_message() : "");
    if (comm == NULL) return;
    snprintf(out->backend, sizeof(out->backend), "%s", tdm_comm_backend(comm));
    if (p->work != NULL) p->work(comm, rank);
    tdm_comm_close(comm);
}

static void hold(party *p, outcome **result) {
    outcome *out = *result =
        mmap(NULL, RANKS_MAX * sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[RANKS_MAX];
    REQUIRE(out != MAP_FAILED);
    if (p->timeout_ms == 0) p->timeout_ms = TIMEOUT_MS;
    snprintf(p->folder, sizeof(p->folder), "/tmp/tandem-test-XXXXXX");
    REQUIRE(mkdtemp(p->folder) != NULL);
    fflush(NULL);
    for (int r = 0; r < p->world; r++) {
        if (r == 1 && p->after_root != NULL) p->after_root(p);
        pid[r] = fork();
        REQUIRE(pid[r] >= 0);
        if (pid[r] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        tdm_test_failures = 0;
        if (!p->stays_away[r]) attend(p, r, &out[r]);
        fflush(stderr);
        _exit(tdm_test_failures != 0);
    }
    for (int r = 0; r < p->world; r++) {
        int wait_status;
        CHECK(waitpid(pid[r], &wait_status, 0) == pid[r]);
        CHECK(WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) == SIGKILL : WEXITSTATUS(wait_status) == 0);
        out[r].wait_status = wait_status;
    }
    CHECK(rmdir(p->folder) == 0); /* rank 0 has taken its file away */
}

/* ---- the secret ---- */

static void check_mac(const char *key, const char *data, const char *wanted) {
    tdm_secret secret = {.bytes = strlen(key)};
    unsigned char mac[TDM_MAC_BYTES];
    char text[2 * TDM_MAC_BYTES + 1];
    memcpy(secret.key, key, secret.bytes);
    const tdm_mac_part parts[] = {{data, 1}, {data + 1, strlen(data) - 1}};
    tdm__mac(mac, &secret, parts, 2);
    for (int i = 0; i < TDM_MAC_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", mac[i]);
    CHECK_TEXT(text, wanted);
}

/* RFC 4231, cases 1, 2 and 6. */
TEST(hmac_of_the_rfc) {
    char long_key[132];
    check_mac("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", "Hi There",
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_mac("Jefe", "what do ya want for nothing?",
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(long_key, 0xaa, 131);
    long_key[131] = '\0';
    check_mac(long_key, "Test Using Larger Than Block-Size Key - Hash Key First",
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(secrets_that_are_refused) {
    tdm_secret secret;
    char path[] = "/tmp/tandem-test-XXXXXX", blank[300];
    int fd = mkstemp(path);
    REQUIRE(fd >= 0 && write(fd, " k e y \n", 8) == 8);
    setenv("TANDEM_SECRET_FILE", path, 1);
    REQUIRE_OK(tdm__secret_read(&secret));
    CHECK(secret.bytes == 5 && memcmp(secret.key, "k e y", 5) == 0);
    chmod(path, 0640);
    CHECK_STATUS(tdm__secret_read(&secret), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "chmod 600");
    setenv("TANDEM_SECRET_FILE", "/tmp", 1);
    CHECK_STATUS(tdm__secret_read(&secret), TDM_E_USAGE);
    setenv("TANDEM_SECRET_FILE", "/tmp/tandem/none", 1);
    CHECK_STATUS(tdm__secret_read(&secret), TDM_E_USAGE);
    unsetenv("TANDEM_SECRET_FILE");
    memset(blank, 'x', sizeof(blank));
    blank[sizeof(blank) - 1] = '\0';
    setenv("TANDEM_SECRET", blank, 1);
    CHECK_STATUS(tdm__secret_read(&secret), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "1 to 256 bytes, got 299");
    setenv("TANDEM_SECRET", " \n", 1);
    CHECK_STATUS(tdm__secret_read(&secret), TDM_E_USAGE);
    unsetenv("TANDEM_SECRET");
    close(fd);
    unlink(path);
}

TEST(ranks_with_the_secret_meet) {
    party p = {.world = 3, .secret = {"open sesame", "open sesame", "open sesame"}};
    outcome *out;
    hold(&p, &out);
    for (int r = 0; r < 3; r++) {
        CHECK_INT(out[r].status, TDM_OK);
        CHECK_TEXT(out[r].backend, "gloo");
    }
}

TEST(a_rank_with_another_secret_stays_out) {
    party p = {.world = 2, .timeout_ms = LIMIT_MS, .secret = {"open sesame", "open barley"}};
    outcome *out;
    hold(&p, &out);
    CHECK_INT(out[0].status, TDM_E_COMM);
    CHECK_HAS(out[0].message, "rank 0 waited 4000 ms for rank 1");
    CHECK_INT(out[1].status, TDM_E_COMM);
    CHECK_HAS(out[1].message, "secret");
}

/* ---- who does not fit ---- */

TEST(ranks_that_are_missing_are_named) {
    party p = {.world = 4, .timeout_ms = LIMIT_MS, .stays_away = {false, true, false, true}};
    outcome *out;
    hold(&p, &out);
    CHECK_INT(out[0].status, TDM_E_COMM);
    CHECK_HAS(out[0].message, "rank 0 waited 4000 ms for ranks 1, 3");
    CHECK_INT(out[2].status, TDM_E_COMM);
}

TEST(another_number_of_ranks_is_told_to_all) {
    party p = {.world = 3, .claims_world = {0, 0, 5}};
    outcome *out;
    hold(&p, &out);
    for (int r = 0; r < 3; r++) {
        CHECK_INT(out[r].status, TDM_E_USAGE);
        CHECK_HAS(out[r].message, "rank 0 was started for 3 ranks, rank 2 for 5");
    }
}

/* A file of another job is none of this one's; and the other way round. */
TEST(jobs_do_not_mix) {
    party p = {.world = 2, .timeout_ms = 2 * LIMIT_MS, .job = {"a", "b"}, .gives_up_ms = {0, LIMIT_MS}};
    outcome *out;
    hold(&p, &out);
    CHECK_HAS(out[0].message, "rank 0 waited 8000 ms for rank 1");
    CHECK_HAS(out[1].message, "is the file of another job");
}

/* ---- strangers ---- */

static void connect_to(int *fd, int port) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(*fd >= 0);
    REQUIRE(connect(*fd, (const struct sockaddr *)&to, sizeof(to)) == 0);
}

enum { SILENT = 8, PASSING = 64 };
static int silent[SILENT];

/* A scanner at the port that rank 0 has published: it connects and says nothing, connects and goes, and says garbage. */
static void scan(const party *p) {
    char path[128], text[256] = "", garbage[4096];
    int port = 0;
    snprintf(path, sizeof(path), "%s/place", p->folder);
    while (access(path, R_OK) != 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL && fgets(text, sizeof(text), file) != NULL);
    fclose(file);
    REQUIRE(sscanf(strrchr(text, ':'), ":%d", &port) == 1);
    memset(garbage, 0x41, sizeof(garbage));
    for (int i = 0; i < SILENT; i++) connect_to(&silent[i], port);
    for (int i = 0; i < PASSING; i++) {
        int fd;
        connect_to(&fd, port);
        if (i % 2 == 0) CHECK(send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL) > 0);
        close(fd);
    }
}

TEST(strangers_at_the_port_change_nothing) {
    party p = {.world = 2, .after_root = scan};
    outcome *out;
    hold(&p, &out);
    for (int i = 0; i < SILENT; i++) close(silent[i]);
    for (int r = 0; r < 2; r++) {
        CHECK_INT(out[r].wait_status, 0);
        CHECK_INT(out[r].status, TDM_OK);
        CHECK_TEXT(out[r].backend, "gloo");
    }
}

/* ---- addresses ---- */

TEST(addresses) {
    tdm_endpoint at;
    char text[TDM_HOST_TEXT + 16], address[TDM_ADDRESS_TEXT];
    REQUIRE_OK(tdm__endpoint_parse(&at, "node-1:29500", "x"));
    CHECK(strcmp(at.host, "node-1") == 0 && at.port == 29500);
    REQUIRE_OK(tdm__endpoint_parse(&at, "[fe80::1]:80", "x"));
    CHECK_TEXT(at.host, "fe80::1");
    tdm__endpoint_print(text, sizeof(text), &at);
    CHECK_TEXT(text, "[fe80::1]:80");
    static const char *const bad[] = {"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:80x", "host:-1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(tdm__endpoint_parse(&at, bad[i], "the place"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "the place must be host:port");
    REQUIRE_OK(tdm__interface_address(address, "lo"));
    CHECK_TEXT(address, "127.0.0.1");
    REQUIRE_OK(tdm__interface_address(address, "127.0.0.1"));
    CHECK_STATUS(tdm__interface_address(address, "none0"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "no network interface 'none0'");
}

/* ---- ends ---- */

static int victim;
static int victims_signal;

static void call_until_the_end(tdm_comm *comm, int rank) {
    float x[1000] = {0};
    for (int i = 0;; i++) {
        if (rank == victim && i == 20) raise(victims_signal);
        if (tdm_comm_all_reduce(comm, (tdm_span){x, 1000, TDM_DTYPE_F32}, TDM_REDUCE_SUM) != TDM_OK) return;
    }
}

static void record_end(tdm_comm *comm, int rank) {
    call_until_the_end(comm, rank);
    CHECK_HAS(tdm_error_message(), "is gone");
}

TEST(a_rank_that_dies_is_named) {
    victims_signal = SIGKILL;
    for (victim = 0; victim < 3; victim++) {
        party p = {.world = 3, .work = record_end};
        outcome *out;
        hold(&p, &out);
        for (int r = 0; r < 3; r++) CHECK_INT(out[r].status, TDM_OK);
    }
}

/* A stopped rank 0 hears nothing, and the others end without it. When it goes on, it must not take them for the ones
 * who left. */
static pid_t *stopped;

static void stop_rank_0(tdm_comm *comm, int rank) {
    if (rank == 0) *stopped = getpid();
    call_until_the_end(comm, rank);
    if (rank == 1) kill(*stopped, SIGCONT);
    CHECK_HAS(tdm_error_message(), "rank 0 (host ");
    CHECK_HAS(tdm_error_message(), "has not been heard of");
}

TEST(a_rank_0_that_was_stopped_learns_why_the_job_has_ended) {
    party p = {.world = 3, .work = stop_rank_0};
    outcome *out;
    stopped = mmap(NULL, sizeof(*stopped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stopped != MAP_FAILED);
    victim = 0;
    victims_signal = SIGSTOP;
    hold(&p, &out);
    for (int r = 0; r < 3; r++) CHECK_INT(out[r].status, TDM_OK);
}

/* ---- a connection between two ranks, of which none is rank 0 ---- */

enum { FD_MOST = 64, PORTS = 8 };

static int port_of(int fd, int (*name)(int, struct sockaddr *, socklen_t *)) {
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof(at);
    if (name(fd, (struct sockaddr *)&at, &bytes) != 0) return 0;
    if (at.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

/* Of three ranks: this one's connection to another one; -1: none is found. All call it. */
static int connection_to(tdm_comm *comm, int peer) {
    int32_t own[PORTS] = {0}, all[3 * PORTS];
    int count = 0;
    for (int fd = 0; fd < FD_MOST && count < PORTS; fd++)
        if (port_of(fd, getpeername) != 0) own[count++] = port_of(fd, getsockname);
    CHECK_OK(
        tdm_comm_all_gather(comm, (tdm_span){own, PORTS, TDM_DTYPE_I32}, (tdm_span){all, 3 * PORTS, TDM_DTYPE_I32}));
    for (int fd = 0; fd < FD_MOST; fd++)
        for (int i = 0; i < PORTS; i++)
            if (port_of(fd, getpeername) != 0 && port_of(fd, getpeername) == all[peer * PORTS + i]) return fd;
    return -1;
}

static void lose_rank_2(tdm_comm *comm, int rank) {
    const int fd = connection_to(comm, 2);
    int silence_ms = 0, is_probed = 0;
    socklen_t bytes = sizeof(silence_ms);
    if (rank == 1) {
        REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, &bytes) == 0);
        CHECK_INT(silence_ms, 4500); /* of a heartbeat of 5 s */
        CHECK(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_probed, &bytes) == 0 && is_probed != 0);
        CHECK(shutdown(fd, SHUT_RDWR) == 0); /* what the kernel does when the other host is silent */
    }
    victim = -1;
    call_until_the_end(comm, rank);
    CHECK_HAS(tdm_error_message(), "lost its connection to");
    CHECK_HAS(tdm_error_message(), "rank 1 (host ");
    CHECK_HAS(tdm_error_message(), "rank 2 (host ");
}

TEST(a_lost_connection_ends_the_job_and_names_both_ranks) {
    party p = {.world = 3, .work = lose_rank_2};
    outcome *out;
    hold(&p, &out);
    for (int r = 0; r < 3; r++) CHECK_INT(out[r].status, TDM_OK);
}

static const tdm_transport_ops *gloo;
static tdm_transport_ops mortal;
static bool dies_early; /* before it has said where it can be reached */

static tdm_status open_mortal(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                              int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    if (rank == victim && dies_early) raise(SIGKILL);
    const tdm_status status = gloo->open(out, host, rank, world, interface, timeout_ms, silence_ms, addresses);
    if (status == TDM_OK && rank == victim) (*out)->ops = &mortal;
    return status;
}

static tdm_status die(tdm_transport *transport, const void *addresses) {
    (void)transport, (void)addresses;
    raise(SIGKILL);
    return TDM_OK;
}

/* The others wait for its connection. */
TEST(a_rank_that_dies_before_it_connects_is_named) {
    const tdm_module *module;
    tdm_module_report report;
    REQUIRE_OK(tdm__module_find(&module, tdm_host_default(), "gloo", NULL, &report));
    REQUIRE(module != NULL);
    gloo = module->transport;
    mortal = *gloo;
    mortal.open = open_mortal;
    mortal.connect = die;
    for (int i = 0; i < 6; i++) {
        party p = {.world = 3, .timeout_ms = 10 * TIMEOUT_MS, .transport = &mortal};
        char name[32];
        outcome *out;
        victim = i % 3;
        dies_early = i >= 3;
        hold(&p, &out);
        snprintf(name, sizeof(name), "rank %d (host ", victim);
        for (int r = 0; r < 3; r++)
            if (r != victim) CHECK_HAS(out[r].message, name);
    }
}

/* ---- a verdict that a rank hears before it has what it needs to reach it ---- */

static tdm_hub *late_hub;

/* The others have what this rank sends; it gets nothing before the job has ended. */
static tdm_status exchange_late(tdm_transport *transport, const tdm_message *message, int count, int *lost) {
    tdm_hub_cause cause;
    for (int i = 0; i < count; i++)
        if (message[i].sends) gloo->begin(transport, &message[i], 1);
    while (!tdm__hub_has_ended(late_hub, &cause)) usleep(1000);
    gloo->abort(transport);
    return gloo->exchange(transport, message, count, lost);
}

static void split_without_a_number(tdm_comm *comm, int rank) {
    static tdm_transport_ops late;
    static const int all[] = {0, 1, 2};
    tdm_hosts_job *job = ((tdm_hosts_comm *)comm)->job;
    tdm_comm *group;
    atomic_store(&job->next_group, TDM_HOSTS_GROUPS); /* as after so many splits */
    if (rank == 1) {
        gloo = job->transport->ops;
        late = *gloo;
        late.exchange = exchange_late;
        late_hub = job->hub;
        job->transport->ops = &late;
    }
    CHECK_STATUS(tdm__comm_split(comm, all, 3, &group), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "can make at most 4095 groups");
}

TEST(a_split_that_fails_has_one_verdict_on_all_ranks) {
    party p = {.world = 3, .work = split_without_a_number};
    outcome *out;
    hold(&p, &out);
    for (int r = 0; r < 3; r++) CHECK_INT(out[r].status, TDM_OK);
}

TEST_MAIN({
    RUN(hmac_of_the_rfc);
    RUN(secrets_that_are_refused);
    RUN(addresses);
    RUN(ranks_with_the_secret_meet);
    RUN(a_rank_with_another_secret_stays_out);
    RUN(ranks_that_are_missing_are_named);
    RUN(another_number_of_ranks_is_told_to_all);
    RUN(jobs_do_not_mix);
    RUN(strangers_at_the_port_change_nothing);
    RUN(a_rank_that_dies_is_named);
    RUN(a_rank_0_that_was_stopped_learns_why_the_job_has_ended);
    RUN(a_lost_connection_ends_the_job_and_names_both_ranks);
    RUN(a_rank_that_dies_before_it_connects_is_named);
    RUN(a_split_that_fails_has_one_verdict_on_all_ranks);
})
