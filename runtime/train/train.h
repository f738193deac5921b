/* Small parts of training: initial weights, hashes, schedules. */
#ifndef TDM_TRAIN_TRAIN_H
#define TDM_TRAIN_TRAIN_H

#include "runtime/exec/mode.h"

/* Initial weights of torch.nn's modules after torch.manual_seed(seed), drawn in order of construction into the
 * replica's parameters and buffers. */
tdm_status tdm__weights_init(tdm_replica *replica, int64_t seed, tdm_rng_profile profile);
/* Parameters and buffers from a tensor file, by name; extra tensors in the file are an error that names one. */
struct tdm_tensor_file;
tdm_status tdm__weights_load(tdm_replica *replica, const struct tdm_tensor_file *file);
/* XXH3-128 over the bytes of all parameters in name order. */
tdm_status tdm__params_hash(tdm_replica *replica, tdm_hash128 *out);

/* ---- schedules: torch.optim.lr_scheduler's recursions ---- */

typedef struct tdm_schedule {
    const tdm_schedule_section *section;
    double base_lr, base_momentum;
    int64_t total;       /* steps or epochs that the schedule spans */
    int64_t warmup;      /* steps of warm-up done */
    int64_t count;       /* calls of the main schedule's step */
    double lr, momentum; /* the current values */
} tdm_schedule;

void tdm__schedule_init(tdm_schedule *schedule, const tdm_schedule_section *section, double lr, double momentum,
                        int64_t steps_total, int64_t steps_per_epoch);
void tdm__schedule_step(tdm_schedule *schedule, bool epoch_ended); /* after each optimizer step */
/* Why this schedule does not suit a job of so many steps: a resume would have to follow too many changes. NULL: it
 * does. */
const char *tdm__schedule_fault(const tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch);
/* Moves the schedule from the start to after `steps` optimizer steps, with the same bits as one step after another.
 * Takes no time while the learning rate is constant. */
void tdm__schedule_seek(tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch);

#endif
