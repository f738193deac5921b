/* What glibc 2.31 and its kernel headers (Debian 11) lack. CMake includes this file before every C source there. */
#ifndef TDM_OLDER_GLIBC_H
#define TDM_OLDER_GLIBC_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* The text of an errno in English, from any thread. glibc 2.32 gave its list of texts a function. */
static inline const char *strerrordesc_np(int error) {
    return error >= 0 && error < sys_nerr ? sys_errlist[error] : NULL;
}

/* The name of a signal without "SIG": of those that end processes. */
static inline const char *sigabbrev_np(int signal) {
    static const char names[][5] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
        [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",   [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
        [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
        [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ", [SIGSYS] = "SYS"};
    const int count = (int)(sizeof names / sizeof names[0]);
    return signal > 0 && signal < count && names[signal][0] != '\0' ? names[signal] : NULL;
}

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on x86-64 and aarch64 */
#endif

#endif
