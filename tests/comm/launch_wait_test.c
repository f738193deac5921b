/* Ranks that somebody else has started and that wait for one another, or fail before they have met. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "tests/comm/meeting.h"

static char folder[] = "/tmp/tandem-meet-XXXXXX";

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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, &host, init_method, 12000, TDM_HEARTBEAT_MS), TDM_E_COMM);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    REQUIRE_OK(tdm_launch_meet(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS));
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS), TDM_E_COMM);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    REQUIRE_OK(tdm_launch_meet(&fd, &facts, &host, init_method, 20000, TDM_HEARTBEAT_MS));
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, rank, world, &host, 12000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), ") waited 12000 ms for rank 2");
    CHECK_INT(kept.count, 0);
    close(fd);
}

TEST(whoever_waits_says_for_whom) {
    pid_t alone[] = {meeting_child(reminded, 0, 3, "host waits", NULL),
                     meeting_child(reminded, 1, 2, "guest waits", NULL)};
    pid_t joined[] = {meeting_child(reminded_in_memory, 0, 3, "memory", NULL),
                      meeting_child(reminded_in_memory, 1, 3, "memory", NULL),
                      meeting_child(meeting_come, 2, 3, "memory", NULL)};
    pid_t there[] = {meeting_child(reminding_host, 0, 3, "there", NULL),
                     meeting_child(silent_guest, 1, 3, "there", NULL)};
    for (int i = 0; i < 2; i++) CHECK_INT(meeting_end(alone[i]), 0);
    for (int i = 0; i < 3; i++) CHECK_INT(meeting_end(joined[i]), 0);
    for (int i = 0; i < 2; i++) CHECK_INT(meeting_end(there[i]), 0);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, &host, init_method, 12000, 0), TDM_E_COMM);
    snprintf(wanted, sizeof(wanted), " for rank 0 (pid %d), which listens but does not answer;", (int)listener);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 50000, HEARTBEAT_MS), TDM_E_COMM);
    snprintf(wanted, sizeof(wanted), "rank 0 (pid %d) has not been heard of for ", (int)listener);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK(tdm__ms_since(start) < 25000);
}

static void stop(pid_t pid) {
    kill(pid, SIGSTOP);
    CHECK(waitpid(pid, NULL, WUNTRACED) == pid);
}

/* Rank 0 of `job`, and a visitor that says nothing. */
static pid_t visited_host(meeting_fn host, const char *job, int *visitor) {
    struct sockaddr_un address;
    socklen_t bytes = meeting_name(&address, job, "");
    pid_t pid = meeting_child(host, 0, 2, job, NULL);
    *visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    while (connect(*visitor, (const struct sockaddr *)&address, bytes) != 0) usleep(1000);
    return pid;
}

/* Rank 0 of `job`, stopped while it waits for the others. */
static pid_t stopped_host(meeting_fn host, const char *job) {
    int visitor;
    pid_t pid = visited_host(host, job, &visitor);
    close(visitor);
    stop(pid);
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
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    host.log = wake_listener;
    host.log_level = TDM_LOG_WARNING;
    CHECK_OK(tdm_launch_meet(&fd, &facts, &host, init_method, 50000, 0));
    close(fd);
}

TEST(a_rank_0_that_does_not_answer_is_named) {
    struct sockaddr_un address;
    socklen_t bytes = meeting_name(&address, "mute", "");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, 8) == 0);
    listener = getpid();
    pid_t guest[] = {meeting_child(unanswered, 1, 2, "mute", NULL), meeting_child(unheard, 1, 2, "mute", NULL)};
    listener = stopped_host(meeting_come, "stopped");
    CHECK_INT(meeting_end(meeting_child(unheard, 1, 2, "stopped", NULL)), 0);
    kill(listener, SIGKILL);
    meeting_end(listener);
    listener = stopped_host(meeting_come, "woken");
    CHECK_INT(meeting_end(meeting_child(waking_guest, 1, 2, "woken", NULL)), 0);
    CHECK_INT(meeting_end(listener), 0);
    for (int i = 0; i < 2; i++) CHECK_INT(meeting_end(guest[i]), 0);
    close(fd);
}

/* ---- a rank that fails ---- */

static void failing(int rank, int world, const char *job, const char *init_method) {
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    if (strcmp(job, "number fails") == 0) facts.rank = 9;
    if (strcmp(job, "no number") == 0) facts.rank = -1;
    if (strcmp(job, "no world") == 0) facts.world = -1;
    tdm_launch_fail(&facts, init_method, "job.yaml: optimizer.lr must be a number, got 'ten'");
}

static const char *who_failed(const char *job, const char *init_method) {
    if (strcmp(job, "number fails") == 0) return "rank 9 has failed";
    if (strcmp(job, "no number") == 0) return "a rank has failed";
    return strstr(job, "host fails") != NULL || init_method != NULL ? "rank 0 has " : "rank 2 has ";
}

/* Before it has met, or afterwards in the memory. */
static void told(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_comm *comm = NULL;
    int64_t start = tdm__now_ns();
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    tdm_status status = tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS);
    if (status == TDM_OK) {
        status = tdm__comm_open_shm(&comm, fd, rank, world, tdm_host_default(), 50000, TDM_HEARTBEAT_MS);
        close(fd);
    }
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), who_failed(job, init_method));
    CHECK_HAS(tdm_error_message(), "ed: job.yaml: optimizer.lr must be a number, got 'ten'");
    CHECK(tdm__ms_since(start) < 25000);
}

TEST(a_rank_that_has_failed_tells_the_others) {
    char file[128];
    snprintf(file, sizeof(file), "file://%s/failed", folder);
    static const char *const guest[] = {"guest fails", "number fails", "no number", "no world"};
    pid_t pid[4];
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 4; r++) pid[r] = meeting_child(r == 2 ? failing : told, r, 4, guest[i], NULL);
        for (int r = 0; r < 4; r++) CHECK_INT(meeting_end(pid[r]), 0);
    }
    for (int r = 0; r < 4; r++) pid[r] = meeting_child(r == 0 ? failing : told, r, 4, "host fails", NULL);
    for (int r = 0; r < 4; r++) CHECK_INT(meeting_end(pid[r]), 0);
    for (int r = 0; r < 4; r++) pid[r] = meeting_child(r == 0 ? failing : told, r, 4, "no world", file);
    for (int r = 0; r < 4; r++) CHECK_INT(meeting_end(pid[r]), 0);
    /* All of them, as with one configuration for all: nobody waits for anybody for long. */
    for (int r = 0; r < 4; r++) pid[r] = meeting_child(failing, r, 4, "all fail", NULL);
    for (int r = 0; r < 4; r++) CHECK_INT(meeting_end(pid[r]), 0);
}

/* Who stands still meanwhile tells them for as long as it runs. */
TEST(a_standstill_is_no_time_to_tell) {
    int visitor;
    pid_t host = stopped_host(failing, "host fails"), busy = visited_host(failing, "busy host fails", &visitor);
    pid_t guest = meeting_child(failing, 2, 3, "guest fails", NULL);
    usleep(100000); /* in most runs the guest looks for its host by then, and the busy host waits for its visitor */
    stop(guest);
    stop(busy);
    usleep(3500000); /* longer than the telling */
    pid_t told_ones[] = {meeting_child(told, 1, 2, "host fails", NULL),
                         meeting_child(told, 1, 2, "busy host fails", NULL),
                         meeting_child(told, 0, 3, "guest fails", NULL)};
    pid_t failed[] = {host, busy, guest};
    for (int i = 0; i < 3; i++) kill(failed[i], SIGCONT);
    for (int i = 0; i < 3; i++) CHECK_INT(meeting_end(told_ones[i]), 0);
    for (int i = 0; i < 3; i++) CHECK_INT(meeting_end(failed[i]), 0);
    close(visitor);
}

static void of_other_hosts(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    facts.local_world = 2;
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS),
                 TDM_E_UNSUPPORTED);
}

static void with_other_hosts(int rank, int world, const char *job, const char *init_method) {
    int fd;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_STATUS(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 50000, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "rank 1 has failed: the job has 3 ranks, 2 of them on this host");
}

TEST(facts_that_cannot_meet_are_told) {
    pid_t pid[] = {meeting_child(with_other_hosts, 0, 3, "hosts", NULL),
                   meeting_child(of_other_hosts, 1, 3, "hosts", NULL)};
    for (int i = 0; i < 2; i++) CHECK_INT(meeting_end(pid[i]), 0);
}

TEST_MAIN({
    if (mkdtemp(folder) == NULL) SKIP_PROGRAM("no temporary folder");
    RUN(whoever_waits_says_for_whom);
    RUN(a_rank_0_that_does_not_answer_is_named);
    RUN(a_rank_that_has_failed_tells_the_others);
    RUN(a_standstill_is_no_time_to_tell);
    RUN(facts_that_cannot_meet_are_told);
    rmdir(folder);
})
