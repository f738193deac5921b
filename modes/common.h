/* What the modes share: micro-batches, the loss, replicas. */
#ifndef TDM_MODES_COMMON_H
#define TDM_MODES_COMMON_H

#include "runtime/exec/mode.h"

/* Returns the milliseconds since *last and sets *last to now. */
double tdm__ms_passed(const tdm_host *host, int64_t *last);

/* Micro-batch `index` of `count` of a shard, cut as torch.chunk does; false if it has no rows. */
bool tdm__micro_batch(const tdm_mode_params *params, const tdm_rows *all, int64_t count, int64_t index, tdm_rows *out);
/* The capture key of a step's work: the rows of each part, those of all ranks, and how far it goes.
 * tdm__forward_key, tdm__backward_key: of a micro-batch that goes alone. tdm__update_key: of an update alone, which
 * does not depend on rows. */
tdm_hash128 tdm__step_key(const tdm_batch *batch, const tdm_update *update);
tdm_hash128 tdm__forward_key(const tdm_batch *batch, int64_t micro_batch);
tdm_hash128 tdm__backward_key(const tdm_batch *batch, int64_t micro_batch);
static inline tdm_hash128 tdm__update_key(void) {
    return (tdm_hash128){1, 0};
}

size_t tdm__target_bytes(const tdm_plan *plan); /* of one row */
/* The divisor of the mean loss over these shards, added as the canonical tree. */
double tdm__denominator(const tdm_mode_params *params, const tdm_shard *shards, int count);
/* Queues the loss of these outputs, and its gradient unless dy is NULL. Adds the sum to outcome->loss[part] and the
 * hits to outcome->correct. */
tdm_status tdm__loss(const tdm_mode_params *params, tdm_replica *replica, const float *y, const tdm_rows *rows,
                     float *dy, int part);
/* The loss of the replica's own output. Does nothing without rows. */
tdm_status tdm__loss_of_output(const tdm_mode_params *params, tdm_replica *replica, const tdm_rows *rows, int part);
/* Forward, loss and backward of one micro-batch, each with its lap. Replicas exchange statistics on the way; without
 * rows a replica does only that and what reduces gradients, because other ranks wait for it. hooks may be NULL. */
tdm_status tdm__pass(const tdm_mode_params *params, tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                     int part, const tdm_exec_hooks *hooks);
/* Its two directions, of one stage. */
tdm_status tdm__pass_forward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                             const tdm_exec_hooks *hooks);
tdm_status tdm__pass_backward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                              const tdm_exec_hooks *hooks);

/* The stage that has the gradients of a bucket. */
int tdm__bucket_stage(const tdm_plan *plan, int bucket);
/* Where the gradients of a bucket lie, in the memory of the stage that has them. */
float *tdm__replica_bucket(const tdm_replica *replica, int bucket);
/* Copies the gradients of all stages, in the arena's layout, from their devices to the host or back. Waits for the
 * devices. */
tdm_status tdm__copy_gradients(const tdm_replica *replica, float *host, bool to_host);

/* Adds to a step's result what a forward alone, or a backward, tells: on the CPU, its times. */
void tdm__forward_result(const tdm_replica *replica, const tdm_times *times, tdm_step_result *result);
void tdm__backward_result(const tdm_replica *replica, const tdm_times *times, tdm_step_result *result);
/* Adds to a step's result what an update alone tells: the norm of the gradients and, on the CPU, its time. */
void tdm__update_result(const tdm_replica *replica, const tdm_update *update, const tdm_times *times,
                        const tdm_outcome *outcome, tdm_step_result *result);

/* Opens a device of this run and a replica on it, or one for each stage; `out` is the first. Sets the options' seed,
 * rows and target_bytes. */
tdm_status tdm__open_replica(const tdm_mode_params *params, tdm_replica_options options, tdm_replica **out);
void tdm__close_replica(tdm_replica *replica); /* and its device; NULL is fine */
/* Evaluation forward of one shard. *output is in host memory and valid until the next call. */
tdm_status tdm__evaluate(tdm_replica *replica, const tdm_shard *shard, const float **output);
/* Queues, on the device of `to`, copies of what a step has changed: trained parameters and buffers. */
tdm_status tdm__copy_trained(tdm_replica *to, const tdm_replica *from);
/* Queues, on the device of `to`, copies of parameters, buffers and, with_state, optimizer state. */
tdm_status tdm__copy_replica(tdm_replica *to, const tdm_replica *from, bool with_state);

#endif
