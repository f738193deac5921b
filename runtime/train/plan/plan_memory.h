/* What `tandem plan` says beside the plan: how much memory it needs, on a device and in a process that trains on the
 * CPU, and what the options of ddp do. */
#ifndef TDM_TRAIN_PLAN_MEMORY_H
#define TDM_TRAIN_PLAN_MEMORY_H

#include <tandem/job.h>
#include <tandem/sys/device.h>

#include "runtime/base/text/json_write.h"
#include "runtime/data/data.h"
#include "runtime/exec/mode.h"

/* What takes memory on a device. */
typedef enum tdm_cost {
    TDM_COST_PARAMETERS,
    TDM_COST_NARROW, /* the copy of the parameters in bf16 */
    TDM_COST_GRADIENTS,
    /* Where parts of a batch take turns: sums of their gradients, one for each doubling of their number, and the first
     * part's buffers; if they exchange statistics, what each part but the first has of its own. */
    TDM_COST_PARTS,
    TDM_COST_COMPRESSED, /* what is sent instead of gradients, and what that keeps back */
    TDM_COST_OPTIMIZER,
    TDM_COST_AVERAGE,
    TDM_COST_ACTIVATIONS,
    TDM_COST_BUFFERS,
    TDM_COST_STATISTICS,
    TDM_COST_BATCHES,
    TDM_COST_VALUES, /* what steps in flight hand over: learning rates and losses, and where parameters lie */
    TDM_COST_GATHERED,
    TDM_COST_TOTAL,
    TDM_COSTS
} tdm_cost;

typedef struct tdm_memory {
    size_t bytes[TDM_COSTS];
    int64_t wire;       /* bytes between devices per step, all devices together, those between stages among them */
    int64_t wire_whole; /* if gradients were not compressed */
    int64_t wire_from;  /* the first step whose gradients are; 0: all are, or none */
} tdm_memory;

/* Of the device that holds the most: replica 0's, which in dp also gathers the outputs; with several stages, of its
 * device for this one. `wire` is of all stages. */
tdm_memory tdm__plan_memory(const tdm_plan *plan, const tdm_job *job, int replicas, int stage);

/* Of all replicas in this process. */
size_t tdm__replicas_memory(const tdm_plan *plan, const tdm_job *job, int replicas);
/* Where they have several stages: what is brought together to be saved. */
size_t tdm__whole_memory(const tdm_plan *plan, const tdm_job *job);
/* Of batches that are read ahead from a data set of the job. */
size_t tdm__batches_memory(const tdm_plan *plan, const tdm_job *job, const tdm_dataset *dataset, int replicas,
                           bool evaluates);

/* What takes memory in a process whose devices are the CPU's. */
typedef enum tdm_process_cost {
    TDM_PROCESS_PROGRAM, /* what this process has already, and what training reads of it: code, libraries, settings */
    TDM_PROCESS_KERNELS, /* what they keep for themselves: machine code, tables */
    TDM_PROCESS_SAMPLES,
    TDM_PROCESS_BATCHES, /* read ahead */
    TDM_PROCESS_DEVICES, /* all of its replicas */
    TDM_PROCESS_WHOLE,   /* of several stages: parameters and optimizer state, brought together to be saved */
    TDM_PROCESS_CALLS,   /* what oneDNN takes while it multiplies matrices, on every thread of the replicas */
    TDM_PROCESS_NETWORK, /* pieces of gradients on their way between hosts */
    TDM_PROCESS_PEERS,   /* of other ranks: gradients that this one sums in place, and what PowerSGD saves of them */
    TDM_PROCESS_TOTAL,
    TDM_PROCESS_COSTS
} tdm_process_cost;

typedef struct tdm_process_memory {
    size_t bytes[TDM_PROCESS_COSTS];
} tdm_process_memory;

/* What the kernels' library takes in calls. */
size_t tdm__calls_memory(const tdm_plan *plan, const tdm_job *job, int replicas);
/* What it keeps: prepares the kernels for the batches of these data sets, which may be NULL, and sees by how much the
 * process grows. What was prepared before costs nothing. */
tdm_status tdm__kernels_memory(const tdm_host *host, const tdm_plan *plan, const tdm_job *job, int replicas,
                               const tdm_device_ops *device, const tdm_dataset *train, const tdm_dataset *eval,
                               size_t *bytes);

/* At its peak. Opens the job's data, because only the data knows how many samples there are, and prepares the kernels
 * on `device`, which is the CPU. */
tdm_status tdm__process_memory(const tdm_plan *plan, const tdm_job *job, int replicas, const tdm_device_ops *device,
                               tdm_process_memory *out);

/* A line, or an object in the array `ddp_options`, for each option of ddp that counts in the job's mode. */
void tdm__plan_print_options(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_text *text);
void tdm__plan_put_options(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_json_out *json);

#endif
