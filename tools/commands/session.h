/* session.h - a run as the command holds it: configuration, place among the ranks, and the opened run. Shared by the
 * verbs that open one. */
#ifndef SESSION_H
#define SESSION_H

#include "tools/commands/tool.h"

#include <tandem/comm.h>

typedef struct session {
    tool *t;
    tdm_config *config;
    const tdm_job *job;
    tdm_launch_facts facts;
    int fd;         /* shared by the ranks; -1 alone */
    bool shows;     /* rank 0, or alone */
    char *resolved; /* the configuration as it goes into the run directory */
    tdm_run *run;
} session;

/* Reads the environment and the configuration. */
int session_configure(session *s, tool *t, const char *const *extra);
/* A ddp job over several devices that nobody has started the ranks of? Then how many, else 0. */
int session_ranks_to_start(const session *s);
/* Opens the run in this process: alone, or as the rank that the environment says. */
int session_open(session *s, int (*on_event)(const tdm_event *event, void *user), void *user);
/* The error of `status` is told, here or by the parent of the ranks; returns the exit code. */
int session_failed(const session *s, tdm_status status);
void session_close(session *s);

#endif
