/* Compares a run with the checkpoint that it continues from. */
#ifndef TDM_TRAIN_RESUME_H
#define TDM_TRAIN_RESUME_H

#include "runtime/train/run.h"

/* Settings as lines, as they were saved and as they are; both empty if the checkpoint has none. */
typedef struct tdm_changes {
    tdm_text saved, now;
} tdm_changes;

/* For a checkpoint with state. TDM_E_CHECKPOINT names the first changed key that a run cannot continue with, and both
 * values. The caller releases the result even after a failure. */
tdm_status tdm__changes_read(tdm_changes *out, const tdm_run *run, tdm_ckpt *ckpt);
/* One warning for each other changed key. */
void tdm__changes_report(const tdm_changes *changes, const tdm_run *run);
void tdm__changes_forget(tdm_changes *changes);

#endif
