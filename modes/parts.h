/* What the modes have in common: cutting a replica's rows into micro-batches, the loss, the clock, replicas. */
#ifndef TDM_MODES_PARTS_H
#define TDM_MODES_PARTS_H

#include "runtime/exec/mode.h"

/* Milliseconds since *last, which is moved to now. */
double tdm__lap(int64_t *last);

/* Micro-batch `part` of `parts` of a shard, by torch.chunk's rule; false when it has no rows. */
bool tdm__micro_batch(const tdm_mode_params *params, const tdm_rows *all, int64_t parts, int64_t part, tdm_rows *out);
/* What decides the work of a step beside the job: the rows of each part. */
tdm_hash128 tdm__step_key(const tdm_shard *shards, int count);

/* Of one row's target. */
size_t tdm__target_bytes(const tdm_mode_params *params);
/* What the mean over these shards divides by. */
int64_t tdm__denominator(const tdm_mode_params *params, const tdm_shard *shards, int count);
/* Puts the loss of these outputs on the replica's queue, and its gradient unless dy is NULL; the sum is added to
 * outcome->loss[part], hits to outcome->correct. */
tdm_status tdm__loss(const tdm_mode_params *params, tdm_replica *replica, const float *y, const tdm_rows *rows,
                     float *dy, int part);
/* Forward, loss and backward of one micro-batch, each with its lap. hooks may be NULL. */
tdm_status tdm__pass(const tdm_mode_params *params, tdm_replica *replica, const tdm_rows *rows, bool first, int part,
                     const tdm_exec_hooks *hooks);

/* A device of this run and a replica on it. The job says the options' seed, rows and target_bytes. */
tdm_status tdm__open_replica(const tdm_mode_params *params, tdm_replica_options options, tdm_replica **out);
void tdm__close_replica(tdm_replica *replica); /* and its device; NULL is fine */
/* Evaluation forward of one shard; the output is in host memory until the next. */
tdm_status tdm__evaluate(tdm_replica *replica, const tdm_shard *shard, const float **output);
/* Parameters, buffers and, with_state, optimizer state; put on the queue of `to`. */
tdm_status tdm__copy_replica(tdm_replica *to, const tdm_replica *from, bool with_state);

#endif
