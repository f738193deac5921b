/* banner.h - the output before the first step and after the last. */
#ifndef BANNER_H
#define BANNER_H

#include "tools/tool.h"

#include <tandem/comm.h>

typedef struct banner {
    const tool *t;
    const tdm_job *job;
    const tdm_graph *graph;
    const tdm_launch_facts *facts;
    tdm_run *run;
    const tdm_run_state *state; /* before the first step of this process */
    bool dry;                   /* nothing will be written */
} banner;

void banner_print(const banner *b); /* at most 14 lines on stderr */
/* The command that continues this run: "tandem train job.yaml ... --run-dir DIR". */
char *banner_resume_command(const tool *t, const char *run_dir);

/* summary.c: a table on stdout, and the next command to type. */
void summary_print(const tool *t, const tdm_job *job, tdm_run *run, bool stopped, bool brief);

#endif
