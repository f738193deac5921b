/* A replica's part of a step: forward, loss and backward of its micro-batches, and the update.
 *
 * A replica of one stage runs them one after another, on the calling thread. With several stages (parallel.stages) each
 * has a device and a thread, and micro-batches follow each other through them (1F1B). Stage k of p runs p - 1 - k
 * micro-batches forward, then one forward and one backward in turn, then the backward of the rest:
 *
 *     stage 0   F0 F1 F2       B0 F3 B1 F4 B2    B3    B4
 *     stage 1      F0 F1    B0 F2 B1 F3 B2 F4 B3    B4
 *     stage 2         F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
 *
 * So it has at most p - k of them in its memory. Each stage takes micro-batches in their order, forward and backward:
 * gradients and batch-norm statistics have the bits of one device with the same micro-batches. */
#ifndef TDM_MODES_PIPELINE_H
#define TDM_MODES_PIPELINE_H

#include "modes/common.h"

typedef struct tdm_pipeline tdm_pipeline;

/* The replica is open, and stays open until the pipeline is closed. `parts`: of a step's batch, at most. */
tdm_status tdm__pipeline_open(tdm_pipeline **out, const tdm_mode_params *params, tdm_replica *replica, int parts);
void tdm__pipeline_close(tdm_pipeline *pipeline); /* NULL is fine */
/* Steps that may be in flight. */
int tdm__pipeline_depth(const tdm_pipeline *pipeline);
/* The phases that a step has, as bits of tdm_phase. With several stages only the first stage is timed, waits included. */
unsigned tdm__pipeline_phases(const tdm_pipeline *pipeline);

/* The parts of the step's batch and its values go to the devices. */
tdm_status tdm__pipeline_begin(tdm_pipeline *pipeline, const tdm_shard *parts, int count, const tdm_values *values);
/* For more work of the step that has been waited for: its values again, on its rows. The outcome goes on. */
tdm_status tdm__pipeline_again(tdm_pipeline *pipeline, const tdm_values *values);
/* The rows of each part, at the address where the stage sees them. */
const tdm_rows *tdm__pipeline_rows(const tdm_pipeline *pipeline, int stage);
/* Forward, loss and backward of a part; its gradients are in the arenas afterwards, and of a part without rows what was
 * there. `all_rows`: of all ranks in this step; read only if they exchange statistics. `hooks` (NULL: none) are called
 * from the threads of the stages: bucket_ready one at a time, in the last micro-batch, in the order of the buckets;
 * exchange by several stages at once. */
tdm_status tdm__pipeline_pass(tdm_pipeline *pipeline, int part, int64_t all_rows, const tdm_exec_hooks *hooks);
/* The same of one micro-batch of part 0 in two calls: forward with the loss, then backward. `is_last`: buckets become
 * ready. */
tdm_status tdm__pipeline_forward(tdm_pipeline *pipeline, int64_t micro_batch, int64_t all_rows,
                                 const tdm_exec_hooks *hooks);
tdm_status tdm__pipeline_backward(tdm_pipeline *pipeline, int64_t micro_batch, bool is_last, int64_t all_rows,
                                  const tdm_exec_hooks *hooks);
/* Within a step's work. */
tdm_status tdm__pipeline_update(tdm_pipeline *pipeline, const tdm_update *update);
/* The update of a step that has been waited for, as work of its own; see tdm_mode_ops.update. */
tdm_status tdm__pipeline_update_alone(tdm_pipeline *pipeline, const tdm_update *update, tdm_step_result *result);
tdm_status tdm__pipeline_end(tdm_pipeline *pipeline);
/* As tdm__replica_wait. */
tdm_status tdm__pipeline_wait(tdm_pipeline *pipeline, tdm_times *times, const tdm_outcome **outcome);

#endif
