/* session.h - a training run of the command: configuration, rank, and the open run. Shared by the verbs that train. */
#ifndef SESSION_H
#define SESSION_H

#include "tools/tool.h"

#include <tandem/comm.h>

typedef struct session {
    tool *t;
    tdm_config *config;
    const tdm_job *job;
    tdm_launch_facts facts;
    int fd;         /* shared by the ranks; -1: a single process, or several hosts */
    tdm_comm *comm; /* over several hosts; NULL: a single process, or one host */
    bool shows;     /* this process prints: it is rank 0, or the only process */
    char *resolved; /* the resolved configuration, as written to the run directory */
    tdm_run *run;
} session;

/* Reads the environment and the configuration. */
int session_configure(session *s, tool *t, const char *const *extra);
/* How many ranks this process must start: the devices of a ddp job if no launcher started its ranks, else 0. A single
 * device needs no process of its own unless `among_hosts`. */
int session_ranks_to_start(const session *s, bool among_hosts);
/* Opens the run in this process: as the only process, or as the rank that the environment gives. */
int session_open(session *s, int (*on_event)(const tdm_event *event, void *user), void *user);
/* Prints the error of `status`, or sends it to the parent, which prints it. Returns the exit code. */
int session_failed(const session *s, tdm_status status);
void session_close(session *s);

#endif
