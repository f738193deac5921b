/* See meeting.h. */
#include "tests/comm/meeting.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/hash.h"

tdm_launch_facts meeting_facts(int rank, int world, const char *job) {
    tdm_launch_facts facts = {
        sizeof(facts), TDM_LAUNCH_TORCHRUN, rank, world, rank, world, -1, "localhost", 29500, "", 0};
    snprintf(facts.job, sizeof(facts.job), "%s-%ld", job, (long)getppid());
    return facts;
}

pid_t meeting_child(meeting_fn fn, int rank, int world, const char *job, const char *init_method) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tdm_test_failures = 0;
    fn(rank, world, job, init_method);
    fflush(NULL);
    exit(tdm_test_failures != 0);
}

int meeting_end(pid_t pid) {
    int wait_status = -1;
    waitpid(pid, &wait_status, 0);
    return wait_status;
}

void meeting_come(int rank, int world, const char *job, const char *init_method) {
    int fd = -1;
    tdm_launch_facts facts = meeting_facts(rank, world, job);
    CHECK_OK(tdm_launch_meet(&fd, &facts, tdm_host_default(), init_method, 20000, TDM_HEARTBEAT_MS));
    close(fd);
}

socklen_t meeting_name(struct sockaddr_un *address, const char *job, const char *end) {
    char key[128];
    snprintf(key, sizeof(key), " %s-%ld", job, (long)getpid());
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "tandem-%lu-%016llx%s",
                          (unsigned long)geteuid(), (unsigned long long)tdm__hash64(key, strlen(key), 0), end);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
