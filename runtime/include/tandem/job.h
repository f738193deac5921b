/* tandem/job.h - everything about a training run but the model, as plain structs.
 *
 * The YAML front end fills a tdm_job; a C program may fill one itself: start with tdm_job_init. Texts are borrowed and
 * must outlive whatever is opened from the job. Field meanings, units, defaults and ranges: `tandem explain KEY`, from
 * the same table that reads the file (config/job_fields.c). */
#ifndef TANDEM_JOB_H
#define TANDEM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/field.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_data_format {
    TDM_DATA_NONE,
    TDM_DATA_IDX,         /* MNIST's files, plain or .gz */
    TDM_DATA_CIFAR10,     /* binary version */
    TDM_DATA_NPY,         /* x.npy and y.npy */
    TDM_DATA_SYNTHETIC,   /* randn inputs, randint labels or randn targets, drawn as torch would */
    TDM_DATA_GLYPHS,      /* rendered digits, learnable, no download */
    TDM_DATA_IMAGE_FOLDER /* known to the format, refused by tdm_config_check of this build */
} tdm_data_format;

typedef struct tdm_data_spec {
    int format;                  /* tdm_data_format */
    const char *images, *labels; /* idx */
    const char *x, *y;           /* npy */
    tdm_texts files;             /* cifar10 */
    tdm_ints range;              /* [first, end) of the samples; empty: all */
    int64_t samples;             /* synthetic, glyphs */
    int64_t classes;             /* synthetic; TDM_INT_NULL: as many as the model has outputs */
    int64_t seed;                /* synthetic, glyphs; TDM_INT_NULL: the job's */
    double noise;                /* glyphs: standard deviation of pixel noise, of 1 */
    tdm_origin origin;           /* of the section, for messages */
    const char *path;            /* cifar10: the folder that `files` were made from; NULL otherwise */
    int split;                   /* of `path`: 0 by the section's name, 1 train, 2 test */
    tdm_origin inputs_at;        /* of images, x, files or path, for messages */
    tdm_origin targets_at;       /* of labels or y */
} tdm_data_spec;

typedef struct tdm_transform_spec {
    bool to_float;          /* bytes / 255 */
    tdm_floats mean, stdev; /* normalize; count 0: none, 1: every channel alike */
} tdm_transform_spec;

/* Whether a GPU keeps the training samples in its memory. auto: if they take at most a quarter of what is free. */
typedef enum tdm_resident_mode { TDM_RESIDENT_AUTO, TDM_RESIDENT_ALWAYS, TDM_RESIDENT_NEVER } tdm_resident_mode;

typedef struct tdm_data_section {
    tdm_data_spec train, eval; /* eval.format TDM_DATA_NONE: no evaluation */
    tdm_transform_spec transform;
    bool shuffle, drop_last;
    int64_t workers; /* loader threads per process; 0: in the training thread */
    int resident;    /* tdm_resident_mode */
} tdm_data_section;

typedef struct tdm_loss_section {
    int kind; /* index in tdm_builtin_losses: cross_entropy, mse */
    double label_smoothing;
    int64_t ignore_index;
} tdm_loss_section;

typedef enum tdm_optimizer_kind { TDM_SGD, TDM_ADAM, TDM_ADAMW } tdm_optimizer_kind;
typedef enum tdm_adam_form { TDM_ADAM_LERP, TDM_ADAM_MULADD } tdm_adam_form;
typedef struct tdm_optimizer_section {
    int type; /* tdm_optimizer_kind */
    double lr;
    double momentum, dampening; /* sgd */
    bool nesterov;
    tdm_floats betas; /* adam, adamw: two */
    double eps;
    double weight_decay; /* NaN: PyTorch's default, 0 for sgd and adam, 0.01 for adamw */
    int form;            /* tdm_adam_form: as torch >= 2.1, or as 1.13 */
} tdm_optimizer_section;

typedef enum tdm_schedule_kind {
    TDM_SCHEDULE_CONSTANT,
    TDM_SCHEDULE_STEP,
    TDM_SCHEDULE_MULTISTEP,
    TDM_SCHEDULE_COSINE,
    TDM_SCHEDULE_ONECYCLE,
    TDM_SCHEDULE_LINEAR
} tdm_schedule_kind;
typedef enum tdm_schedule_unit { TDM_SCHEDULE_PER_EPOCH, TDM_SCHEDULE_PER_STEP } tdm_schedule_unit;
typedef struct tdm_schedule_section {
    int type;             /* tdm_schedule_kind */
    int per;              /* tdm_schedule_unit: what one call of scheduler.step() stands for */
    int64_t warmup_steps; /* linear warm-up in front, in steps; then the schedule from its start (SequentialLR) */
    double warmup_factor; /* of the first step: LinearLR's start_factor */
    int64_t step_size;    /* step */
    double gamma;         /* step, multistep */
    tdm_ints milestones;  /* multistep */
    int64_t total;        /* cosine T_max, onecycle total_steps, linear total_iters; TDM_INT_NULL: the whole run */
    double min_lr;        /* cosine eta_min */
    double max_lr;        /* onecycle; NaN: optimizer.lr */
    double pct_start, div_factor, final_div_factor; /* onecycle */
    int anneal;                                     /* onecycle: 0 cos, 1 linear */
    bool cycle_momentum, three_phase;               /* onecycle */
    double base_momentum, max_momentum;             /* onecycle: of sgd's momentum, or adam's beta1 */
    double start_factor, end_factor;                /* linear */
} tdm_schedule_section;

typedef enum tdm_precision { TDM_F32, TDM_TF32, TDM_BF16 } tdm_precision;
typedef struct tdm_train_section {
    int64_t epochs, steps;            /* exactly one; the other TDM_INT_NULL */
    int64_t per_device, global_batch; /* exactly one, samples per optimizer step; the other TDM_INT_NULL */
    int64_t accumulate;               /* micro-batches that a device cuts its part of a step into */
    double clip_grad_norm;            /* NaN: none */
    int precision;
} tdm_train_section;

typedef enum tdm_mode_kind { TDM_MODE_SINGLE, TDM_MODE_DP, TDM_MODE_DDP } tdm_mode_kind;
typedef enum tdm_device_kind { TDM_DEVICE_AUTO, TDM_DEVICE_CPU, TDM_DEVICE_CUDA } tdm_device_kind;
typedef enum tdm_scatter { TDM_SCATTER_CHUNK, TDM_SCATTER_STRIDED } tdm_scatter;
typedef enum tdm_dp_loss { TDM_DP_LOSS_GATHERED, TDM_DP_LOSS_REPLICA } tdm_dp_loss;
typedef enum tdm_dp_update { TDM_DP_UPDATE_ROOT, TDM_DP_UPDATE_ALL } tdm_dp_update;
/* auto: the fastest kernels that are as accurate as PyTorch's. fast: Winograd convolutions too, whose larger rounding
 * errors move the loss curve. */
typedef enum tdm_kernel_choice { TDM_KERNELS_AUTO, TDM_KERNELS_REF, TDM_KERNELS_FAST } tdm_kernel_choice;
/* What the loss of a step is the mean of: all its samples that count, or the ranks' own means, as in PyTorch. The two
 * differ where labels are ignored. */
typedef enum tdm_ddp_average { TDM_AVERAGE_SAMPLES, TDM_AVERAGE_RANKS } tdm_ddp_average;
typedef struct tdm_parallel_section {
    int mode, device;
    tdm_ints device_ids;
    int64_t threads_per_device; /* TDM_INT_NULL: the machine's cores divided by its devices */
    bool allow_shared_device;
    int kernels; /* tdm_kernel_choice */
    int64_t stages;
    tdm_interval verify; /* of replicas; before each evaluation and checkpoint it is done in any case */
    struct {
        int64_t output_device; /* a member of device_ids */
        int scatter, loss, update;
    } dp;
    struct {
        int backend; /* tdm_backend */
        const char *init_method;
        double bucket_cap_mb;
        int average; /* tdm_ddp_average */
        bool find_unused_parameters, broadcast_buffers, check_reduction;
        double timeout;   /* seconds */
        double heartbeat; /* seconds; NaN: none */
        double grace;     /* seconds; from a wish to stop to SIGKILL, for whoever starts the ranks */
    } ddp;
} tdm_parallel_section;
typedef enum tdm_backend {
    TDM_BACKEND_AUTO,
    TDM_BACKEND_NCCL,
    TDM_BACKEND_GLOO,
    TDM_BACKEND_MPI,
    TDM_BACKEND_SHM,
    TDM_BACKEND_LOCAL
} tdm_backend;

typedef enum tdm_resume { TDM_RESUME_AUTO, TDM_RESUME_NEVER, TDM_RESUME_PATH } tdm_resume;
typedef struct tdm_checkpoint_section {
    tdm_interval every;
    int64_t keep_last;
    const char *resume; /* auto | never | a path */
    tdm_origin resume_at;
} tdm_checkpoint_section;

typedef struct tdm_job {
    uint32_t size;   /* sizeof(tdm_job) */
    int64_t version; /* of the format: 1 */
    const char *name;
    int64_t seed;
    bool deterministic;
    int rng_profile;     /* tdm_rng_profile of initial weights and synthetic data */
    const char *weights; /* a .safetensors file to start from, or NULL */
    tdm_data_section data;
    tdm_loss_section loss;
    tdm_optimizer_section optimizer;
    tdm_schedule_section schedule;
    tdm_train_section train;
    tdm_parallel_section parallel;
    struct {
        tdm_interval every;
        int64_t batch; /* samples at once; TDM_INT_NULL: as many as a device takes at once in training */
    } eval;
    tdm_checkpoint_section checkpoint;
    struct {
        const char *dir;   /* NULL: no run directory, nothing is written */
        bool has_its_time; /* the time of the start is in its name: meant to be new */
    } run;
    struct {
        tdm_interval every;
        int progress; /* 0 auto, 1 always, 2 never */
        bool tensorboard;
    } log;
    tdm_origin weights_at; /* of `weights`, for messages */
} tdm_job;

/* Every field to its default, but no run directory: a program that wants files says where. Texts point to constants. */
TDM_API tdm_status tdm_job_init(tdm_job *job);
/* Are all values in their ranges, and of each pair exactly one given? TDM_E_CONFIG names the first that is not.
 * Whatever opens or prints a job asks this first. */
TDM_API tdm_status tdm_job_check(const tdm_job *job);
/* Every value, a line `section.key: value` each, in the order of `tandem show`. For tdm_free. */
TDM_API tdm_status tdm_job_print(const tdm_job *job, char **out);
/* The flags (TDM_FIELD_...) of the key at the beginning of such a line, `length` bytes; 0 of what is no key. */
TDM_API unsigned tdm_job_key_flags(const char *key, size_t length);

#ifdef __cplusplus
}
#endif
#endif
