/* Ranks as children of a test, which find one another as ranks do that somebody else has started. */
#ifndef TEST_COMM_MEETING_H
#define TEST_COMM_MEETING_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "runtime/comm/comm.h"
#include "runtime/comm/comm.h"
#include "tests/support/tdm_test.h"

typedef void (*meeting_fn)(int rank, int world, const char *job, const char *init_method);

/* In a child: of a job that no other test program has. */
tdm_launch_facts meeting_facts(int rank, int world, const char *job);
/* Runs it in a child, whose failed checks make its exit status 1. */
pid_t meeting_child(meeting_fn fn, int rank, int world, const char *job, const char *init_method);
int meeting_end(pid_t pid); /* what waitpid says */
/* A meeting_fn: comes, meets and goes. */
void meeting_come(int rank, int world, const char *job, const char *init_method);

/* The name of the socket at which children of this process meet for `job`; `end` is appended. */
socklen_t meeting_name(struct sockaddr_un *address, const char *job, const char *end);

#endif
