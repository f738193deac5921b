/* How a batch comes to a discrete device: through pinned memory, on a queue of its own, one step ahead. */
#ifndef TDM_EXEC_STAGE_H
#define TDM_EXEC_STAGE_H

#include "runtime/exec/replica.h"

tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, size_t target_bytes);
void tdm__stage_close(tdm_stage *stage, tdm_replica *replica); /* NULL is fine */
size_t tdm__stage_bytes(const tdm_stage *stage);               /* on the device */
/* Captured work reads the rows where they lie, so it belongs to the place of this step. */
int tdm__stage_place(const tdm_stage *stage);

#endif
