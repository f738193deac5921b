/* Which rank this process is, and how it meets the others. */
#ifndef TDM_COMM_LAUNCH_H
#define TDM_COMM_LAUNCH_H

#include <tandem/comm.h>

/* A variable's value, or NULL. */
typedef const char *(*tdm_variable_fn)(const char *name, void *user);

/* As tdm_launch_from_env, from any set of variables. */
tdm_status tdm__launch_from(tdm_launch_facts *out, tdm_variable_fn variable, void *user);
tdm_status tdm__launch_from_env(tdm_launch_facts *out);

/* A descriptor for tdm__comm_open_shm, the caller's: a duplicate of facts->fd if there is one, else made by rank 0 and
 * handed to the others over a local socket: an abstract one named after the user and the job, or, for file:///path, one
 * beside that path. Only processes of the same user are served. While somebody is missing that is logged, after five
 * seconds and then each minute. Where somebody listens in rank 0's place and does not answer for heartbeat_ms (0: for
 * ever; else at least 1000) the wait ends. */
tdm_status tdm__rendezvous_shm(int *fd, const tdm_launch_facts *facts, const tdm_host *host, const char *init_method,
                               int64_t timeout_ms, int64_t heartbeat_ms);
/* Instead of that, for a rank that has failed: tells the others, for at most three seconds. */
void tdm__rendezvous_fail(const tdm_launch_facts *facts, const char *init_method, const char *why);

#endif
