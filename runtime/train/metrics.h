/* metrics.jsonl: a line for each step that is logged and for each evaluation, appended. The training goes on without
 * it: what cannot be written is kept, and written later. */
#ifndef TDM_TRAIN_METRICS_H
#define TDM_TRAIN_METRICS_H

#include "runtime/base/file.h"
#include "runtime/base/text.h"

enum {
    TDM_METRICS_LINE = 1 << 16, /* bytes; a longer line is none of ours */
    TDM_METRICS_KEPT = 4 << 20, /* bytes of lines that wait to be written; more are left out */
};

#define TDM_METRICS "metrics.jsonl"
#define TDM_METRICS_CUT "metrics.jsonl.cut"

typedef struct tdm_metrics {
    const tdm_host *host;
    const tdm_file_ops *ops;
    const tdm_folder *folder; /* borrowed */
    int fd;                   /* -1: not open */
    tdm_text kept;            /* lines that are not written yet; the first of them may be written in part */
    int64_t lines, left_out;  /* in kept; that found no room there, since it last was empty */
    bool failing;             /* the last write failed, and that is told */
} tdm_metrics;

/* Opens it to append; its folder stays the caller's. */
tdm_status tdm__metrics_open(tdm_metrics *metrics, const tdm_host *host, const tdm_file_ops *ops,
                             const tdm_folder *folder);
/* For a run that goes on after `step`: lines of later steps (with eval_due, and of an evaluation of that step), a torn
 * last line, and what cannot be read go to the end of metrics.jsonl.cut, which is told; all others stay. A last line
 * that lacks only its newline is whole, and gets it. Reads once through, in bounded memory. A crash at any instant
 * loses no line; what it finds half done, the next call does again, so that a line may be in both files. */
tdm_status tdm__metrics_rewind(tdm_metrics *metrics, int64_t step, bool eval_due);
/* Writes one line, with all that are kept, and empties `line`. Storage that fails is told once and is no failure. */
tdm_status tdm__metrics_add(tdm_metrics *metrics, tdm_text *line);
/* Tells how many lines are lost, if any are kept still. Nothing for one that is not open. */
void tdm__metrics_close(tdm_metrics *metrics);

#endif
