/* Runs a command, its output to stderr, and prints what it took: its exit status, microseconds of processor time, and
 * the peak of its memory in KiB. A small program, because that peak counts what the parent of a process had, too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long us_of(struct timeval time) {
    return 1000000LL * time.tv_sec + time.tv_usec;
}

int main(int argc, char **argv) {
    int status;
    struct rusage usage;
    pid_t pid = argc > 1 ? fork() : -1;
    if (pid == 0) {
        if (dup2(2, 1) == 1) execv(argv[1], argv + 1);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
        perror("cost");
        return 1;
    }
    printf("%d %lld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
           us_of(usage.ru_utime) + us_of(usage.ru_stime), usage.ru_maxrss);
    return 0;
}
