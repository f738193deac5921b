/* Does a process still run? A process descriptor tells for certain. Without one, the pid and the start time in /proc
 * do. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/comm/shm/shm.h"

enum { STAT_TEXT = 1024, FIELD_STATE = 3, FIELD_START = 22 };

/* State letter and start time of a process; false if there is no such process or no /proc. */
static bool read_stat(int32_t pid, char *state, uint64_t *start) {
    char path[32], text[STAT_TEXT];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0) return false;
    text[length] = '\0';
    /* Field 2, the name, may contain any character. It ends at the last closing parenthesis. */
    const char *at = strrchr(text, ')');
    if (at == NULL || strlen(at) < 3) return false;
    at += 2;
    *state = *at;
    for (int field = FIELD_STATE; field < FIELD_START; field++) {
        at = strchr(at, ' ');
        if (at == NULL) return false;
        at++;
    }
    *start = strtoull(at, NULL, 10);
    return true;
}

static uint64_t own_space(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

void tdm__process_note(tdm_process *process) {
    char state;
    process->pid = (int32_t)getpid();
    process->space = own_space();
    if (!read_stat(process->pid, &state, &process->start)) process->start = 0;
}

int tdm__process_watch(const tdm_process *process) {
#ifdef SYS_pidfd_open
    char state;
    uint64_t start;
    if (process->pid == 0 || process->space != own_space()) return -1;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0) return -1;
    /* The pid may belong to a newer process by now. Then its start time differs, and tdm__process_gone finds that. */
    if (process->start == 0 || (read_stat(process->pid, &state, &start) && start == process->start)) return fd;
    close(fd);
#else
    (void)process;
#endif
    return -1;
}

bool tdm__process_gone(const tdm_process *process, int watch) {
    char state;
    uint64_t start;
    if (process->pid == 0 || process->space != own_space()) return false;
    if (watch >= 0) {
        struct pollfd entry = {.fd = watch, .events = POLLIN};
        return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
    }
    if (process->start == 0) return kill(process->pid, 0) != 0 && errno == ESRCH;
    return !read_stat(process->pid, &state, &start) || state == 'Z' || state == 'X' || start != process->start;
}
