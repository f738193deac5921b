/* How batches come to a discrete device: through places in its memory, ahead of their steps, on a queue of their own;
 * at the beginning of a step the device ingests the one whose turn it is. */
#ifndef TDM_EXEC_STAGE_H
#define TDM_EXEC_STAGE_H

#include "runtime/exec/replica.h"

/* `parts` of at most `rows` rows each. */
tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, int parts, size_t target_bytes);
void tdm__stage_close(tdm_stage *stage, tdm_replica *replica); /* NULL is fine */
size_t tdm__stage_bytes(const tdm_stage *stage);               /* on the device */
/* Which place holds the batch of this step. */
uint32_t tdm__stage_place(const tdm_stage *stage);
/* Behind the work that ingested it: the place may be written again. */
tdm_status tdm__stage_release_place(tdm_stage *stage, tdm_replica *replica);

#endif
