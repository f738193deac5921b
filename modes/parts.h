/* What the modes have in common: cutting a replica's rows into micro-batches, the loss, the clock. */
#ifndef TDM_MODES_PARTS_H
#define TDM_MODES_PARTS_H

#include "runtime/exec/mode.h"

/* Milliseconds since *last, which is moved to now. */
double tdm__lap(int64_t *last);
/* All phases NaN but those listed, which are 0. */
void tdm__times_init(tdm_times *times, const tdm_phase *phases, int count);

/* Micro-batch `part` of `parts` of a shard, by torch.chunk's rule; false when it has no rows. */
bool tdm__micro_batch(const tdm_mode_params *params, const tdm_shard *shard, int64_t parts, int64_t part,
                      tdm_rows *out);
/* `rows` rows from `first` on. */
tdm_rows tdm__some_rows(const tdm_mode_params *params, const tdm_rows *rows, int64_t first, int64_t count);

/* What the mean over these shards divides by. */
int64_t tdm__denominator(const tdm_mode_params *params, const tdm_shard *shards, int count);
/* Loss and, unless dy is NULL, its gradient; *sum and *correct are added to. seed = 1 / denominator of the whole step.
 */
tdm_status tdm__loss(const tdm_mode_params *params, const float *y, const tdm_rows *rows, float seed, float *dy,
                     double *sum, int64_t *correct);

/* A device of this run and a replica on it, with `state_count` arenas of optimizer state. */
tdm_status tdm__open_replica(const tdm_mode_params *params, int index, int state_count, float *grad, tdm_replica **out);
void tdm__close_replica(tdm_replica *replica); /* and its device; NULL is fine */
/* Parameters, buffers and, with_state, optimizer state. */
void tdm__copy_replica(tdm_replica *to, const tdm_replica *from, bool with_state);

#endif
