/* What glibc 2.31 and its kernel headers (Debian 11) lack. CMake includes this file before every source there. */
#ifndef TDM_OLDER_GLIBC_H
#define TDM_OLDER_GLIBC_H

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* The text of an errno in English, from any thread. glibc 2.32 gave its list of texts a function. */
static inline const char *strerrordesc_np(int error) {
    return error >= 0 && error < sys_nerr ? sys_errlist[error] : NULL;
}

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on x86-64 and aarch64 */
#endif

#endif
