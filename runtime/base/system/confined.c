/* fork, rlimits and a seccomp filter that lists the few calls that stay allowed. */
#include "runtime/base/system/confined.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- in the child ---- */

static const uint32_t allowed[] = {
    SYS_read,     SYS_pread64,      SYS_write,         SYS_lseek,       SYS_brk,  SYS_mmap,
    SYS_munmap,   SYS_mremap,       SYS_madvise,       SYS_futex,       SYS_exit, SYS_exit_group,
    SYS_mprotect, SYS_rt_sigreturn, SYS_clock_gettime, SYS_sigaltstack, /* sanitizers ask at the end */
};
enum { ALLOWED = sizeof(allowed) / sizeof(allowed[0]) };

#if defined(__x86_64__)
static const uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
static const uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
#error "name this machine's AUDIT_ARCH"
#endif

static int give_up_rights(void) {
    struct sock_filter filter[ALLOWED + 6];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) /* to the last statement */
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(ALLOWED - i), 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    const struct rlimit seconds = {60, 60}, none = {0, 0};
    if (setrlimit(RLIMIT_CPU, &seconds) != 0 || setrlimit(RLIMIT_CORE, &none) != 0 ||
        setrlimit(RLIMIT_FSIZE, &none) != 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int tdm__confined_write(int out, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        const ssize_t wrote = write(out, at, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return 0;
        at += wrote;
        count -= (size_t)wrote;
    }
    return 1;
}

/* The page before an allocation holds its size. */
enum { HEAD = 4096 };

static void *allocate_pages(void *user, size_t bytes, size_t align) {
    (void)user;
    if (align > HEAD || bytes > SIZE_MAX - HEAD) return NULL;
    size_t *head = mmap(NULL, bytes + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (head == MAP_FAILED) return NULL;
    *head = bytes + HEAD;
    return (char *)head + HEAD;
}

static void release_pages(void *user, void *pointer) {
    (void)user;
    if (pointer == NULL) return;
    size_t *head = (size_t *)(void *)((char *)pointer - HEAD);
    (void)munmap(head, *head);
}

static const tdm_host pages_host = {
    .size = sizeof(tdm_host), .allocate = allocate_pages, .release = release_pages, .log_level = TDM_LOG_ERROR};

const tdm_host *tdm__confined_host(void) {
    return &pages_host;
}

/* ---- in the parent ---- */

static tdm_status read_answer(const tdm_host *host, int in, size_t most, char **answer, size_t *count) {
    size_t room = 0;
    for (;;) {
        TDM_TRY(tdm__grow(host, answer, &room, *count + 65536, 1, "the answer of a confined process"));
        const ssize_t got = read(in, *answer + *count, room - *count);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) TDM_FAIL(TDM_E_IO, "the answer of a confined process cannot be read: %s", strerror(errno));
        if (got == 0) return TDM_OK;
        *count += (size_t)got;
        if (*count > most) TDM_FAIL(TDM_E_CHECKPOINT, "the description of its tensors is longer than %zu bytes", most);
    }
}

static tdm_status verdict(int state) {
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return TDM_OK;
    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGSYS)
        TDM_FAIL(TDM_E_CHECKPOINT, "its reader was stopped: it made a system call that a reader may not make");
    if (WIFSIGNALED(state))
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "its reader was stopped by signal %d: the file needs too much time or memory, or crashes it",
                 WTERMSIG(state));
    TDM_FAIL(TDM_E_IO, "a process without rights cannot be made here (seccomp), so the file is not read");
}

tdm_status tdm__confined_run(const tdm_host *host, tdm_confined_work work, void *user, size_t most, void **answer,
                             size_t *count) {
    int ends[2], state = 0;
    char *bytes = NULL;
    *answer = NULL;
    *count = 0;
    if (pipe(ends) != 0) TDM_FAIL(TDM_E_IO, "a pipe cannot be made: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        _exit(give_up_rights() != 0 ? 1 : work(user, ends[1]) != 0 ? 2 : 0);
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        TDM_FAIL(TDM_E_IO, "a process cannot be started: %s", strerror(errno));
    }
    tdm_status status = read_answer(host, ends[0], most, &bytes, count);
    (void)close(ends[0]);
    if (status != TDM_OK) (void)kill(child, SIGKILL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (status == TDM_OK) status = verdict(state);
    *answer = bytes;
    if (status == TDM_OK) return TDM_OK;
    tdm__delete(host, bytes);
    *answer = NULL;
    return status;
}
