/* What has changed since the checkpoint that a run goes on from. */
#ifndef TDM_TRAIN_RESUME_H
#define TDM_TRAIN_RESUME_H

#include "runtime/train/run.h"

/* Settings as lines, as they were saved and as they are; both empty where the checkpoint has none. */
typedef struct tdm_changes {
    tdm_text saved, now;
} tdm_changes;

/* Of a checkpoint with state. TDM_E_CHECKPOINT names the first key that a run cannot be continued with another value
 * of, with both values. To be forgotten whatever comes back. */
tdm_status tdm__changes_read(tdm_changes *out, const tdm_run *run, tdm_ckpt *ckpt);
/* Every other key whose value is another, a warning each. */
void tdm__changes_tell(const tdm_changes *changes, const tdm_run *run);
void tdm__changes_forget(tdm_changes *changes);

#endif
