/* A job as lines `key: value`, and the differences between two such texts: between ranks, or between a run and the
 * checkpoint that it continues from. */
#ifndef TDM_TRAIN_LINES_H
#define TDM_TRAIN_LINES_H

#include <tandem/job.h>

#include "runtime/base/text/text.h"
#include "runtime/graph/graph.h"

typedef struct tdm_line {
    const char *key, *value; /* within a text */
    int key_length, length;  /* of the value */
} tdm_line;

/* Adds every setting of the job except those with one of the flags `without`, every layer of the graph, and what is
 * frozen. */
tdm_status tdm__lines_of(const tdm_job *job, const tdm_graph *graph, unsigned without, tdm_text *text);

/* Reads the line at *at and moves *at to the next one; false at the end. */
bool tdm__next_line(const char **at, tdm_line *out);
/* Calls `report` for each key whose value differs, in the order of `mine` and then of `theirs`. A missing line has the
 * value "none". */
void tdm__lines_compare(const char *mine, const char *theirs,
                        void (*report)(void *user, const tdm_line *mine, const tdm_line *theirs), void *user);

#endif
