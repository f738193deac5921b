/* tandem/tandem.h - train data-parallel models from C: all that a product needs.
 *
 * It includes config.h (YAML), job.h and graph.h (the same from C), source.h (samples of the program's own), model.h
 * (predictions from one file), checkpoint.h, writer.h (files in memory), host.h (memory, log, threads, clocks) and
 * status.h (errors). For special uses there are comm.h (collectives, ranks), data.h (data sets), burnin.h (devices on
 * trial), scale.h (how a job scales), doctor.h (this machine); tandem/sys is for writers of ops and modules.
 *
 * Ownership: the caller owns what comes back through T **out, and ends it with tdm_T_free or tdm_T_close (texts, char
 * **, with tdm_free). Other returned pointers are borrowed from their object.
 *
 * Structs start with `size`; initialise them with the INIT macros. They grow at their end: the library takes the
 * shorter struct of a program that was built with an older header, fills in no more of it than it has, and refuses a
 * longer one (TDM_E_USAGE). tdm_attr, tdm_span, tdm_origin, tdm_link, tdm_scale_bucket and tdm_input_array have no
 * `size` and never grow; tdm_error and tdm_fault are the library's and grow at their end. A tdm_job of another size is
 * refused: a new version may have a member anywhere in its sections, and so in tdm_phase_ms, and programs that use them
 * are compiled anew.
 *
 * Nothing here exits, aborts, prints, installs signal handlers or keeps process-wide state. A process is started only
 * to read a PyTorch file: a child without rights does that. Runs in one process are independent of each other.
 *
 * Threads: one thread at a time uses an object, except where a function says "any thread". A run and a burn-in refuse a
 * call (TDM_E_USAGE) while another thread is in one. In a process that a fork has made, where threads do not live on,
 * they and communicators refuse every call, and closing them does nothing.
 *
 * Callbacks: on_event and on_progress may ask their run for anything (read, write, save, evaluate, predict, ...), but
 * not train, step, load or close it; all other callbacks may not call functions on the object that calls them, except
 * those for any thread. What they may not is TDM_E_USAGE, and tdm_run_close then leaves the run open and a message in
 * tdm_error_message() and the log. A callback returns: no longjmp and no exception of C++ may leave it; catch them, and
 * return non-zero. An exception that leaves on_event all the same passes through the library to the program's handler.
 * It comes between two steps: the thread that trained may still read, save, export and evaluate, and tdm_run_close
 * frees all of the run; nothing else goes on. One that leaves another callback on the thread that called tandem passes
 * through, too, but in the middle of work: the run is in its call for ever then, cannot be closed, and its memory,
 * threads and the lock of its folder stay until the process ends. On a thread of tandem's an exception ends the
 * process (std::terminate).
 *
 * Errors: a call that returns tdm_status and fails leaves its message in tdm_error_message(). A NULL pointer where none
 * is allowed is TDM_E_USAGE. After a step has failed the run can only be closed; but where one process only could not
 * read a step's samples (TDM_E_DATA), the next call reads them again. */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include <tandem/checkpoint.h>
#include <tandem/config.h>
#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/job.h>
#include <tandem/model.h>
#include <tandem/parts.h>
#include <tandem/source.h>
#include <tandem/status.h>
#include <tandem/writer.h>

TDM_BEGIN_DECLS

/* The version of these headers: as text, and as a number that grows, for #if: 1.2.3 is 10203. */
#define TDM_VERSION "0.1.0"
#define TDM_VERSION_NUMBER 100
TDM_API const char *tdm_version(void); /* of the library; static */
/* TDM_VERSION_NUMBER of the library. A program built with a newer header than this has structs that the library
 * refuses. */
TDM_API int tdm_version_number(void);

typedef struct tdm_run tdm_run; /* a job with its graph, plan, replicas and trainer */

/* ---- events: reported on the thread that called train or step, with no lock held ---- */

typedef enum tdm_event_kind {
    TDM_EVENT_START,      /* training begins */
    TDM_EVENT_STEP,       /* a step is done */
    TDM_EVENT_EVAL,       /* an evaluation is done: see loss, accuracy, top5 */
    TDM_EVENT_CHECKPOINT, /* a checkpoint is complete: see path */
    TDM_EVENT_END         /* training has ended */
} tdm_event_kind;

/* Milliseconds that one step spent in each phase; NaN if the mode has no such phase. On a GPU only every eighth step is
 * timed: all phases but `data` and `step` are those of the last timed step. */
typedef struct tdm_phase_ms {
    double data, scatter, replicate, forward, gather, loss, backward, comm, comm_exposed, optimizer, step;
} tdm_phase_ms;

typedef struct tdm_event {
    uint32_t size; /* of this struct in the library that calls; members are only ever added at its end */
    tdm_event_kind kind;
    int64_t step, steps_total; /* steps done; steps of the whole run */
    int64_t epoch;
    int64_t samples;                      /* of this step */
    double loss, accuracy, lr, grad_norm; /* NaN if it does not apply */
    double samples_per_second;
    tdm_phase_ms ms;
    const char *path; /* TDM_EVENT_CHECKPOINT: the checkpoint's folder, valid during the call; else NULL */
    double top5;      /* TDM_EVENT_EVAL, as tdm_scores has it; else NaN */
    double metric;    /* the same */
} tdm_event;

/* ---- opening a run ---- */

typedef struct tdm_run_options {
    uint32_t size;
    const tdm_host *host;           /* NULL: tdm_host_default() */
    const tdm_source *train, *eval; /* samples of the program's own; NULL: the job's data */
    /* Called for every event. A non-zero return stops the run as tdm_run_request_stop does. May be NULL. */
    int (*on_event)(const tdm_event *event, void *user);
    void *user;
    const char *module_path; /* NULL: TANDEM_MODULE_PATH and the folders next to the library */
    /* This process as one rank of a ddp job: its rank, the number of ranks, and the descriptor from tdm_launch_create
     * or tdm_launch_meet. world 0: no other processes, unless `comm` is set. */
    int rank, world, launch_fd;
    /* Text for config.input.yaml and config.resolved.yaml in the run directory and in checkpoints; NULL: no such file.
     */
    const char *config_input, *config_yaml;
    /* Non-zero: the next step may already be running on the GPU while on_event reports one, so that the GPU never
     * waits. In this case on_event must not ask for the run's tensors. Without on_event steps always overlap in this
     * way. */
    int run_ahead;
    int restarts; /* how often this job was started again, for status.json and summary.json */
    int pid;      /* the process to signal, for status.json: the parent if it passes signals on; 0: this process */
    /* Called once, by tdm_run_open on its thread, when all ranks of the job have connected. From then on the ranks
     * watch each other. May be NULL; not called with a single rank. */
    void (*on_met)(void *user);
    /* Non-zero: the run only evaluates and predicts. It has no backward pass and no memory for gradients and optimizer
     * state. tdm_run_train, tdm_run_step and tdm_run_save are then TDM_E_USAGE, and tdm_run_load reads only the
     * weights. */
    int predicts;
    /* Instead of launch_fd: an open communicator of the job's ranks, such as one of tdm_comm_open_hosts. Its rank and
     * world are then this run's. Borrowed until tdm_run_close. Others may use it only between calls of the
     * run, and then on all ranks alike. NULL: none. */
    struct tdm_comm *comm;
    /* Of a job on several hosts: this rank among those of its host, and how many these are. They choose the rank's
     * device and share the host's cores. local_world 0: all ranks are on this host. */
    int local_rank, local_world;
    /* Parts of the program's own (tandem/parts.h): in place of the job's, and a metric beside them. NULL: none. Only
     * runs that have its loss and its optimizer resume from a run's checkpoints (TDM_E_CHECKPOINT). */
    const tdm_own_loss *loss;
    const tdm_own_metric *metric;
    const tdm_own_optimizer *optimizer;
    /* Above 0: for comparing kernels. In each training pass every layer of the first replica runs this often, forward
     * and backward, on the same tensors, and "times.json" of tdm_run_print has the time of each run. No layer writes
     * over its input then. Running statistics are updated in each run, and gradients that several layers add to are
     * added in each. */
    int64_t repeats;
} tdm_run_options;
#define TDM_RUN_OPTIONS_INIT                                                                                          \
    {                                                                                                                 \
        sizeof(tdm_run_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, -1, NULL, NULL, 0, 0, 0, NULL, 0, NULL, 0, \
            0, NULL, NULL, NULL, 0                                                                                    \
    }

/* Opens the data, builds the plan and the replicas, makes the initial weights, and resumes if the job says so. The job
 * and the texts of `options` are copied, and the run keeps the graph, in memory of the graph's host: tdm_job, texts and
 * tdm_graph may be freed when this returns. Borrowed until tdm_run_close are the hosts, options->comm, and what a
 * source points to. options NULL: TDM_RUN_OPTIONS_INIT. Collective over the ranks of a ddp job: every rank calls it,
 * and it fails on all of them if it fails on one. */
TDM_API tdm_status tdm_run_open(tdm_run **out, const tdm_job *job, const tdm_graph *graph,
                                const tdm_run_options *options);
TDM_API void tdm_run_close(tdm_run *run); /* Frees the run and everything borrowed from it. NULL is allowed. */

/* Trains to the end of the job, with evaluations, checkpoints and metrics as the job says. Collective in ddp.
 * TDM_E_STOPPED after a stop request: if there is a run directory, it then holds a checkpoint of the last step made;
 * the message and tdm_run_state.saved_step say whether one was saved. Call it again to go on. */
TDM_API tdm_status tdm_run_train(tdm_run *run);
/* Makes `count` steps, and no evaluation, checkpoint or metrics. Collective in ddp. TDM_E_USAGE if fewer
 * steps were left in the job; those have been made. TDM_E_STOPPED after a stop request; nothing is saved. */
TDM_API tdm_status tdm_run_step(tdm_run *run, int64_t count);

/* A step in pieces, for a program that owns the loop: forward, backward, update. tdm_run_forward reads the next batch
 * and computes the outputs and the loss, of all replicas. tdm_run_backward computes the gradients; without a forward
 * that waits it reads the next batch and makes both, of all micro-batches. tdm_run_update ends the step: the optimizer
 * takes the gradients, clipped as the job is, at the learning rate of this moment. tdm_run_skip_update ends it without,
 * behind a backward or a forward: parameters, optimizer state and averages stay as they are; the schedule and the
 * step's number go on. A run in pieces has the bits of tdm_run_step.
 *
 * Between backward and update the program may read, evaluate and predict, and change gradients and learning rates;
 * between forward and backward it may read, outputs among it, and change learning rates: parameters are read-only, and
 * the replicas hold what backward needs, so that evaluations and predictions are TDM_E_USAGE there. Saving, loading and
 * other steps are TDM_E_USAGE until the step has ended. Both ends report TDM_EVENT_STEP, and return TDM_E_STOPPED after
 * a stop request. TDM_E_NUMERIC: the loss is not finite; the update still waits, and may be skipped.
 *
 * On the thread that trains. In ddp every rank makes the same calls, each of them collective. */
typedef struct tdm_pass {
    uint32_t size;
    int64_t step;    /* that has begun, counted from 1 */
    int64_t samples; /* of all replicas */
    double loss; /* mean over them, NaN and infinite as it comes; of several micro-batches the part of those so far */
    double accuracy; /* a fraction, in the same way; NaN for losses without labels */
    /* With train.accumulate: the last one that went forward, from 1, and how many the step has, in which the last batch
     * of an epoch may have fewer. */
    int64_t micro_batch, micro_batches;
} tdm_pass;
#define TDM_PASS_INIT \
    { sizeof(tdm_pass), 0, 0, 0, 0, 0, 0 }
/* Fills *out, which may be NULL. With train.accumulate it takes one micro-batch after another: the next may go forward
 * when tdm_run_backward has added the gradients of the one before, and the update waits for all of them. TDM_E_USAGE if
 * all steps of the job are done, or a backward or an update waits already. TDM_E_UNSUPPORTED in `single` with several
 * device_ids: there each part of the batch goes forward and backward before the next; tdm_run_backward makes both. */
TDM_API tdm_status tdm_run_forward(tdm_run *run, tdm_pass *out);
/* Between tdm_run_forward and the call that follows it: the outputs [rows][width] of this process's rows, one replica's
 * behind the other's, and their targets; in ddp those of this rank, which may be none (parallel.ddp.join). The label of
 * a sample that mixup or cutmix mixed is no class, but packs two: tdm_label_unpack in tandem/sys/label.h. Not
 * collective. Set `size` with TDM_OUTPUTS_INIT. The pointers are the run's, valid until the step goes on. */
TDM_API tdm_status tdm_run_outputs(tdm_run *run, tdm_outputs *out);
/* Fills *out, which may be NULL. TDM_E_USAGE if all steps of the job are done, or an update waits already: for
 * gradients of several batches there is train.accumulate. */
TDM_API tdm_status tdm_run_backward(tdm_run *run, tdm_pass *out);
TDM_API tdm_status tdm_run_update(tdm_run *run);
TDM_API tdm_status tdm_run_skip_update(tdm_run *run);

/* Asks the run to finish the steps in flight, save and return. In ddp all ranks stop after the same step, at most one
 * step after those in flight. Before training it means that no step is made. An evaluation in progress is abandoned,
 * and repeated when training goes on. Any thread; async-signal-safe. */
TDM_API void tdm_run_request_stop(tdm_run *run);

/* Sets the learning rate of the steps to come, in place of the schedule's: of the parameters in no group with `group`
 * -1, of those in optimizer.groups[group] otherwise. lr: finite, at least 0; NaN gives the rate back to the schedule.
 * The schedule goes on counting meanwhile and is not changed: with NaN its rate of that step holds, warm-up included.
 * Momentum that the schedule moves stays the schedule's. A checkpoint does not keep it: after tdm_run_load, or in a run
 * that resumes, the schedule's rates hold until this is called again.
 *
 * On the thread that trains, between steps or in on_event; a step in flight keeps its own. In ddp every rank calls it
 * alike after the same step, or the replicas differ. TDM_E_USAGE if there is no such group, or lr is negative. */
TDM_API tdm_status tdm_run_set_lr(tdm_run *run, int group, double lr);

/* Set `size` with TDM_RUN_STATE_INIT. */
typedef struct tdm_run_state {
    uint32_t size;
    int64_t step, steps_total, epoch, steps_per_epoch, samples;
    double lr;   /* of the next step, for parameters in no group */
    double loss; /* of the last step; NaN before the first */
    int replicas;
    int64_t per_device, global_batch; /* samples per step */
    int64_t params;                   /* learnable numbers */
    char params_xxh3[40];             /* XXH3-128 in hex over all parameters in name order */
    int has_ended;                    /* non-zero: train.stop_early has ended the run before its last step */
    int64_t best_step;                /* of the best evaluation by checkpoint.keep_best; 0: none */
    double best_score;                /* its number; NaN: none */
    int64_t saved_step; /* of the newest checkpoint in the run directory that this run saved or came from; -1: none */
} tdm_run_state;
#define TDM_RUN_STATE_INIT \
    { sizeof(tdm_run_state), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, 0, -1 }
/* Fills *out. Reads all parameters for the hash, so it is not free. */
TDM_API tdm_status tdm_run_get_state(tdm_run *run, tdm_run_state *out);

/* Evaluates over the eval data: mean loss, and accuracy as a fraction (NaN for losses without labels). Collective in
 * ddp. TDM_E_USAGE if the job has no eval data. */
TDM_API tdm_status tdm_run_evaluate(tdm_run *run, double *loss, double *accuracy);
/* What an evaluation says. Set `size` with TDM_SCORES_INIT. Samples whose label is loss.ignore_index do not count. */
typedef struct tdm_scores {
    uint32_t size;
    int64_t samples; /* that count */
    double loss;     /* mean */
    /* Fractions, NaN for losses without labels. accuracy: the label's output is the highest. top5: it is one of the
     * five highest; NaN with five classes or fewer. Of equal outputs the one of the lower class is higher, and a NaN is
     * higher than every number: torch.sort(descending=True, stable=True), whose first is torch.argmax's. */
    double accuracy, top5;
    double metric; /* of tdm_run_options.metric; NaN without */
} tdm_scores;
#define TDM_SCORES_INIT \
    { sizeof(tdm_scores), 0, 0, 0, 0, 0 }
/* As tdm_run_evaluate, with all that it learns. */
TDM_API tdm_status tdm_run_evaluate_scores(tdm_run *run, tdm_scores *out);
/* Computes y[rows, tdm_run_output_width] from x[rows, tdm_run_input_width] in evaluation mode, for any number of rows.
 * The rows go through the model in batches of tdm_run_eval_batch, as in an evaluation. The weights are those that this
 * process trains, with train.ema, too: the average is rank 0's, and tdm_run_export_to gives the model that has it.
 *
 * tdm_run_predict takes samples as a tdm_source of floats has them: data.transform's normalize is applied, as it is in
 * training (TDM_INPUT_FLOATS). In 0.1.0 it was not: what is transformed already goes to tdm_run_predict_as now. */
TDM_API tdm_status tdm_run_predict(tdm_run *run, const float *x, int64_t rows, float *y);
/* The same for samples of kind `input` (tandem/source.h). Those of tdm_run_eval_sample,
 * tdm_run_read_picture and tdm_run_decode_picture are TDM_INPUT_READY. */
TDM_API tdm_status tdm_run_predict_as(tdm_run *run, tdm_input input, const void *x, int64_t rows, float *y);
/* The same of a model whose inputs have names, from an array for each: inputs[count], in the order of the inputs, each
 * of `rows` samples. */
TDM_API tdm_status tdm_run_predict_inputs(tdm_run *run, const tdm_input_array *inputs, int count, int64_t rows,
                                          float *y);
TDM_API int64_t tdm_run_eval_batch(const tdm_run *run); /* rows */
/* Return how many numbers the model's output and input have per row. */
TDM_API int64_t tdm_run_output_width(const tdm_run *run);
TDM_API int64_t tdm_run_input_width(const tdm_run *run);
/* Returns how many inputs the model has, and fills *out for one of them: its name, its shape, and where its numbers are
 * in the row of a sample. TDM_E_USAGE if there is no such input. */
TDM_API int tdm_run_input_count(const tdm_run *run);
TDM_API tdm_status tdm_run_get_input(const tdm_run *run, int index, tdm_input_info *out);
/* Returns the number of eval samples; 0 without eval data. */
TDM_API int64_t tdm_run_eval_count(const tdm_run *run);
/* Reads one eval sample: x[tdm_run_input_width] after the transform (TDM_INPUT_READY), and its label, -1 if samples
 * have none. TDM_E_USAGE if `index` is out of range. Reading in rising order is fastest. */
TDM_API tdm_status tdm_run_eval_sample(tdm_run *run, int64_t index, float *x, int64_t *label);
/* Reads a picture, JPEG or PNG, from a file or from memory, and makes of it what the model takes:
 * x[tdm_run_input_width], after the steps of data.transform as in evaluation (TDM_INPUT_READY). TDM_E_DATA says what is
 * wrong with the picture; TDM_E_UNSUPPORTED, if there is no module `image`. One thread at a time. */
TDM_API tdm_status tdm_run_read_picture(tdm_run *run, const char *path, float *x);
TDM_API tdm_status tdm_run_decode_picture(tdm_run *run, const void *bytes, size_t count, float *x);
/* Returns the name of a class: from the data trained on, or, in a run that only predicts, from its weights. NULL if the
 * classes have no names. Owned by the run. */
TDM_API const char *tdm_run_class_name(const tdm_run *run, int64_t index);

/* Fills *out (tandem/model.h); a run that did not train on a table has mean 0 and stdev 1. Its texts are the run's. */
TDM_API tdm_status tdm_run_target(const tdm_run *run, tdm_target *out);

/* A category in the eval data, a table, that the data trained on does not have; it counts as unknown. Set `size` with
 * TDM_UNSEEN_CATEGORY_INIT. */
typedef struct tdm_unseen_category {
    uint32_t size;
    int64_t sample;     /* index in the eval data */
    int64_t input;      /* which number of the sample stands for it */
    const char *column; /* its name; NULL: the table has no names. Owned by the run */
    const char *value;  /* what the table says. Owned by the run */
} tdm_unseen_category;
#define TDM_UNSEEN_CATEGORY_INIT \
    { sizeof(tdm_unseen_category), 0, 0, NULL, NULL }
/* Returns how many there are, in the order of samples; 0 where the data is no table, or refuses them. */
TDM_API int64_t tdm_run_unseen_count(const tdm_run *run);
TDM_API tdm_status tdm_run_unseen(const tdm_run *run, int64_t which, tdm_unseen_category *out);

/* ---- tensors by name: PyTorch's names and layouts, parameters first, then buffers ---- */

/* Set `size` with TDM_TENSOR_INFO_INIT. */
typedef struct tdm_tensor_info {
    uint32_t size;
    const char *name; /* borrowed from the run */
    int ndim;
    int64_t dim[6];
    int64_t count;
    size_t bytes;
    int is_buffer, is_int64; /* is_int64 0: float32 */
} tdm_tensor_info;
#define TDM_TENSOR_INFO_INIT \
    { sizeof(tdm_tensor_info), NULL, 0, {0, 0, 0, 0, 0, 0}, 0, 0, 0, 0 }
/* Returns the number of tensors. */
TDM_API int tdm_run_tensor_count(const tdm_run *run);
/* Describes tensor `index`; TDM_E_USAGE if there is no such tensor. */
TDM_API tdm_status tdm_run_tensor(const tdm_run *run, int index, tdm_tensor_info *out);
/* Copy a tensor out of the run and into it. `bytes` must be the tensor's size; an unknown name or another size is
 * TDM_E_USAGE. Writing sets the tensor in all replicas and is collective in ddp, where rank 0's bytes count. */
TDM_API tdm_status tdm_run_read(tdm_run *run, const char *name, void *to, size_t bytes);
TDM_API tdm_status tdm_run_write(tdm_run *run, const char *name, const void *from, size_t bytes);

/* The optimizer's state, float32, under torch.optim's names: a tensor for each of its states and each trained
 * parameter, all of one state first; the name is "exp_avg.fc.weight". A run that only predicts has none, nor has SGD
 * without momentum. The `step` of torch.optim is tdm_run_state.step.
 *
 * The first two are as tdm_run_tensor_count and tdm_run_tensor. The last copies the state of a parameter, "exp_avg" of
 * "fc.weight", out of the run; `bytes` must be the parameter's size. Zeros before the first step. TDM_E_USAGE lists the
 * states that there are. */
TDM_API int tdm_run_optimizer_count(const tdm_run *run);
TDM_API tdm_status tdm_run_optimizer_tensor(const tdm_run *run, int index, tdm_tensor_info *out);
TDM_API tdm_status tdm_run_read_optimizer(tdm_run *run, const char *state, const char *param, void *to, size_t bytes);

/* Copies the gradient of parameter `name` out of the run, in the parameter's shape and layout: as the last step's
 * update took it, that is of the loss over all samples of the step, of all replicas and micro-batches, after
 * clip_grad_norm and clip_grad_value, and without weight decay; between tdm_run_backward and the update not clipped
 * yet. `bytes` must be the parameter's size. TDM_E_USAGE also before the run's first step since it was opened, and for
 * buffers and frozen parameters, which have none. In ddp every rank has the same one. */
TDM_API tdm_status tdm_run_read_gradient(tdm_run *run, const char *name, void *to, size_t bytes);
/* Sets the gradient that tdm_run_update takes. TDM_E_USAGE if no update waits. In ddp every rank writes the same
 * numbers, or the replicas differ. */
TDM_API tdm_status tdm_run_write_gradient(tdm_run *run, const char *name, const void *from, size_t bytes);

/* Saves a checkpoint `dir`/step-NNNNNNNN. Compares the replicas first; TDM_E_CHECK if they differ. Collective in ddp.
 */
TDM_API tdm_status tdm_run_save(tdm_run *run, const char *dir);
/* Restores a run from a checkpoint: a step folder or a run folder brings back everything, a .safetensors, .pt or
 * .onnx file only the weights. Collective in ddp; rank 0's `path` counts. TDM_E_CHECKPOINT if it is missing, damaged or of another model.
 */
TDM_API tdm_status tdm_run_load(tdm_run *run, const char *path);
/* The same without files. tdm_run_save_to gives a writer, such as one of a tdm_buffer, the files of a checkpoint as one
 * tar archive, which `tar xf` unpacks; on other ranks than 0 `to` is not looked at. tdm_run_load_memory takes these
 * bytes back, or those of a .safetensors or .onnx file (only the weights), and borrows them for the call; rank 0's
 * count. They are checked like files, every byte of them. */
TDM_API tdm_status tdm_run_save_to(tdm_run *run, const tdm_writer *to);
TDM_API tdm_status tdm_run_load_memory(tdm_run *run, const void *bytes, size_t count);

/* The run's own properties (tandem/checkpoint.h), which its checkpoints keep and what is exported from them. Restoring
 * a run from a checkpoint with state, tdm_run_load or checkpoint.resume, replaces them all by those of the checkpoint.
 * In ddp rank 0's are saved, and only rank 0 gets them back. They do not need an idle run: a callback may set them.
 *
 * Sets the text of a key, which is copied; UTF-8. text NULL removes it. TDM_E_USAGE if there would be too many, or if
 * the key is tandem's own. */
TDM_API tdm_status tdm_run_set_property(tdm_run *run, const char *key, const char *text);
/* Returns the text of a key, NULL if it has none; and the index-th key in byte order, NULL if there are fewer. Owned by
 * the run, until its properties change. */
TDM_API const char *tdm_run_property(const tdm_run *run, const char *key);
TDM_API const char *tdm_run_property_key(const tdm_run *run, int index);

/* Describes the run in *out; free it with tdm_free. what: "graph", "plan", "plan.json", "summary", "kernels.json":
 * the kernel of each layer, and the algorithms it has chosen for each number of rows seen so far; "times.json": the
 * milliseconds of each layer's runs in the last pass (tdm_run_options.repeats); or "evaluation.json", of the last
 * evaluation: samples and hits of each class, the confusion matrix ([label][predicted], for at most 256
 * classes) and the samples with the highest losses. TDM_E_USAGE before the first evaluation. */
TDM_API tdm_status tdm_run_print(tdm_run *run, const char *what, char **out);
/* Prints the plan of a job, as `tandem plan` does, without opening data or devices. json: non-zero for JSON. Free *out
 * with tdm_free. */
TDM_API tdm_status tdm_plan_print(const tdm_job *job, const tdm_graph *graph, int json, char **out);
typedef struct tdm_plan_print_options {
    uint32_t size;
    int json;
    int predicts;      /* non-zero: the plan of a run that only predicts (tdm_run_options.predicts) */
    const char *after; /* the plan after this pass ("lower", "layout", "rewrite", ...), as text only; an unknown name is
                          TDM_E_USAGE, and the message lists the passes. NULL: the finished plan */
    int process; /* non-zero: also the memory of a process that trains on the CPU, at its peak; opens the job's data.
                    With neither json, predicts nor after. */
} tdm_plan_print_options;
#define TDM_PLAN_PRINT_OPTIONS_INIT \
    { sizeof(tdm_plan_print_options), 0, 0, NULL, 0 }
TDM_API tdm_status tdm_plan_print_with(const tdm_job *job, const tdm_graph *graph,
                                       const tdm_plan_print_options *options, char **out);
/* Whether the replicas of a process fit into the job's host.memory_limit, without opening data or devices. TDM_E_CONFIG
 * says what needs how much. Where this passes, tdm_run_open may still refuse the run for its data. */
TDM_API tdm_status tdm_plan_check_memory(const tdm_job *job, const tdm_graph *graph);

/* ---- starting local ranks: the tandem command does it, and so may a product ---- */

/* Makes an anonymous descriptor in *fd that the ranks of one ddp job inherit. world: 1 to 256 ranks. Close it with
 * close(). */
TDM_API tdm_status tdm_launch_create(int *fd, int world);
/* Ends the job for all ranks, with `why` in their messages: because process `rank` has died, or, with a rank below 0,
 * because the launcher says so. */
TDM_API void tdm_launch_abort(int fd, int rank, const char *why);
/* Records how a job ended, for jobs whose processes may not have lived to do so: writes `exit_code`, `restarts` and
 * `reason` into status.json of run directory `dir`. Does nothing if no run was there, or while a job still holds the
 * folder. */
TDM_API tdm_status tdm_launch_ended(const char *dir, int exit_code, int restarts, const char *reason);

TDM_END_DECLS
#endif
