/* A run: everything of one training job in this process, from the plan to the files it writes. */
#ifndef TDM_TRAIN_RUN_H
#define TDM_TRAIN_RUN_H

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include <tandem/tandem.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/guard.h"
#include "runtime/base/text/text.h"
#include "runtime/ckpt/ckpt.h"
#include "runtime/exec/mode.h"
#include "runtime/module/module.h"
#include "runtime/optim/schedule.h"

/* Sums over the steps since something was last reported. */
typedef struct tdm_tally {
    double ms[TDM_PHASE_COUNT];
    int64_t steps, samples, bytes_moved;
} tdm_tally;

/* What the trainer keeps of a step between its submission and its result. */
typedef struct tdm_ahead {
    double lr, data_ms;
    int64_t start_ns;
    const tdm_batch *batch; /* the loader's */
} tdm_ahead;

/* What comes next of a step in pieces, whose forward or backward has been made. */
typedef enum tdm_waiting {
    TDM_NOTHING_WAITS,
    TDM_BACKWARD_WAITS,
    TDM_FORWARD_WAITS, /* of the next micro-batch */
    TDM_UPDATE_WAITS
} tdm_waiting;

/* The best evaluation so far. */
typedef struct tdm_best {
    double score;   /* of the metric, as tdm_scores has it */
    int64_t step;   /* that was evaluated; 0: none yet */
    int64_t waited; /* evaluations since then */
} tdm_best;

/* A tensor of the model or of the optimizer's state, and where a replica has it. */
typedef struct tdm_named {
    const char *name; /* PyTorch's: "fc1.weight", "exp_avg.fc1.weight" */
    const tdm_shape *shape;
    int64_t count;
    bool is_counter; /* int64_t, else float */
    tdm_arena_kind arena;
    size_t offset, bytes;
} tdm_named;

typedef struct tdm_details tdm_details;       /* of an evaluation: evaluate/details.h */
typedef struct tdm_run_folder tdm_run_folder; /* the run directory; rank 0 only */

struct tdm_run {
    tdm_guard guard;
    const tdm_host *host;
    const tdm_job *job;
    const tdm_graph *graph;
    tdm_run_options options;
    tdm_zone zone;

    int rank, world; /* processes */
    int replicas;    /* of the whole job */
    tdm_comm *comm;  /* NULL with one rank */
    tdm_compute compute;
    const tdm_loss_def *loss;
    const tdm_optim_def *optim;      /* of the job, or of the program's own */
    unsigned optim_states;           /* that the replicas have: tdm__optim_states_of */
    tdm_optim_run *optim_run;        /* its kernel on this device; NULL where the run only predicts */
    const tdm_comm_ops *device_comm; /* NULL: gradients are reduced in host memory */
    tdm_plan *plan;
    const tdm_named *tensors;         /* parameters in PyTorch's order, buffers, then the optimizer's state */
    int model_tensors, tensor_count;  /* how many belong to the model; all but the averages */
    int average_count;                /* averages of the parameters, behind the others */
    const tdm_named **params_by_name; /* the parameters, sorted */
    tdm_mode *mode;
    tdm_dataset *train, *eval;
    tdm_classes classes;                   /* count 0: they have no names */
    const tdm_features *features;          /* of the table trained on; NULL: none */
    const char *note[TDM_NOTES];           /* for checkpoints; NULL: none */
    tdm_property property[TDM_PROPERTIES]; /* the program's own, sorted by key; a key and its text are one block */
    int property_count;
    char data[160];                 /* describes the training samples, see tdm_ckpt_state; on rank 0 */
    char identity[TDM_DATA_CALLED]; /* what the samples were called in the checkpoint that the run goes on from */
    tdm_loader *loader;
    tdm_rows_form form;        /* of the loader's batches */
    tdm_loader **eval_loaders; /* one for each local replica */
    int eval_loader_count;
    const tdm_batch
        *eval_batch; /* the last batch of tdm_run_eval_sample; NULL after an evaluation, which reuses its loader */

    int64_t per_device, steps_total, steps_per_epoch;
    int64_t eval_rows;            /* rows that a replica evaluates at once */
    int64_t step;                 /* steps done */
    int64_t epoch, step_in_epoch; /* of the next step */
    int64_t skipped;              /* steps without an update, of the program's choice */
    int64_t samples;
    tdm_schedules schedules;                 /* of the next step to be submitted */
    double set_lr[1 + TDM_PARAM_GROUPS_MAX]; /* the program's rates: of no group, then of each; NaN: the schedule's */
    tdm_ahead ahead[TDM_MODE_DEPTH];
    int64_t submitted;    /* steps: `step` and those in flight; the n-th of all is ahead[n modulo TDM_MODE_DEPTH] */
    double last_loss;     /* NaN before the first */
    tdm_scores scores;    /* of the last evaluation; NaN before the first */
    tdm_details *details; /* of the last evaluation; NULL before the first */
    tdm_best best, best_before; /* by checkpoint.keep_best; before: of the last saved checkpoint */
    tdm_best early;             /* by train.stop_early */
    const char *end_reason;     /* end_text: why the run ends before its last step; NULL: it does not */
    char end_text[160];
    int64_t saved_at;  /* step; -1: never */
    int64_t kept_step; /* the folder's checkpoints up to this step stay where they are */
    bool eval_due;     /* the run was stopped before the evaluation of its last step */
    tdm_tally since_log, since_open, since_start;
    int64_t warmup_steps; /* steps not counted in since_start */
    double seconds;       /* that this process has spent training */
    int64_t collected_ns, logged_ns, eval_ns, save_ns, verify_ns;
    int64_t unsaved;          /* failed checkpoints since the last good one */
    int64_t ignored_steps;    /* steps without a label that counts */
    bool eval_warned;         /* a loss over data.eval that is not finite was reported */
    bool read_failed;         /* the next step's batch could not be read */
    tdm_step_result pending;  /* of the next step, while something waits */
    const char *missing_loss; /* the program's own of the weights, which this run lacks; NULL: none */
    tdm_waiting waits;        /* of the next step, which the program makes in pieces */
    char *outputs;            /* pieces.c: of several replicas, one behind another, then their targets */
    size_t outputs_room;
    int64_t failed_step; /* the step that failed: the replicas' contents are undefined; 0: none */
    bool runs_ahead;     /* on all ranks: a step may be submitted before the last one is reported */
    bool eval_waits, save_waits, verify_waits; /* due as soon as no step is in flight */
    const char *weights_report;        /* of the weights that the run started from, for weights.json; NULL: none */
    struct tdm_picture_input *picture; /* run_predict.c; NULL until the first picture */
    struct tdm_transform *given;       /* run_predict.c, of a program's samples; NULL until the first that change */
    float *ready;                      /* [eval_rows] of them, transformed */
    tdm_run_folder *folder;
    atomic_int stop;
};

/* ---- tensors ---- */
/* Lists the tensors of the run; needs the plan. */
tdm_status tdm__run_list_tensors(tdm_run *run);
/* Where a tensor lies in the host's copy of the replica's memory. The first tensor of an arena makes the copy;
 * `arenas`, all NULL at first, keeps them. */
tdm_status tdm__tensor_at(tdm_replica *replica, const tdm_named *named, void *arenas[TDM_ARENA_COUNT], char **out);
/* Reads tensors first to end - 1 of the run's list from the file into the first replica. TDM_E_CHECKPOINT if one is
 * missing there or is another. */
tdm_status tdm__tensors_load(tdm_run *run, const tdm_tensor_file *file, int first, int end);

/* Memory for pictures and samples that a program wants predictions for. */
void tdm__run_close_given(tdm_run *run);

/* ---- weights, in the first replica ---- */
/* The initial weights of torch.nn's modules after torch.manual_seed(job.seed), drawn in order of construction. */
tdm_status tdm__weights_init(tdm_run *run);
/* All parameters and buffers from a file of this model. */
tdm_status tdm__weights_load(tdm_run *run, const tdm_tensor_file *file);
/* Those to start from, as job.match says; sets weights_report. */
tdm_status tdm__weights_start(tdm_run *run, const tdm_tensor_file *file);
/* XXH3-128 over the bytes of all parameters in name order. */
tdm_status tdm__params_hash(tdm_run *run, tdm_hash128 *out);

/* ---- the average of the parameters (train.ema), in the first replica of all ---- */
/* tdm_step_values.average_weight of an update, counted from 1. */
float tdm__average_weight(const tdm_train_section *train, int64_t updates);
/* Lets the average begin with the parameters as they are. */
tdm_status tdm__average_begin(tdm_run *run);
/* Exchanges the average and the parameters, which are then to be synced. No step may be in flight. */
tdm_status tdm__average_swap(tdm_run *run);
/* The weights of a checkpoint that this run starts from: where it predicts, as eval.weights says. */
const tdm_tensor_file *tdm__run_weights_of(const tdm_run *run, const tdm_ckpt *ckpt);

/* ---- data ---- */
/* Number and kind of the samples: "200 of 1x28x28 bytes". */
enum { TDM_DATA_FOUND = 96 };
void tdm__data_print(const tdm_dataset *dataset, char out[TDM_DATA_FOUND]);
tdm_status tdm__run_open_data(tdm_run *run, const tdm_data_wanted *wanted);
/* The graph's inputs, where they have names; those stay the graph's. */
void tdm__data_inputs_of(const tdm_graph *graph, tdm_data_inputs *out);
/* The job's loss, and what it and the model expect of samples. */
tdm_status tdm__data_wanted_of(const tdm_job *job, const tdm_graph *graph, const char *module_path,
                               const tdm_loss_def **loss, tdm_data_wanted *wanted);
/* Batches that loaders read ahead. */
enum { TDM_TRAIN_AHEAD = 3, TDM_EVAL_AHEAD = 1 };
/* Threads of each of `loaders` evaluation loaders. */
int64_t tdm__eval_workers(const tdm_job *job, const tdm_dataset *dataset, int loaders);
/* Before the data is opened: a run that only predicts takes the names of its classes, and the features of its table,
 * from its weights. */
tdm_status tdm__run_notes_of_weights(tdm_run *run);
/* After that: those of the training data, if there are none yet. */
tdm_status tdm__run_take_notes(tdm_run *run);
/* When weights have been loaded: what they know, if the run trains on the program's samples. */
tdm_status tdm__run_keep_notes(tdm_run *run, const tdm_ckpt *ckpt);
/* Once the plan is built: what the model is, in words that its checkpoints carry. */
tdm_status tdm__run_note_model(tdm_run *run);
/* The program's own properties, replaced by those of a checkpoint; and released. */
tdm_status tdm__run_take_properties(tdm_run *run, const tdm_tensor_file *file);
void tdm__run_forget_properties(tdm_run *run);
/* Tells of categories of data.eval that data.train does not have. */
void tdm__run_warn_of_unseen(const tdm_run *run);
/* TDM_E_CHECKPOINT if the checkpoint was trained on other classes or features than this run has. */
tdm_status tdm__run_check_notes(const tdm_run *run, const tdm_ckpt *ckpt);
/* Does every pass of training and evaluation have the rows that the layers need? */
tdm_status tdm__run_check_rows(const tdm_run *run);
/* Called after the mode is open: batches lie in memory that its device lends. */
tdm_status tdm__run_open_loaders(tdm_run *run);
/* Moves the loader to run->epoch and step_in_epoch. No step may be in flight. */
tdm_status tdm__run_seek(tdm_run *run);
/* Starts the next step's batch on its way to the devices, if the loader has made it. */
tdm_status tdm__run_prefetch(tdm_run *run);
void tdm__run_close_loaders(tdm_run *run);

/* ---- checkpoints ---- */
/* Tensors of the mode's own. On rank 0: adds them to a checkpoint; reads them from one, or *found is false. */
tdm_status tdm__run_collect_mode(tdm_run *run, tdm_zone *zone, tdm_ckpt_parts *parts);
tdm_status tdm__run_restore_mode(tdm_run *run, const tdm_ckpt *ckpt, bool *found);
/* Collective: before a checkpoint is collected, and after one is read. */
tdm_status tdm__run_gather_mode(tdm_run *run);
tdm_status tdm__run_share_mode(tdm_run *run, bool found);
/* Rank 0 writes; with `name` NULL it only looks for tensors that could not be saved. Every rank learns the outcome. */
tdm_status tdm__run_save(tdm_run *run, const tdm_folder *folder, const char *name, int64_t keep_last);
/* Rank 0 reads `ckpt` (NULL on the others); every rank gets the state. */
tdm_status tdm__run_restore(tdm_run *run, const char *path, bool newest_in_folder);

/* ---- steps whose loss is not finite ---- */
/* TDM_E_NUMERIC if the loss, as PyTorch's float, is not finite; the message names the step and samples of `batch`. Not
 * if every label was ignored: a warning reports the first such step, and one at the end their number. Collective where
 * it fails. */
tdm_status tdm__run_check_loss(tdm_run *run, const tdm_step_result *result, const tdm_batch *batch);
void tdm__run_report_ignored(const tdm_run *run);

/* A rank that cannot take part in what comes next says why, because its peers wait for it. Returns the failure. */
tdm_status tdm__run_leave(tdm_run *run);

/* ---- parts that the program brings itself ---- */
/* Can this run use them? Once the device is known. */
tdm_status tdm__own_check(tdm_run *run);
/* The run's copies of what the program has passed. */
tdm_status tdm__own_keep(tdm_run *run);
/* tdm_run_save_to, within the call `function` of the run. */
tdm_status tdm__run_save_to(tdm_run *run, const tdm_writer *to, const char *function);
/* The definition of the program's optimizer. */
tdm_status tdm__own_optim_def(tdm_run *run, const tdm_optim_def **out);
/* What ranks compare. */
void tdm__own_lines(const tdm_run *run, tdm_text *text);
/* TDM_E_CHECKPOINT if the checkpoint needs a part that this run lacks. */
tdm_status tdm__own_check_optimizer(const tdm_run *run, const char *saved, const char *path);
tdm_status tdm__own_check_saved_loss(tdm_run *run, const tdm_ckpt *ckpt);
tdm_status tdm__own_check_evaluation(const tdm_run *run);

/* ---- evaluation ---- */
/* `stopped` NULL: a request to stop is left for later. Otherwise it ends the evaluation on all ranks and sets *stopped.
 */
tdm_status tdm__run_evaluate(tdm_run *run, tdm_scores *out, bool *stopped);

/* ---- what follows from an evaluation ---- */
/* TDM_E_CONFIG if checkpoint.keep_best or train.stop_early needs a number that the job's evaluations do not have. */
tdm_status tdm__run_check_metrics(const tdm_run *run);
/* Compares run->scores with the best so far: sets run->best and, if the evaluation is one of eval.every (`due`),
 * run->early, the schedule, and run->end_reason if train.stop_early ends the run here. The same on all ranks. */
void tdm__run_update_best(tdm_run *run, bool due);
/* Is this step's checkpoint to be saved because it is the best? */
bool tdm__run_is_best(const tdm_run *run);
/* To and from the state of a checkpoint. A best by another metric than the job's is forgotten. */
void tdm__run_best_save(const tdm_run *run, tdm_ckpt_state *state);
void tdm__run_best_restore(tdm_run *run, const tdm_ckpt_state *state);
tdm_plateau tdm__run_plateau(const tdm_run *run, const tdm_ckpt_state *state);

static inline bool tdm__run_has_steps_in_flight(const tdm_run *run) {
    return run->submitted > run->step;
}
/* Fails while a step is in flight: the function `what` would already see that step's changes. */
tdm_status tdm__run_idle(const tdm_run *run, const char *what);
/* The same while a backward waits, which needs what its forward has left in the replicas. */
tdm_status tdm__run_computes(const tdm_run *run, const char *what);
/* The same while anything waits: the next step has begun. */
tdm_status tdm__run_rests(const tdm_run *run, const char *what);
/* The learning rate of the next step to be submitted: of the parameters in no group with -1, else of a group. */
static inline double tdm__run_lr(const tdm_run *run, int group) {
    const double set = run->set_lr[1 + group];
    return !isnan(set) ? set : group < 0 ? run->schedules.own.lr : run->schedules.group[group].lr;
}
/* At their first step; no rate is set in their place. */
static inline void tdm__run_init_schedules(tdm_run *run) {
    const tdm_optimizer_section *o = &run->job->optimizer;
    const double momentum = run->optim->moves_beta1 ? o->betas.item[0] : o->momentum;
    tdm__schedules_init(&run->schedules, run->job, momentum, run->steps_total, run->steps_per_epoch);
    for (int i = 0; i <= TDM_PARAM_GROUPS_MAX; i++) run->set_lr[i] = NAN;
}
/* Fails if the run was opened to predict. */
tdm_status tdm__run_trains(const tdm_run *run, const char *what);

/* ---- ranks ---- */
/* Checks that all ranks run the same job. Every rank learns what differs. */
tdm_status tdm__run_agree(tdm_run *run);
/* TDM_E_MEMORY if replicas and batches do not fit into host.memory_limit beside what is held already. */
tdm_status tdm__run_check_limit(const tdm_run *run);

/* What reduces gradients in the devices' memory; run->device_comm stays NULL if they are reduced in host memory.
 * TDM_E_UNSUPPORTED if the job demands a backend that cannot be used. */
tdm_status tdm__run_check_backend(const tdm_run *run);
tdm_status tdm__run_open_backend(tdm_run *run);
/* If one rank lacks the backend, no rank uses it. */
tdm_status tdm__run_agree_on_backend(tdm_run *run);

/* Checks that replicas which update themselves are still equal. TDM_E_CHECK names the one that differs and its first
 * differing tensor; every rank gets the same verdict. */
tdm_status tdm__run_verify(tdm_run *run);

/* ---- descriptions ---- */
/* Rows of one micro-batch, for `rows` rows per device and step. */
int64_t tdm__plan_rows(const tdm_job *job, int64_t rows);
/* The plan's options for a job, with `rows` rows per device and step, and `threads` for each replica. */
tdm_plan_options tdm__plan_options(const tdm_job *job, const tdm_compute *compute, int64_t rows, int replicas,
                                   int threads);
/* The threads of a replica where `replicas` of them share this process's CPUs. */
int tdm__threads_of(const tdm_job *job, const tdm_compute *compute, const tdm_host *host, int replicas);
/* The same once the ranks have met. All ranks call it. */
tdm_status tdm__run_threads(tdm_run *run, int *threads);
/* Adds the plan, the memory of a device and the bytes between devices. */
void tdm__plan_report(const tdm_plan *plan, const tdm_job *job, int replicas, bool json, tdm_text *text);

/* ---- the run directory ---- */
/* Makes the folder if needed and locks it. Does nothing without job.run.dir or on other ranks. */
tdm_status tdm__run_folder_open(tdm_run *run);
/* Called when nothing can refuse the resume any more; until then the folder belongs to the previous run. Removes what
 * killed processes left, moves later checkpoints aside, cuts lines of repeated steps from metrics.jsonl, and writes
 * this job's config files. */
tdm_status tdm__run_folder_begin(tdm_run *run);
/* Takes the lock of a run directory for this process, into *fd. A killed job may take a while to end, so this waits a
 * moment for it. TDM_E_IO names the holder. */
tdm_status tdm__folder_lock(int *fd, const tdm_folder *dir);
tdm_status tdm__folder_train_line(tdm_run *run, const tdm_step_result *result, double lr);
tdm_status tdm__folder_eval_line(tdm_run *run);
/* Writes evaluation.json; if this evaluation is the best, evaluation.best.json too. */
tdm_status tdm__folder_evaluation(tdm_run *run);
/* Writes status.json, at most every 5 s unless forced. */
tdm_status tdm__folder_status(tdm_run *run, const char *state, tdm_status code, bool force);
/* What status.json says of a job. */
typedef struct tdm_job_status {
    const char *state, *reason;
    int64_t step, steps_total, epoch, restarts;
    int pid; /* 0: this process */
    int exit_code;
} tdm_job_status;
void tdm__status_print(tdm_text *text, const tdm_job_status *status); /* with this time */
tdm_status tdm__folder_summary(tdm_run *run, const char *reason, const int64_t *peak_bytes, int count);
#define TDM_CHECKPOINTS "checkpoints"                  /* in it */
const tdm_folder *tdm__folder_dir(const tdm_run *run); /* NULL if there is none */
void tdm__run_folder_close(tdm_run *run);

#endif
