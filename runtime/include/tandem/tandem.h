/* tandem/tandem.h - train data-parallel models from C.
 *
 *   T **out comes first and is yours: end it with tdm_T_free or tdm_T_close. Returned pointers are borrowed from their
 *   object. Options structs start with `size`: use the INIT macros. Nothing here exits, aborts, prints, forks, installs
 *   signal handlers or keeps process-wide state; two runs in one process do not see each other. One object, one thread
 *   at a time, except where a function says "any thread". Every call that returns tdm_status leaves a message in
 *   tdm_error_message() when it fails. */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include <tandem/config.h>
#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/job.h>
#include <tandem/source.h>
#include <tandem/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TDM_VERSION "0.1.0"
TDM_API const char *tdm_version(void);

typedef struct tdm_run tdm_run; /* job + graph + plan + replicas + trainer */

/* ---- events: called on the thread that called train or step, no lock held ---- */

typedef enum tdm_event_kind {
    TDM_EVENT_START,      /* everything is open, nothing has run */
    TDM_EVENT_STEP,       /* an optimizer step is done */
    TDM_EVENT_EVAL,       /* an evaluation is done: loss, accuracy */
    TDM_EVENT_CHECKPOINT, /* a checkpoint is complete: path */
    TDM_EVENT_END
} tdm_event_kind;

/* Milliseconds of one step by phase; NaN where the mode has no such phase. On a GPU every eighth step is timed, and all
 * but data and step are those of the last one that was. */
typedef struct tdm_phase_ms {
    double data, scatter, replicate, forward, gather, loss, backward, comm, comm_exposed, optimizer, step;
} tdm_phase_ms;

typedef struct tdm_event {
    tdm_event_kind kind;
    int64_t step, steps_total; /* done; of the whole run */
    int64_t epoch;
    int64_t samples;                      /* of this step */
    double loss, accuracy, lr, grad_norm; /* NaN where it does not apply */
    double samples_per_second;
    tdm_phase_ms ms;
    const char *path; /* TDM_EVENT_CHECKPOINT; else NULL */
} tdm_event;

/* ---- opening a run ---- */

typedef struct tdm_run_options {
    uint32_t size;
    const tdm_host *host;                                /* NULL: tdm_host_default() */
    const tdm_source *train, *eval;                      /* own data instead of the job's; NULL: the job's */
    int (*on_event)(const tdm_event *event, void *user); /* non-zero: stop after this step, as tdm_run_request_stop */
    void *user;
    const char *module_path; /* NULL: TANDEM_MODULE_PATH and the places beside the library */
    /* One rank of a ddp job whose processes exist already: rank, world and the inherited descriptor of
     * tdm_launch_create. world 0: alone. */
    int rank, world, launch_fd;
    /* Written into the run directory and checkpoints as config.input.yaml and config.resolved.yaml; NULL: none. */
    const char *config_input, *config_yaml;
    /* Non-zero: on a GPU the next step may be under way when on_event is told of one, so that the GPU never waits for
     * it; within on_event the run's tensors cannot be asked for then. Without on_event it is so anyway. */
    int run_ahead;
    int restarts; /* how often this job has been started again; status.json and summary.json tell */
    int pid;      /* in status.json: whom to signal, the parent where that passes signals on; 0: this process */
    /* In a job of several ranks: all have come, and from here on look after one another. Called once, by tdm_run_open,
     * on its thread. */
    void (*on_met)(void *user);
    /* Non-zero: the run evaluates and predicts only. It has no memory for gradients and optimizer state, and its plan
     * no backward; tdm_run_train, tdm_run_step and tdm_run_save are TDM_E_USAGE, tdm_run_load takes the weights alone.
     */
    int predicts;
} tdm_run_options;
#define TDM_RUN_OPTIONS_INIT \
    { sizeof(tdm_run_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, -1, NULL, NULL, 0, 0, 0, NULL, 0 }

/* Opens data, builds the plan and the replicas, makes the initial weights, resumes if the job says so. The job and the
 * graph are borrowed until close. In ddp with several ranks this is collective. */
TDM_API tdm_status tdm_run_open(tdm_run **out, const tdm_job *job, const tdm_graph *graph,
                                const tdm_run_options *options);
TDM_API void tdm_run_close(tdm_run *run); /* NULL is fine */

/* To the end of the job, with evaluations, checkpoints and metrics as it says. TDM_E_STOPPED after a stop request: if
 * there is a run directory, it holds a checkpoint of every step that was made. */
TDM_API tdm_status tdm_run_train(tdm_run *run);
/* `count` more optimizer steps, and nothing else. Past the job's last step: TDM_E_USAGE. */
TDM_API tdm_status tdm_run_step(tdm_run *run, int64_t count);
/* Finish the steps that are running, save, return; in ddp all ranks do, at the latest after one step more than those.
 * Before training it means: no step at all. An evaluation under way is left to whoever goes on. Training may be called
 * again and goes on. Any thread, and from a signal handler. */
TDM_API void tdm_run_request_stop(tdm_run *run);

typedef struct tdm_run_state {
    int64_t step, steps_total, epoch, steps_per_epoch, samples;
    double lr, loss; /* of the last step; NaN before the first */
    int replicas;
    int64_t per_device, global_batch, params;
    char params_xxh3[40]; /* XXH3-128, hex, over all parameters in name order */
} tdm_run_state;
TDM_API tdm_status tdm_run_get_state(tdm_run *run, tdm_run_state *out);

/* Mean loss and accuracy (NaN for losses without labels) over the eval data. Collective in ddp. */
TDM_API tdm_status tdm_run_evaluate(tdm_run *run, double *loss, double *accuracy);
/* y[rows, outputs] for x[rows, inputs] in evaluation mode; any number of rows. They go through the model as in
 * evaluation: tdm_run_eval_batch at once, from the first on. */
TDM_API tdm_status tdm_run_predict(tdm_run *run, const float *x, int64_t rows, float *y);
TDM_API int64_t tdm_run_eval_batch(const tdm_run *run);
/* Output numbers per row, and input numbers per row. */
TDM_API int64_t tdm_run_output_width(const tdm_run *run);
TDM_API int64_t tdm_run_input_width(const tdm_run *run);
/* The eval split sample by sample: x transformed, [input_width]; label -1 where there are none. */
TDM_API int64_t tdm_run_eval_count(const tdm_run *run);
TDM_API tdm_status tdm_run_eval_sample(tdm_run *run, int64_t index, float *x, int64_t *label);

/* ---- tensors by name: PyTorch's names and layouts, parameters first, then buffers ---- */

typedef struct tdm_tensor_info {
    const char *name;
    int ndim;
    int64_t dim[6];
    int64_t count;
    size_t bytes;
    int is_buffer, is_int64; /* float32 otherwise */
} tdm_tensor_info;
TDM_API int tdm_run_tensor_count(const tdm_run *run);
TDM_API tdm_status tdm_run_tensor(const tdm_run *run, int index, tdm_tensor_info *out);
TDM_API tdm_status tdm_run_read(tdm_run *run, const char *name, void *to, size_t bytes);
TDM_API tdm_status tdm_run_write(tdm_run *run, const char *name, const void *from, size_t bytes);

/* A checkpoint step-NNNNNNNN under `dir`; and everything back from one (a step folder, a run folder), or weights alone
 * from a .safetensors file. */
TDM_API tdm_status tdm_run_save(tdm_run *run, const char *dir);
TDM_API tdm_status tdm_run_load(tdm_run *run, const char *path);

/* "graph", "plan", "plan.json", "summary": text, released with tdm_free. "kernels.json": which kernel each layer runs,
 * and the algorithms it has chosen, for each number of rows that it has met so far. */
TDM_API tdm_status tdm_run_print(tdm_run *run, const char *what, char **out);
/* The plan of a job without opening anything: what `tandem plan` prints. */
TDM_API tdm_status tdm_plan_print(const tdm_job *job, const tdm_graph *graph, int json, char **out);
typedef struct tdm_plan_print_options {
    uint32_t size;
    int json;
    int predicts;      /* non-zero: of a run that only predicts (tdm_run_options.predicts) */
    const char *after; /* as text only: the plan as it is after this pass ("lower", "layout", "rewrite", ...);
                          TDM_E_USAGE names them where it is none of them. NULL: the finished plan */
} tdm_plan_print_options;
#define TDM_PLAN_PRINT_OPTIONS_INIT \
    { sizeof(tdm_plan_print_options), 0, 0, NULL }
TDM_API tdm_status tdm_plan_print_with(const tdm_job *job, const tdm_graph *graph,
                                       const tdm_plan_print_options *options, char **out);

/* ---- launching local ranks (the tandem command does it; a product may) ---- */

/* An anonymous descriptor that the ranks of one ddp job inherit; and word to all of them that one has died. */
TDM_API tdm_status tdm_launch_create(int *fd, int world);
TDM_API void tdm_launch_abort(int fd, int rank, const char *why);
/* How a job ended whose processes may not have lived to write it: into status.json of run directory `dir`. Nothing
 * where no run has been, or while a job holds the folder. */
TDM_API tdm_status tdm_launch_ended(const char *dir, int exit_code, int restarts, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
