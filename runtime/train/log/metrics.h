/* metrics.jsonl: one line for each logged step and each evaluation, appended. Training goes on without it: lines that
 * cannot be written are kept and written later. Other logs are appended in the same way: their records are lines here.
 */
#ifndef TDM_TRAIN_METRICS_H
#define TDM_TRAIN_METRICS_H

#include "runtime/base/system/file.h"
#include "runtime/base/text/text.h"

enum {
    TDM_METRICS_LINE = 1 << 16, /* bytes; we write no longer line */
    TDM_METRICS_KEPT = 4 << 20, /* bytes of lines that wait to be written; further lines are dropped and counted */
};

#define TDM_METRICS "metrics.jsonl"
#define TDM_METRICS_CUT "metrics.jsonl.cut"

typedef struct tdm_metrics {
    const tdm_host *host;
    const tdm_file_ops *ops;
    const tdm_folder *folder; /* borrowed */
    const char *name;         /* of the file, borrowed */
    int fd;                   /* -1: not open */
    tdm_text kept;            /* lines not written yet; the first may be written in part */
    int64_t lines, left_out;  /* lines in kept; lines dropped since it was last empty */
    bool failing;             /* the last write failed, and this was reported */
} tdm_metrics;

/* Opens the file to append; the caller keeps its folder and its name. */
tdm_status tdm__metrics_open(tdm_metrics *metrics, const tdm_host *host, const tdm_file_ops *ops,
                             const tdm_folder *folder, const char *name);
/* Of metrics.jsonl, for a run that continues after `step`. Lines of later steps (with eval_due, also of an evaluation
 * of that step), a torn last line and unreadable lines move to the end of metrics.jsonl.cut, with a warning; all others
 * stay. A last line that lacks only its newline is whole and gets one. Reads the file once, in bounded memory. A crash
 * at any instant loses no line: the next call repeats what it finds half done, so a line may then be in both files. */
tdm_status tdm__metrics_rewind(tdm_metrics *metrics, int64_t step, bool eval_due);
/* Writes one line after all kept ones, and empties `line`. A storage failure is reported once and is not an error. */
tdm_status tdm__metrics_add(tdm_metrics *metrics, tdm_text *line);
/* Reports how many lines are lost, if any are still kept. Does nothing if the file is not open. */
void tdm__metrics_close(tdm_metrics *metrics);

#endif
