/* TensorBoard's event files: the numbers of metrics.jsonl as scalars. A file is a sequence of records (TFRecord), each
 * one an Event of tensorflow/core/util/event.proto. */
#ifndef TDM_TRAIN_TENSORBOARD_H
#define TDM_TRAIN_TENSORBOARD_H

#include "runtime/train/log/metrics.h"

#define TDM_TENSORBOARD "tensorboard" /* the folder, in the run directory */

typedef struct tdm_tensorboard {
    const tdm_host *host;
    tdm_metrics file; /* events that cannot be written wait there, as lines of metrics.jsonl do */
    tdm_folder folder;
    char name[160];
} tdm_tensorboard;

typedef struct tdm_scalar {
    const char *tag; /* "train/loss"; at most 63 bytes */
    double value;    /* written as a float */
} tdm_scalar;
enum { TDM_SCALARS_MAX = 8 };

/* Makes a new file in `dir`/tensorboard, for a run that continues after `step` (0: from the beginning): TensorBoard
 * then forgets what earlier files say of later steps. The folder's path is in the zone. */
tdm_status tdm__tensorboard_open(tdm_tensorboard *board, const tdm_host *host, const tdm_file_ops *ops,
                                 const tdm_folder *dir, tdm_zone *zone, int64_t step);
/* Adds one event with at most TDM_SCALARS_MAX scalars. A storage failure is reported once and is not an error. Does
 * nothing if no file is open. */
tdm_status tdm__tensorboard_add(tdm_tensorboard *board, int64_t step, const tdm_scalar *scalars, int count);
/* Writes what waits, if that is possible again. Does nothing if no file is open. */
void tdm__tensorboard_close(tdm_tensorboard *board);

#endif
