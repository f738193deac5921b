/* How ranks that somebody else has started find one another. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/comm/meeting.h"

/* In a child: meets the others and sums over all of them. */
static void meet(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm = NULL;
    int32_t x = rank + 1;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    REQUIRE_OK(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    CHECK_OK(tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 20000, TDM_HEARTBEAT_MS));
    close(fd);
    CHECK_OK(tdm_comm_all_reduce(comm, (tdm_span){&x, 1, TDM_DTYPE_I32}, TDM_REDUCE_SUM));
    CHECK_INT(x, world * (world + 1) / 2);
    tdm_comm_close(comm);
}

static void all_meet(int world, const char *job, const char *init_method) {
    pid_t pid[8];
    /* Rank 0 comes last: the others wait for it. */
    for (int r = world - 1; r >= 0; r--) pid[r] = meeting_child(meet, r, world, job, init_method);
    for (int r = 0; r < world; r++) CHECK_INT(meeting_end(pid[r]), 0);
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
    tdm_launch_facts facts = meeting_facts(0, 1, "inherited");
    REQUIRE_OK(tdm_launch_create(&made, 1));
    facts.fd = made;
    CHECK_OK(tdm_launch_meet(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS));
    CHECK(fd >= 0 && fd != made);
    close(fd);
    close(made);
    facts.fd = 999;
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "give init_method another path");
    CHECK_INT(fd, -1);
}

static void check_refused(const char *method) {
    for (int rank = 0; rank < 2; rank++)
        CHECK_INT(meeting_end(meeting_child(refused_place, rank, 2, "kept", method)), 0);
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

static pid_t stranger(const char *job, int type, bool listens) {
    int ready[2];
    char byte;
    static const char *const end[] = {"", "-0123456789abcdef"};
    struct sockaddr_un address[2];
    socklen_t bytes[2];
    for (int i = 0; i < 2; i++) bytes[i] = meeting_name(&address[i], job, end[i]);
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
        meeting_end(other);
    }
}

static void lonely_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 4000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_TEXT(
        tdm_error_message(),
        "rendezvous at port 29500 of this host: rank 0 waited 4000 ms for ranks 1, 3; start all ranks on this host");
    CHECK_INT(fd, -1);
}

static void lonely_guest(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 150, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1 waited 150 ms for rank 0; start all ranks on this host");
}

TEST(whoever_does_not_come) {
    pid_t guest = meeting_child(meeting_come, 2, 4, "lonely", NULL),
          host = meeting_child(lonely_host, 0, 4, "lonely", NULL);
    CHECK_INT(meeting_end(guest), 0);
    CHECK_INT(meeting_end(host), 0);
    CHECK_INT(meeting_end(meeting_child(lonely_guest, 1, 2, "nobody", NULL)), 0);
}

static void refused_guest(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(),
              world == 3 ? "rank 1 has come twice" : "rank 0 was started for 3 ranks, rank 1 for 4");
}

static void second_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "another job is meeting there; give each job its own MASTER_PORT or init_method");
}

TEST(whoever_must_not_come) {
    char file[128];
    snprintf(file, sizeof(file), "file://%s/strangers", folder);
    const char *const method[] = {NULL, file};
    for (int i = 0; i < 2; i++) {
        pid_t host = meeting_child(meeting_come, 0, 3, "strict", method[i]);
        CHECK_INT(meeting_end(meeting_child(meeting_come, 1, 3, "strict", method[i])), 0);
        CHECK_INT(meeting_end(meeting_child(refused_guest, 1, 3, "strict", method[i])), 0);
        CHECK_INT(meeting_end(meeting_child(second_host, 0, 3, "strict", method[i])), 0);
        CHECK_INT(meeting_end(meeting_child(meeting_come, 2, 3, "strict", method[i])), 0);
        CHECK_INT(meeting_end(host), 0);
    }
}

static void contradicted_host(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 0 was started for 3 ranks, rank 1 for 4; start all with one world size");
}

static int came[2]; /* a pipe: the guest has met its host */

/* A rank that has come before learns it too, in its first wait. */
static void disappointed_guest(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_comm *comm;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    REQUIRE_OK(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    REQUIRE(write(came[1], "", 1) == 1);
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 0 was started for 3 ranks, rank 1 for 4");
    close(fd);
}

TEST(ranks_of_two_numbers) {
    char byte;
    REQUIRE(pipe(came) == 0);
    pid_t host = meeting_child(contradicted_host, 0, 3, "numbers", NULL);
    pid_t guest = meeting_child(disappointed_guest, 2, 3, "numbers", NULL);
    REQUIRE(read(came[0], &byte, 1) == 1);
    CHECK_INT(meeting_end(meeting_child(refused_guest, 1, 4, "numbers", NULL)), 0);
    CHECK_INT(meeting_end(host), 0);
    CHECK_INT(meeting_end(guest), 0);
    close(came[0]);
    close(came[1]);
}

TEST(wrong_meetings) {
    int fd;
    char path[300];
    const char *nowhere = "poem://"; /* where no others are told */
    tdm_launch_facts facts = meeting_facts(2, 4, "hosts");
    facts.local_rank = 0;
    facts.local_world = 2;
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), nowhere, 1000, TDM_HEARTBEAT_MS), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "the job has 4 ranks, 2 of them on this host");
    facts = meeting_facts(0, 2000, "many");
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), NULL, 1000, TDM_HEARTBEAT_MS), TDM_E_UNSUPPORTED);
    facts = meeting_facts(2, 2, "rank");
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), nowhere, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "got rank 2 of 2");
    facts = meeting_facts(0, 2, "time");
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), NULL, 0, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    memset(path, 'x', sizeof(path));
    memcpy(path, "file:///", 8);
    path[sizeof(path) - 1] = '\0';
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), path, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "needs an absolute path of at most");
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), "file://relative", 1000, TDM_HEARTBEAT_MS),
                 TDM_E_USAGE);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), "file:///no/such/folder/x", 1000, TDM_HEARTBEAT_MS),
                 TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "No such file or directory");
}

TEST_MAIN({
    if (mkdtemp(folder) == NULL) SKIP_PROGRAM("no temporary folder");
    RUN(ranks_meet);
    RUN(an_inherited_descriptor_wins);
    RUN(a_stale_socket_is_taken_over);
    RUN(other_files_are_not_removed);
    RUN(a_name_cannot_be_taken);
    RUN(whoever_does_not_come);
    RUN(whoever_must_not_come);
    RUN(ranks_of_two_numbers);
    RUN(wrong_meetings);
    rmdir(folder);
})
