/* Which rank this process is, and how it meets the others. */
#ifndef TDM_COMM_LAUNCH_H
#define TDM_COMM_LAUNCH_H

#include <tandem/comm.h>

/* A variable's value, or NULL. */
typedef const char *(*tdm_variable_fn)(const char *name, void *user);

/* Like tdm_launch_from_env, but reads the variables through a function. */
tdm_status tdm__launch_from(tdm_launch_facts *out, tdm_variable_fn variable, void *user);
tdm_status tdm__launch_from_env(tdm_launch_facts *out);

/* Gives *fd, a descriptor for tdm__comm_open_shm that the caller owns. If facts->fd is set, *fd is a duplicate of it.
 * Otherwise rank 0 makes the shared memory and sends the descriptor to the others over a local socket: an abstract one
 * named after the user and the job or, for file:///path, a socket file beside that path. Only processes of the same
 * user are served. While ranks are missing, a warning is logged after five seconds and then every minute. The wait
 * fails if the process that listens as rank 0 does not answer for heartbeat_ms (0: no limit; else at least 1000). */
tdm_status tdm__rendezvous_shm(int *fd, const tdm_launch_facts *facts, const tdm_host *host, const char *init_method,
                               int64_t timeout_ms, int64_t heartbeat_ms);
/* For a rank that has failed before the rendezvous: goes there only to report the failure to the others, for at most
 * three seconds. */
void tdm__rendezvous_fail(const tdm_launch_facts *facts, const char *init_method, const char *why);

#endif
