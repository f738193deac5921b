/* A file system that fails at its k-th call, or loses power there. Everything is really done in a folder; fsync only
 * marks what is durable, so that at a loss of power the rest can be torn. */
#ifndef TDM_CKPT_FAULT_OPS_H
#define TDM_CKPT_FAULT_OPS_H

#include "runtime/base/system/file.h"

/* What becomes of a file whose bytes, or whose name in its folder, were not made durable before the power went. */
enum { TEAR_NONE, TEAR_EMPTY, TEAR_HALF, TEAR_ZEROES, TEAR_GONE, TEAR_COUNT };

enum { FAULT_FILES = 64 };

typedef struct fault_ops {
    tdm_file_ops ops;
    long fail_at; /* counted from 1; 0: never */
    int error;    /* the errno of call fail_at, which alone fails; 0: the power goes there */
    int tear;
    bool no_exchange; /* a file system that cannot exchange two names */
    long calls;
    bool failed, dead;
    const char *failed_call; /* "pwrite" */
    char pending[512];       /* folder with a final name that is not durable yet; "" if none */
    int early; /* final names given to what was not durable, removals before a final name was: 0 if all is right */
    int count;
    struct {
        char path[512];
        int fd;               /* -1 when closed */
        off_t durable;        /* bytes from its start on */
        bool dirty, unlinked; /* bytes behind those, or name, not durable */
    } file[FAULT_FILES];
} fault_ops;

void fault_ops_init(fault_ops *f, long fail_at, int error);

#endif
