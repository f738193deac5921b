/* Statistics of all replicas' batches (parallel.sync_batchnorm). Forward and backward stop where replicas exchange
 * theirs, and go on when this replica has the blocks of all (runtime/exec/replica.h).
 *
 * Replicas of one process go in stretches: each runs until it stops, then they exchange, then each goes on. A pass
 * without statistics is one stretch. A replica without rows in a pass takes no part. A rank without rows (ddp) stops
 * where the others do, because all ranks take part in an exchange; nobody reads its blocks. */
#ifndef TDM_MODES_EXCHANGE_H
#define TDM_MODES_EXCHANGE_H

#include "modes/common.h"

/* Says in the rows of `count` replicas which replica each belongs to, and which have rows. */
void tdm__exchange_mark(tdm_rows *rows, int count);
/* Which of `replicas`, to which `rows` rows are dealt out in turn, have rows in micro-batch `index` of `micro`; a bit
 * each. */
uint64_t tdm__exchange_present(int64_t rows, int replicas, int64_t micro, int64_t index);
/* The first replica that has rows; -1: none. */
int tdm__exchange_first(const tdm_rows *rows, int count);
/* Bytes between devices in a step, of all devices together: each sends its blocks to all others. */
int64_t tdm__exchange_bytes(const tdm_plan *plan, const tdm_job *job, int replicas);

#endif
