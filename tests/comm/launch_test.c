/* How ranks that somebody else has started find one another. */
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/launch.h"
#include "tests/support/tdm_test.h"

static tdm_launch_facts facts_of(int rank, int world, const char *job) {
    tdm_launch_facts facts = {TDM_LAUNCH_TORCHRUN, rank, world, rank, world, -1, "localhost", 29500, ""};
    snprintf(facts.job, sizeof(facts.job), "%s-%ld", job, (long)getppid());
    return facts;
}

/* In a child: meets the others and sums over all of them. */
static void meet(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm = NULL;
    int32_t x = rank + 1;
    tdm_launch_facts facts = facts_of(rank, world, job);
    REQUIRE_OK(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    CHECK_OK(tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 20000, TDM_HEARTBEAT_MS));
    close(fd);
    CHECK_OK(tdm__all_reduce(comm, (tdm_span){&x, 1, TDM_DTYPE_I32}, TDM_REDUCE_SUM));
    CHECK_INT(x, world * (world + 1) / 2);
    tdm__comm_close(comm);
}

static pid_t in_child(void (*fn)(int rank, int world, const char *job, const char *init_method), int rank, int world,
                      const char *job, const char *init_method) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tdm_test_failures = 0;
    fn(rank, world, job, init_method);
    fflush(NULL);
    exit(tdm_test_failures != 0);
}

static int end_of(pid_t pid) {
    int wait_status = -1;
    waitpid(pid, &wait_status, 0);
    return wait_status;
}

static void all_meet(int world, const char *job, const char *init_method) {
    pid_t pid[8];
    /* Rank 0 comes last: the others wait for it. */
    for (int r = world - 1; r >= 0; r--) pid[r] = in_child(meet, r, world, job, init_method);
    for (int r = 0; r < world; r++) CHECK_INT(end_of(pid[r]), 0);
}

static char folder[] = "/tmp/tandem-meet-XXXXXX";

TEST(ranks_meet) {
    char file[128];
    snprintf(file, sizeof(file), "file://%s/meet", folder);
    all_meet(1, "alone", NULL);
    all_meet(4, "env", NULL);
    all_meet(3, "env", "env");
    all_meet(3, "tcp", "tcp://127.0.0.1:29517");
    all_meet(3, "file", file);
    all_meet(2, "file", file); /* nothing of the first is in the way */
}

TEST(an_inherited_descriptor_wins) {
    int made, fd;
    tdm_launch_facts facts = facts_of(0, 1, "inherited");
    REQUIRE_OK(tdm__shm_create(&made, tdm_host_default(), 1));
    facts.fd = made;
    CHECK_OK(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS));
    CHECK(fd >= 0 && fd != made);
    close(fd);
    close(made);
    facts.fd = 999;
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "TANDEM_LAUNCH_FD is 999");
}

/* A socket file that a killed job left behind. */
TEST(a_stale_socket_is_taken_over) {
    char file[128];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/stale.tandem", folder);
    snprintf(file, sizeof(file), "file://%s/stale", folder);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0);
    REQUIRE(listen(listener, 1) == 0);
    close(listener);
    all_meet(2, "stale", file);
    CHECK(access(address.sun_path, F_OK) != 0);
}

/* Whether it would listen there or visit. */
static void refused_place(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS),
                 TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "give init_method another name");
    CHECK_INT(fd, -1);
}

static void check_refused(const char *method) {
    for (int rank = 0; rank < 2; rank++) CHECK_INT(end_of(in_child(refused_place, rank, 2, "kept", method)), 0);
}

/* What is no dead socket of this user stays as it is, and keeps nobody waiting. */
TEST(other_files_are_not_removed) {
    char method[128], path[120], target[120], text[8] = "";
    snprintf(method, sizeof(method), "file://%s/kept", folder);
    snprintf(path, sizeof(path), "%s/kept.tandem", folder);
    snprintf(target, sizeof(target), "%s/target", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
    check_refused(method);
    file = fopen(path, "r");
    REQUIRE(file != NULL && fgets(text, sizeof(text), file) != NULL && fclose(file) == 0);
    CHECK_TEXT(text, "mine");
    REQUIRE(rename(path, target) == 0 && symlink(target, path) == 0);
    check_refused(method);
    CHECK(access(target, F_OK) == 0 && unlink(path) == 0 && unlink(target) == 0);
    REQUIRE(mkdir(path, 0700) == 0);
    check_refused(method);
    REQUIRE(rmdir(path) == 0 && mkfifo(path, 0600) == 0);
    check_refused(method);
    CHECK_INT(unlink(path), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(other, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(other, 1) == 0);
    check_refused(method);
    close(other);
    if (geteuid() == 0) {
        REQUIRE(lchown(path, 65534, 65534) == 0);
        check_refused(method);
    }
    CHECK_INT(unlink(path), 0);
}

/* The name of the socket at which children of this process meet for `job`: see facts_of. */
static socklen_t name_of(struct sockaddr_un *address, const char *job, const char *end) {
    char key[128];
    snprintf(key, sizeof(key), " %s-%ld", job, (long)getpid());
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "tandem-%lu-%016llx%s",
                          (unsigned long)geteuid(), (unsigned long long)tdm__hash64(key, strlen(key), 0), end);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static pid_t stranger(const char *job, int type, bool listens) {
    int ready[2];
    char byte;
    static const char *const end[] = {"", "-0123456789abcdef"};
    struct sockaddr_un address[2];
    socklen_t bytes[2];
    for (int i = 0; i < 2; i++) bytes[i] = name_of(&address[i], job, end[i]);
    if (pipe(ready) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool good = setgid(65534) == 0 && setuid(65534) == 0;
        for (int i = 0; good && i < 2; i++) {
            int fd = socket(AF_UNIX, type, 0);
            good = bind(fd, (const struct sockaddr *)&address[i], bytes[i]) == 0 && (!listens || listen(fd, 64) == 0);
        }
        if (good && write(ready[1], "", 1) == 1) pause();
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) pid = -1;
    close(ready[0]);
    return pid;
}

/* Another user who is there first keeps nobody from meeting, and nobody meets him. */
TEST(a_name_cannot_be_taken) {
    static const struct {
        int type;
        bool listens;
    } kind[] = {{SOCK_SEQPACKET, true}, {SOCK_SEQPACKET, false}, {SOCK_STREAM, true}};
    if (geteuid() != 0) {
        fprintf(stderr, "only root can play another user: not tried\n");
        return;
    }
    for (int i = 0; i < 3; i++) {
        pid_t other = stranger("squatted", kind[i].type, kind[i].listens);
        REQUIRE(other > 0);
        all_meet(3, "squatted", NULL);
        kill(other, SIGKILL);
        end_of(other);
    }
}

static void lonely_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 4000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_TEXT(
        tdm_error_message(),
        "rendezvous at port 29500 of this host: rank 0 waited 4000 ms for ranks 1, 3; start all ranks on this host");
    CHECK_INT(fd, -1);
}

static void served_guest(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_OK(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    close(fd);
}

static void lonely_guest(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 150, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1 waited 150 ms for rank 0; start all ranks on this host");
}

TEST(whoever_does_not_come) {
    pid_t guest = in_child(served_guest, 2, 4, "lonely", NULL), host = in_child(lonely_host, 0, 4, "lonely", NULL);
    CHECK_INT(end_of(guest), 0);
    CHECK_INT(end_of(host), 0);
    CHECK_INT(end_of(in_child(lonely_guest, 1, 2, "nobody", NULL)), 0);
}

static void patient_host(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_OK(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    close(fd);
}

static void refused_guest(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS),
                 TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), world == 3 ? "rank 1 has come twice" : "rank 0 was told of 3 ranks, rank 1 of 4");
}

static void second_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS),
                 TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "another job is meeting there; give each job its own MASTER_PORT or init_method");
}

TEST(whoever_must_not_come) {
    char file[128];
    snprintf(file, sizeof(file), "file://%s/strangers", folder);
    const char *const method[] = {NULL, file};
    for (int i = 0; i < 2; i++) {
        pid_t host = in_child(patient_host, 0, 3, "strict", method[i]);
        CHECK_INT(end_of(in_child(served_guest, 1, 3, "strict", method[i])), 0);
        CHECK_INT(end_of(in_child(refused_guest, 1, 3, "strict", method[i])), 0);
        CHECK_INT(end_of(in_child(second_host, 0, 3, "strict", method[i])), 0);
        CHECK_INT(end_of(in_child(served_guest, 2, 3, "strict", method[i])), 0);
        CHECK_INT(end_of(host), 0);
    }
}

static void contradicted_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS),
                 TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 0 was told of 3 ranks, rank 1 of 4; start all ranks with one number");
}

static int came[2]; /* a pipe: the guest has met its host */

/* A rank that has come before learns it too, in its first wait. */
static void disappointed_guest(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_comm *comm;
    tdm_launch_facts facts = facts_of(rank, world, job);
    REQUIRE_OK(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    REQUIRE(write(came[1], "", 1) == 1);
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 0 was told of 3 ranks, rank 1 of 4");
    close(fd);
}

TEST(ranks_of_two_numbers) {
    char byte;
    REQUIRE(pipe(came) == 0);
    pid_t host = in_child(contradicted_host, 0, 3, "numbers", NULL);
    pid_t guest = in_child(disappointed_guest, 2, 3, "numbers", NULL);
    REQUIRE(read(came[0], &byte, 1) == 1);
    CHECK_INT(end_of(in_child(refused_guest, 1, 4, "numbers", NULL)), 0);
    CHECK_INT(end_of(host), 0);
    CHECK_INT(end_of(guest), 0);
    close(came[0]);
    close(came[1]);
}

/* ---- a rank that does not come ---- */

typedef struct lines {
    int count;
    char first[400];
} lines;

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    lines *kept = user;
    CHECK_INT(level, TDM_LOG_WARNING);
    CHECK_TEXT(subsystem, "comm");
    if (kept->count++ == 0) snprintf(kept->first, sizeof(kept->first), "%s", line);
}

static tdm_host talking_host(lines *kept) {
    tdm_host host = *tdm_host_default();
    host.log = keep_line;
    host.log_level = TDM_LOG_WARNING;
    host.user = kept;
    return host;
}

/* Waits for longer than five seconds: then, and not again before a minute, it says for whom. */
static void reminded(int rank, int world, const char *job, const char *init_method) {
    int fd;
    lines kept = {0};
    tdm_host host = talking_host(&kept);
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 12000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_INT(kept.count, 1);
    CHECK_HAS(kept.first, "rendezvous at port 29500 of this host: rank ");
    CHECK_HAS(kept.first, rank == 0 ? "rank 0 has waited " : "rank 1 has waited ");
    CHECK_HAS(kept.first, rank == 0 ? " s for ranks 1, 2; start all ranks on this host" : " s for rank 0; start all");
}

static void reminded_in_memory(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm;
    lines kept = {0};
    tdm_host host = talking_host(&kept);
    tdm_launch_facts facts = facts_of(rank, world, job);
    REQUIRE_OK(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS));
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, rank, world, &host, 12000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_INT(kept.count, rank == 0);
    if (rank == 0) CHECK_HAS(kept.first, " s for rank 2 to join");
    close(fd);
}

/* Rank 0 is there, and says with the place who is not; the first guest has nothing to add, and loses patience first. */
static void reminding_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    lines kept = {0};
    tdm_host host = talking_host(&kept);
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), ") waited 12000 ms for rank 2");
    CHECK_INT(kept.count, 1);
    CHECK_HAS(kept.first, "rendezvous at port 29500 of this host: rank 0 has waited ");
    CHECK_HAS(kept.first, " s for rank 2; start all ranks on this host");
}

static void silent_guest(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm;
    lines kept = {0};
    tdm_host host = talking_host(&kept);
    tdm_launch_facts facts = facts_of(rank, world, job);
    REQUIRE_OK(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS));
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, rank, world, &host, 12000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), ") waited 12000 ms for rank 2");
    CHECK_INT(kept.count, 0);
    close(fd);
}

TEST(whoever_waits_says_for_whom) {
    pid_t alone[] = {in_child(reminded, 0, 3, "host waits", NULL), in_child(reminded, 1, 2, "guest waits", NULL)};
    pid_t joined[] = {in_child(reminded_in_memory, 0, 3, "memory", NULL),
                      in_child(reminded_in_memory, 1, 3, "memory", NULL), in_child(served_guest, 2, 3, "memory", NULL)};
    pid_t there[] = {in_child(reminding_host, 0, 3, "there", NULL), in_child(silent_guest, 1, 3, "there", NULL)};
    for (int i = 0; i < 2; i++) CHECK_INT(end_of(alone[i]), 0);
    for (int i = 0; i < 3; i++) CHECK_INT(end_of(joined[i]), 0);
    for (int i = 0; i < 2; i++) CHECK_INT(end_of(there[i]), 0);
}

/* ---- a rank 0 that is there and does not answer ---- */

/* Long against what a starved process needs, short against the timeout. */
enum { HEARTBEAT_MS = 2000 };

static pid_t listener; /* whoever listens in rank 0's place */

static void unanswered(int rank, int world, const char *job, const char *init_method) {
    int fd;
    char wanted[120];
    lines kept = {0};
    tdm_host host = talking_host(&kept);
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 12000, 0), TDM_E_COMM);
    snprintf(wanted, sizeof(wanted), " for rank 0 (pid %d), which is there and does not answer;", (int)listener);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK_HAS(tdm_error_message(), "rank 1 waited 12000 ms");
    CHECK_INT(kept.count, 1);
    CHECK_HAS(kept.first, wanted);
    CHECK_HAS(kept.first, "rendezvous at port 29500 of this host: rank 1 has waited ");
}

static void unheard(int rank, int world, const char *job, const char *init_method) {
    int fd;
    char wanted[120];
    int64_t start = tdm__now_ns();
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 50000, HEARTBEAT_MS), TDM_E_COMM);
    snprintf(wanted, sizeof(wanted), "rank 0 (pid %d) has not been heard of for ", (int)listener);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK(tdm__ms_since(start) < 25000);
}

/* Rank 0 of `job`, stopped while it waits for the others. */
static pid_t stopped_host(const char *job) {
    struct sockaddr_un address;
    socklen_t bytes = name_of(&address, job, "");
    pid_t pid = in_child(patient_host, 0, 2, job, NULL);
    for (bool listens = false; !listens; usleep(1000)) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        listens = connect(fd, (const struct sockaddr *)&address, bytes) == 0;
        close(fd);
    }
    kill(pid, SIGSTOP);
    CHECK(waitpid(pid, NULL, WUNTRACED) == pid);
    return pid;
}

static void wake_listener(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)user, (void)level, (void)subsystem, (void)line;
    kill(listener, SIGCONT);
}

/* Without a heartbeat a stopped rank 0 is waited for: it is woken by the reminder, and they meet. */
static void waking_guest(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_host host = *tdm_host_default();
    tdm_launch_facts facts = facts_of(rank, world, job);
    host.log = wake_listener;
    host.log_level = TDM_LOG_WARNING;
    CHECK_OK(tdm__rendezvous_shm(&fd, &facts, &host, init_method, 50000, 0));
    close(fd);
}

TEST(a_rank_0_that_does_not_answer_is_named) {
    struct sockaddr_un address;
    socklen_t bytes = name_of(&address, "mute", "");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, 8) == 0);
    listener = getpid();
    pid_t guest[] = {in_child(unanswered, 1, 2, "mute", NULL), in_child(unheard, 1, 2, "mute", NULL)};
    listener = stopped_host("stopped");
    CHECK_INT(end_of(in_child(unheard, 1, 2, "stopped", NULL)), 0);
    kill(listener, SIGKILL);
    end_of(listener);
    listener = stopped_host("woken");
    CHECK_INT(end_of(in_child(waking_guest, 1, 2, "woken", NULL)), 0);
    CHECK_INT(end_of(listener), 0);
    for (int i = 0; i < 2; i++) CHECK_INT(end_of(guest[i]), 0);
    close(fd);
}

/* ---- a rank that fails ---- */

static void failing(int rank, int world, const char *job, const char *init_method) {
    tdm_launch_facts facts = facts_of(rank, world, job);
    if (strcmp(job, "number fails") == 0) facts.rank = 9;
    if (strcmp(job, "no number") == 0) facts.rank = -1;
    if (strcmp(job, "no world") == 0) facts.world = -1;
    tdm_launch_fail(&facts, init_method, "job.yaml: optimizer.lr wants a number, got 'ten'");
}

static const char *who_failed(const char *job, const char *init_method) {
    if (strcmp(job, "number fails") == 0) return "rank 9 has failed";
    if (strcmp(job, "no number") == 0) return "a rank has failed";
    return strcmp(job, "host fails") == 0 || init_method != NULL ? "rank 0 has " : "rank 2 has ";
}

/* Before it has met, or afterwards in the memory. */
static void told(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm = NULL;
    int64_t start = tdm__now_ns();
    tdm_launch_facts facts = facts_of(rank, world, job);
    tdm_status status = tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS);
    if (status == TDM_OK) {
        status = tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 50000, TDM_HEARTBEAT_MS);
        close(fd);
    }
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), who_failed(job, init_method));
    CHECK_HAS(tdm_error_message(), "ed: job.yaml: optimizer.lr wants a number, got 'ten'");
    CHECK(tdm__ms_since(start) < 25000);
}

TEST(a_rank_that_has_failed_tells_the_others) {
    char file[128];
    snprintf(file, sizeof(file), "file://%s/failed", folder);
    static const char *const guest[] = {"guest fails", "number fails", "no number", "no world"};
    pid_t pid[4];
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 4; r++) pid[r] = in_child(r == 2 ? failing : told, r, 4, guest[i], NULL);
        for (int r = 0; r < 4; r++) CHECK_INT(end_of(pid[r]), 0);
    }
    for (int r = 0; r < 4; r++) pid[r] = in_child(r == 0 ? failing : told, r, 4, "host fails", NULL);
    for (int r = 0; r < 4; r++) CHECK_INT(end_of(pid[r]), 0);
    for (int r = 0; r < 4; r++) pid[r] = in_child(r == 0 ? failing : told, r, 4, "no world", file);
    for (int r = 0; r < 4; r++) CHECK_INT(end_of(pid[r]), 0);
    /* All of them, as with one configuration for all: nobody waits for anybody for long. */
    for (int r = 0; r < 4; r++) pid[r] = in_child(failing, r, 4, "all fail", NULL);
    for (int r = 0; r < 4; r++) CHECK_INT(end_of(pid[r]), 0);
}

static void of_other_hosts(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    facts.local_world = 2;
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS),
                 TDM_E_UNSUPPORTED);
}

static void with_other_hosts(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = facts_of(rank, world, job);
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS),
                 TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1 has failed: the job has 3 ranks, 2 of them on this host");
}

TEST(facts_that_cannot_meet_are_told) {
    pid_t pid[] = {in_child(with_other_hosts, 0, 3, "hosts", NULL), in_child(of_other_hosts, 1, 3, "hosts", NULL)};
    for (int i = 0; i < 2; i++) CHECK_INT(end_of(pid[i]), 0);
}

TEST(wrong_meetings) {
    int fd;
    char path[300];
    const char *nowhere = "poem://"; /* where no others are told */
    tdm_launch_facts facts = facts_of(2, 4, "hosts");
    facts.local_rank = 0;
    facts.local_world = 2;
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), nowhere, 1000, TDM_HEARTBEAT_MS),
                 TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "the job has 4 ranks, 2 of them on this host");
    facts = facts_of(0, 2000, "many");
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS), TDM_E_UNSUPPORTED);
    facts = facts_of(2, 2, "rank");
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), nowhere, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 2 of 2 makes no sense");
    facts = facts_of(0, 2, "time");
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), NULL, 0, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    memset(path, 'x', sizeof(path));
    memcpy(path, "file:///", 8);
    path[sizeof(path) - 1] = '\0';
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), path, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "wants an absolute path of at most");
    CHECK_STATUS(tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), "file://relative", 1000, TDM_HEARTBEAT_MS),
                 TDM_E_USAGE);
    CHECK_STATUS(
        tdm__rendezvous_shm(&fd, &facts, tdm_host_default(), "file:///no/such/folder/x", 1000, TDM_HEARTBEAT_MS),
        TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "No such file or directory");
}

TEST_MAIN({
    if (mkdtemp(folder) == NULL) TEST_SKIP("no temporary folder");
    RUN(ranks_meet);
    RUN(an_inherited_descriptor_wins);
    RUN(a_stale_socket_is_taken_over);
    RUN(other_files_are_not_removed);
    RUN(a_name_cannot_be_taken);
    RUN(whoever_does_not_come);
    RUN(whoever_must_not_come);
    RUN(ranks_of_two_numbers);
    RUN(whoever_waits_says_for_whom);
    RUN(a_rank_0_that_does_not_answer_is_named);
    RUN(a_rank_that_has_failed_tells_the_others);
    RUN(facts_that_cannot_meet_are_told);
    RUN(wrong_meetings);
    rmdir(folder);
})
