/* inference.h - a run that only looks: weights and one split, on one device, in this process. */
#ifndef INFERENCE_H
#define INFERENCE_H

#include "tools/commands/tool.h"

typedef struct inference {
    tdm_config *config;
    char *file;  /* of the configuration, where a folder was named */
    tdm_job job; /* the file's, bent to one device, one split and no run directory */
    tdm_run *run;
} inference;

/* Opens CONFIG of `t`, or what a run directory in its place holds, with --weights and --split. */
int inference_open(inference *in, tool *t);
void inference_close(inference *in);

#endif
