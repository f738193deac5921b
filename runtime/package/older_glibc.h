/* What glibc 2.31 and its kernel headers (Debian 11) lack. CMake includes this file before every C source there. */
#ifndef TDM_OLDER_GLIBC_H
#define TDM_OLDER_GLIBC_H

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

/* The text of an errno in English, from any thread; NULL: it is none. glibc 2.32 gave its list of texts a function, and
 * its name to no program any more: a static library that asks for it would link on older systems alone. */
static inline const char *strerrordesc_np(int error) {
    const int is_known = error >= 0 && error <= EHWPOISON && error != 41 && error != 58;  /* two that Linux left out */
    return is_known ? strerror_l(error, newlocale(LC_ALL_MASK, "C", (locale_t)0)) : NULL; /* "C" takes no memory */
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
