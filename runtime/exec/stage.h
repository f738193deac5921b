/* How batches come to a discrete device and outcomes back: through places in its memory, beside the work of other
 * steps.
 */
#ifndef TDM_EXEC_STAGE_H
#define TDM_EXEC_STAGE_H

#include "runtime/exec/replica.h"

/* `parts` of at most `rows` rows each. */
tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, int parts, size_t target_bytes);
void tdm__stage_close(tdm_stage *stage, tdm_replica *replica); /* NULL is fine */
size_t tdm__stage_bytes(const tdm_stage *stage);               /* on the device */
/* Which place this step's rows and values are in, 0 to TDM_PLACES - 1. */
int tdm__stage_place(const tdm_stage *stage);
/* The step's values come to its place; what is put on the device's queue from now on finds them there, and the rows. */
tdm_status tdm__stage_begin(tdm_stage *stage, tdm_replica *replica, const tdm_flight *flight);
/* Behind the step's work: its outcome comes to flight->host, and flight->done says when. */
tdm_status tdm__stage_leave(tdm_stage *stage, tdm_replica *replica, const tdm_flight *flight);

#endif
