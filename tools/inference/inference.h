/* inference.h - a run that does not train: weights and one split, on one device, in this process. */
#ifndef INFERENCE_H
#define INFERENCE_H

#include "tools/tool.h"

typedef struct inference {
    tdm_config *config;
    char *file;                  /* path of the configuration, if the argument was a folder */
    char *weights;               /* the checkpoint of --checkpoint; NULL: none */
    char *names[TDM_SHAPES_MAX]; /* of the inputs that have an array of their own */
    tdm_job job;                 /* the job of the file, changed to one device, one split and no run directory */
    tdm_run *run;
} inference;

/* Opens the configuration of CONFIG or of a run directory, with --weights and --checkpoint: the job with its weights.
 * *weights: where they were asked for; NULL: nowhere, the job's count. */
int inference_job(inference *in, tool *t, const char **weights);
/* Is the word the file of a model, by its name? */
bool inference_is_model(const char *path);
/* Opens the configuration that the file of a model carries, with the overrides. The exit code. */
int inference_model(tool *t, tdm_config **out);
/* The path of the checkpoint that --checkpoint names in a run directory (NULL: there is none), into *out, which the
 * caller frees; without the flag *out stays. The exit code. */
int inference_checkpoint(const tool *t, const char *run, char **out);
/* Where samples come from. */
typedef enum inference_data {
    INFERENCE_SPLIT, /* --split of the configuration */
    INFERENCE_TABLE, /* the table that is the second word, read as that trained on; its label may be missing */
    INFERENCE_ARRAY, /* the .npy file that is the second word, or one for each input of the model; without labels */
    INFERENCE_NONE   /* the command; the data of the configuration need not be there */
} inference_data;
/* Opens CONFIG of `t`, or the configuration of a run directory, with --weights, --checkpoint and --split. */
int inference_open(inference *in, tool *t, inference_data data);
/* Of the data, a table: a line on stderr for each column that has categories which the data trained on does not have.
 * The exit code. */
int inference_tell_unseen(const tdm_run *run);
void inference_close(inference *in);

#endif
