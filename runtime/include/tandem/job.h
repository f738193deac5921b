/* tandem/job.h - everything about a training run except the model, as plain structs.
 *
 * The YAML reader fills a tdm_job. A C program may fill one itself, starting with tdm_job_init. Texts are borrowed for
 * the calls that take the job: what they open keeps copies. `tandem explain KEY` gives each field's meaning, unit,
 * default and range, from the same table that reads the file. A comment that begins with a kind ("idx",
 * "sgd", "onecycle") names the kinds that use the field.
 *
 * Threads: functions here keep nothing between calls; any number of threads may call them with different jobs, and
 * those that take a const tdm_job with the same. */
#ifndef TANDEM_JOB_H
#define TANDEM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/field.h>

TDM_BEGIN_DECLS

typedef enum tdm_data_format {
    TDM_DATA_NONE,
#define TDM_FORMAT(key, name) TDM_DATA_##key, /* TDM_DATA_IDX, ... */
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
} tdm_data_format;

/* auto: test for data.eval, else train. */
typedef enum tdm_split { TDM_SPLIT_AUTO, TDM_SPLIT_TRAIN, TDM_SPLIT_TEST } tdm_split;

/* What becomes of a picture that cannot be read: the run ends, or its label is ignored. */
typedef enum tdm_bad_sample { TDM_BAD_SAMPLE_ERROR, TDM_BAD_SAMPLE_SKIP } tdm_bad_sample;

/* Does the first row name the columns? auto: if none of its cells is a number. */
typedef enum tdm_csv_header { TDM_CSV_HEADER_AUTO, TDM_CSV_HEADER_YES, TDM_CSV_HEADER_NO } tdm_csv_header;

/* What a missing number of a table counts as: nothing, it ends the run; the mean of its column; 0. */
typedef enum tdm_missing { TDM_MISSING_ERROR, TDM_MISSING_MEAN, TDM_MISSING_ZERO } tdm_missing;

/* What a category that the data trained on does not have becomes: it ends the run; number 0, which no other has. */
typedef enum tdm_unseen { TDM_UNSEEN_ERROR, TDM_UNSEEN_UNKNOWN } tdm_unseen;

typedef struct tdm_data_spec {
    tdm_data_format format;
    const char *images, *labels; /* idx */
    const char *x, *y;           /* npy */
    tdm_texts files;             /* cifar10 */
    tdm_ints range;              /* [first, end) of the samples; empty: all */
    int64_t samples;             /* synthetic, glyphs */
    int64_t classes;             /* synthetic; TDM_INT_NULL: the number of the model's outputs */
    int64_t seed;                /* synthetic, glyphs, `holdout`; TDM_INT_NULL: the job's seed */
    double noise;                /* glyphs: standard deviation of the pixel noise; pixels are 0 to 1 */
    tdm_origin origin;           /* where the file has the section, for messages */
    const char *path;            /* image_folder: the folder. csv: the table. cifar10: where `files` were found */
    tdm_split split;             /* which files cifar10 reads in `path`, which part of `holdout` */
    tdm_origin inputs_at;        /* where the file has images, x, files or path, for messages */
    tdm_origin targets_at;       /* where it has labels, y or label */
    /* Above 0: the data is split by chance. This fraction is the part that `split` test reads, the rest is train's. The
     * same seed, fraction and samples give the same split. 0: there is no split. */
    double holdout;
    const char *label;     /* csv: the column of the label or target, by name or by number from 0; NULL: the last */
    tdm_csv_header header; /* csv */
    const char *file;      /* image_folder: a table of path and label; NULL: the folders in `path` are the classes */
    tdm_bad_sample on_bad_sample; /* image_folder */
    /* csv: columns, by name or by number from 0. A sample is the numbers, then the categories, as whole numbers; means
     * and categories are those of data.train. */
    tdm_texts categories, ignore;
    tdm_missing missing;                  /* csv */
    tdm_unseen unseen;                    /* csv */
    bool standardize, standardize_target; /* csv: numbers, float targets become (number - mean) / deviation */
    bool without_targets; /* for predictions: csv: the column of the label may be missing; npy: y may be NULL; no key of
                             the YAML */
    tdm_texts inputs;     /* npy, instead of x: the name of an input of the model, its file, the next name, ... */
} tdm_data_spec;

typedef enum tdm_transform_kind {
#define TDM_TRANSFORM(key, name) TDM_TRANSFORM_##key, /* TDM_TRANSFORM_RESIZE, ... */
#include <tandem/sys/transforms.def>
#undef TDM_TRANSFORM
    TDM_TRANSFORM_KINDS
} tdm_transform_kind;

/* One step for pictures. Each kind uses some members; tdm_transform_init gives all their defaults. */
typedef struct tdm_transform_step {
    tdm_transform_kind kind;
    int64_t size;          /* resize: the short side; TDM_INT_NULL: height and width */
    int64_t height, width; /* resize, crops: of the result */
    int64_t padding;       /* random_crop: black pixels around the picture */
    tdm_floats scale;      /* random_resized_crop, random_erasing: fraction of the area, from and to */
    tdm_floats ratio;      /* the same: width / height, from and to */
    double p;              /* probability */
    double degrees;        /* random_rotation: up to this much to either side */
    double brightness, contrast, saturation, hue; /* color_jitter: how far factors may be from 1; hue: turns */
    int64_t num_ops, magnitude;                   /* rand_augment */
    double alpha;                                 /* mixup, cutmix: of Beta(alpha, alpha) */
} tdm_transform_step;

/* One step normalize: (x - mean) / stdev. */
typedef struct tdm_normalize {
    tdm_numbers mean, stdev; /* one for each channel, or one that is the same for all */
    tdm_texts inputs;        /* of a model with several inputs: the names of those that it is for */
} tdm_normalize;
typedef struct tdm_normalizes {
    int count; /* several: each is for other inputs */
    tdm_normalize item[TDM_SHAPES_MAX];
} tdm_normalizes;

enum { TDM_TRANSFORMS_MAX = 16 };
typedef struct tdm_transform_spec {
    bool to_float;  /* bytes / 255 */
    int step_count; /* for pictures, before to_float */
    tdm_transform_step step[TDM_TRANSFORMS_MAX];
    tdm_normalizes normalize; /* after to_float */
} tdm_transform_spec;

/* Whether a GPU keeps the training samples in its memory. auto: yes if they need at most a quarter of the free memory.
 */
typedef enum tdm_resident_mode { TDM_RESIDENT_AUTO, TDM_RESIDENT_ALWAYS, TDM_RESIDENT_NEVER } tdm_resident_mode;

typedef struct tdm_data_section {
    tdm_data_spec train, eval; /* eval.format TDM_DATA_NONE: no evaluation */
    tdm_transform_spec transform;
    bool shuffle, drop_last;
    int64_t workers; /* loader threads per process; 0: in the training thread */
    tdm_resident_mode resident;
} tdm_data_section;

typedef enum tdm_loss_kind {
    TDM_CROSS_ENTROPY,
    TDM_MSE,
    TDM_L1,
    TDM_SMOOTH_L1,
    TDM_BCE_WITH_LOGITS,
    TDM_NLL,
    TDM_SOFT_CROSS_ENTROPY
} tdm_loss_kind;
typedef struct tdm_loss_section {
    tdm_loss_kind type;
    double label_smoothing; /* cross_entropy, soft_cross_entropy */
    int64_t ignore_index;   /* cross_entropy, nll */
    double beta;            /* smooth_l1 */
    /* bce_with_logits: of targets that are 1; count 0: 1, 1: for all outputs, else one for each */
    tdm_numbers pos_weight;
    tdm_numbers weight; /* cross_entropy, nll, soft_cross_entropy: of each class; count 0: 1 */
} tdm_loss_section;

typedef enum tdm_optimizer_kind { TDM_SGD, TDM_ADAM, TDM_ADAMW, TDM_RMSPROP, TDM_LARS } tdm_optimizer_kind;
typedef enum tdm_adam_form { TDM_ADAM_LERP, TDM_ADAM_MULADD } tdm_adam_form;
/* Parameters with settings of their own: torch.optim's param_groups. */
typedef struct tdm_param_group {
    tdm_texts params;    /* patterns of names: `*` is any characters, `?` one */
    double lr;           /* before the schedule; NaN: the optimizer's */
    double weight_decay; /* NaN: the optimizer's */
} tdm_param_group;
enum { TDM_PARAM_GROUPS_MAX = 15 };
typedef struct tdm_param_groups {
    int count;
    tdm_param_group item[TDM_PARAM_GROUPS_MAX];
} tdm_param_groups;

typedef struct tdm_optimizer_section {
    tdm_optimizer_kind type;
    double lr;
    double momentum, dampening; /* sgd, lars; rmsprop: momentum */
    bool nesterov;              /* sgd, lars */
    tdm_floats betas;           /* adam, adamw: two numbers */
    double eps;                 /* adam, adamw, rmsprop, lars */
    double weight_decay;        /* NaN: PyTorch's default, 0.01 for adamw, else 0 */
    tdm_adam_form form;         /* rounds as torch >= 2.1, or as 1.13 */
    tdm_param_groups groups;    /* a parameter is in the first that matches, else in none */
    bool amsgrad;               /* adam, adamw: divide by the largest average of squares so far */
    double alpha;               /* rmsprop: decay of its averages */
    bool centered;              /* rmsprop */
    double trust_coefficient;   /* lars */
    bool exclude_1d;            /* lars: parameters of one dimension take plain steps of sgd, without weight decay */
} tdm_optimizer_section;

/* What an evaluation is judged by. tdm_scores has the numbers. */
typedef enum tdm_metric { TDM_METRIC_NONE, TDM_METRIC_ACCURACY, TDM_METRIC_TOP5, TDM_METRIC_LOSS } tdm_metric;

typedef enum tdm_schedule_kind {
    TDM_SCHEDULE_CONSTANT,
    TDM_SCHEDULE_STEP,
    TDM_SCHEDULE_MULTISTEP,
    TDM_SCHEDULE_COSINE,
    TDM_SCHEDULE_ONECYCLE,
    TDM_SCHEDULE_LINEAR,
    TDM_SCHEDULE_EXPONENTIAL,
    TDM_SCHEDULE_COSINE_RESTARTS,
    TDM_SCHEDULE_PLATEAU
} tdm_schedule_kind;
typedef enum tdm_schedule_unit { TDM_SCHEDULE_PER_EPOCH, TDM_SCHEDULE_PER_STEP } tdm_schedule_unit;
/* auto: the loss is to fall, the others are to rise. */
typedef enum tdm_plateau_mode { TDM_PLATEAU_AUTO, TDM_PLATEAU_MIN, TDM_PLATEAU_MAX } tdm_plateau_mode;
typedef enum tdm_threshold_mode { TDM_THRESHOLD_REL, TDM_THRESHOLD_ABS } tdm_threshold_mode;
typedef enum tdm_anneal { TDM_ANNEAL_COS, TDM_ANNEAL_LINEAR } tdm_anneal;
typedef struct tdm_schedule_section {
    tdm_schedule_kind type;
    tdm_schedule_unit per; /* how often scheduler.step() is called */
    int64_t warmup_steps;  /* steps of linear warm-up; then the schedule begins (SequentialLR) */
    double warmup_factor;  /* the factor of the first step: LinearLR's start_factor */
    int64_t step_size;     /* step */
    double gamma;          /* step, multistep, exponential */
    tdm_ints milestones;   /* multistep */
    int64_t total;         /* cosine T_max, onecycle total_steps, linear total_iters; TDM_INT_NULL: the whole run */
    double min_lr;         /* cosine, cosine_restarts: eta_min; plateau */
    double max_lr;         /* onecycle; NaN: optimizer.lr */
    double pct_start, div_factor, final_div_factor; /* onecycle */
    tdm_anneal anneal;                              /* onecycle */
    bool cycle_momentum, three_phase;               /* onecycle */
    double base_momentum, max_momentum;             /* onecycle: for the momentum, or adam's beta1 */
    double start_factor, end_factor;                /* linear */
    int64_t t_0, t_mult;                            /* cosine_restarts: length of the first cycle; its growth */
    tdm_metric metric;                              /* plateau: not TDM_METRIC_NONE. It steps at evaluations */
    tdm_plateau_mode mode;                          /* plateau */
    double factor;                                  /* plateau: of a reduction */
    int64_t patience, cooldown;                     /* plateau */
    double threshold;                               /* plateau: a smaller or equal improvement is none */
    tdm_threshold_mode threshold_mode;              /* plateau */
    double eps;                                     /* plateau: smaller or equal reductions are not made */
} tdm_schedule_section;

/* Which of a run's weights are evaluated, where it has train.ema: the average, or those that are trained. */
typedef enum tdm_eval_weights { TDM_WEIGHTS_EMA, TDM_WEIGHTS_MODEL } tdm_eval_weights;

typedef enum tdm_precision { TDM_F32, TDM_TF32, TDM_BF16 } tdm_precision;
/* Outputs that backward reads may be made again instead of kept: less memory for a little time, the same bits. auto: on
 * the CPU those of at least 1 MiB. Only where a kernel can: see tdm_kernel.recompute. */
typedef enum tdm_recompute { TDM_RECOMPUTE_AUTO, TDM_RECOMPUTE_ALWAYS, TDM_RECOMPUTE_NEVER } tdm_recompute;
typedef struct tdm_train_section {
    int64_t epochs, steps;            /* exactly one; the other TDM_INT_NULL */
    int64_t per_device, global_batch; /* exactly one, samples per step; the other TDM_INT_NULL */
    int64_t accumulate;               /* micro-batches into which a device cuts its part of a step */
    double clip_grad_norm;            /* NaN: none */
    tdm_precision precision;
    tdm_recompute recompute;
    int64_t stop_after;     /* evaluations without an improvement that end the run; TDM_INT_NULL: none do */
    tdm_metric stop_metric; /* not TDM_METRIC_NONE */
    double stop_min_delta;  /* the metric must improve by more than this */
    double ema_decay;       /* of the moving average of the parameters; NaN: there is none */
    bool ema_warmup;        /* the decay is at most (1 + n) / (10 + n) after n updates */
    int64_t ema_every;      /* steps between two updates of the average */
    double clip_grad_value; /* NaN: none; after clip_grad_norm */
} tdm_train_section;

typedef enum tdm_mode_kind { TDM_MODE_SINGLE, TDM_MODE_DP, TDM_MODE_DDP } tdm_mode_kind;
typedef enum tdm_device_kind { TDM_DEVICE_AUTO, TDM_DEVICE_CPU, TDM_DEVICE_CUDA } tdm_device_kind;
typedef enum tdm_scatter { TDM_SCATTER_CHUNK, TDM_SCATTER_STRIDED } tdm_scatter;
typedef enum tdm_dp_loss { TDM_DP_LOSS_GATHERED, TDM_DP_LOSS_REPLICA } tdm_dp_loss;
typedef enum tdm_dp_update { TDM_DP_UPDATE_ROOT, TDM_DP_UPDATE_ALL } tdm_dp_update;
/* auto: the fastest kernels that are as accurate as PyTorch's. ref: the reference kernels. fast: as auto, but with
 * Winograd convolutions, whose larger rounding errors change the loss curve. */
typedef enum tdm_kernel_choice { TDM_KERNELS_AUTO, TDM_KERNELS_REF, TDM_KERNELS_FAST } tdm_kernel_choice;
typedef enum tdm_backend {
    TDM_BACKEND_AUTO,
#define TDM_BACKEND(key, name, source) TDM_BACKEND_##key, /* TDM_BACKEND_NCCL, ... */
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
} tdm_backend;
/* The loss of a step is the mean over all samples that count, or the mean of the ranks' means, as in PyTorch. The two
 * differ if labels are ignored or classes have weights. */
typedef enum tdm_ddp_average { TDM_AVERAGE_SAMPLES, TDM_AVERAGE_RANKS } tdm_ddp_average;
/* How ddp sends gradients: as floats, rounded to 16 bits, or as two thin factors (powersgd). */
typedef enum tdm_compression {
    TDM_COMPRESS_NONE,
    TDM_COMPRESS_BF16,
    TDM_COMPRESS_FP16,
    TDM_COMPRESS_POWERSGD
} tdm_compression;
typedef struct tdm_compress_section {
    tdm_compression type; /* the others are powersgd's */
    int64_t rank, start_step;
    double min_rate;
    bool error_feedback, warm_start;
    int64_t seed;
} tdm_compress_section;
enum { TDM_BUCKET_CAP_MB = 25 }; /* the default of ddp.bucket_cap_mb */
typedef struct tdm_parallel_section {
    tdm_mode_kind mode;
    tdm_device_kind device;
    tdm_ints device_ids;
    int64_t threads_per_device; /* TDM_INT_NULL: the cores that the process may use divided by the devices */
    bool allow_shared_device;
    tdm_kernel_choice kernels;
    int64_t stages;
    bool sync_batchnorm; /* batch norm takes the statistics of all devices' rows */
    tdm_interval verify; /* how often replicas are compared, besides before each evaluation and checkpoint */
    struct {
        int64_t output_device; /* a member of device_ids */
        tdm_scatter scatter;
        tdm_dp_loss loss;
        tdm_dp_update update;
    } dp;
    struct {
        tdm_backend backend;
        const char *init_method;
        const char *interface; /* between hosts; NULL: the one that leads to rank 0 */
        double bucket_cap_mb;
        tdm_ddp_average average;
        bool find_unused_parameters, broadcast_buffers, check_reduction;
        double timeout;   /* seconds; NaN: none */
        double heartbeat; /* seconds; NaN: none */
        double grace;     /* seconds from a request to stop until the process that started the ranks sends SIGKILL */
        double first_bucket_mb; /* NaN: 1 if bucket_cap_mb has its default, else bucket_cap_mb */
        bool static_graph;      /* changes nothing: the graph always is */
        tdm_compress_section compress;
        bool join; /* no padding: ranks may have fewer rows in the last batch of an epoch, or none */
    } ddp;
} tdm_parallel_section;

typedef struct tdm_checkpoint_section {
    tdm_interval every;
    int64_t keep_last;
    const char *resume; /* auto | never | a path */
    tdm_origin resume_at;
    tdm_metric keep_best; /* the checkpoint of the best evaluation stays */
} tdm_checkpoint_section;

/* How the tensors of a file of weights find those of the model. */
typedef struct tdm_weights_section {
    bool strict;      /* every tensor of the file and of the model must have its match */
    tdm_texts skip;   /* patterns of names in the model: these tensors are not loaded */
    tdm_texts rename; /* a prefix of names in the file, what replaces it, the next prefix, and so on */
} tdm_weights_section;

/* How long tandem/burnin.h runs: to what comes first. With neither limit, one minute. */
typedef struct tdm_burnin_section {
    int64_t iterations;  /* batches of each device; TDM_INT_NULL: no limit */
    double duration;     /* seconds; NaN: no limit */
    int64_t max_samples; /* at most so many of the data, spread over it, are kept in memory */
    double tolerance;    /* of outputs, relative to the largest; NaN: by train.precision */
} tdm_burnin_section;

/* What the machine that a process runs on grants it. */
typedef struct tdm_host_section {
    int64_t memory_limit; /* bytes, as tdm_host.memory_limit: the smaller of the two holds; TDM_INT_NULL: none */
    tdm_origin memory_limit_at;
} tdm_host_section;

/* Does the command show a bar? auto: on a terminal. */
typedef enum tdm_progress_mode { TDM_PROGRESS_AUTO, TDM_PROGRESS_ALWAYS, TDM_PROGRESS_NEVER } tdm_progress_mode;

/* Which numbers of PyTorch's generator are repeated: those of its AVX2 kernels, or of a build without vector kernels. */
typedef enum tdm_rng_profile { TDM_RNG_TORCH_AVX2, TDM_RNG_TORCH_GENERIC } tdm_rng_profile;

typedef struct tdm_job {
    uint32_t size;   /* sizeof(tdm_job) */
    int64_t version; /* version of the format: 1 */
    const char *name;
    int64_t seed;
    bool deterministic;
    tdm_rng_profile rng_profile; /* of initial weights and synthetic data */
    const char *weights;         /* a checkpoint, .safetensors, .pt, .pth or .onnx file to start from; NULL: none */
    tdm_data_section data;
    tdm_loss_section loss;
    tdm_optimizer_section optimizer;
    tdm_schedule_section schedule;
    tdm_train_section train;
    tdm_parallel_section parallel;
    struct {
        tdm_interval every;
        int64_t batch; /* samples per batch; TDM_INT_NULL: as many as a device takes in training */
        tdm_eval_weights weights;
    } eval;
    tdm_checkpoint_section checkpoint;
    struct {
        const char *dir;   /* NULL: no run directory; nothing is written */
        bool has_its_time; /* its name holds the start time, so it is meant to be new */
    } run;
    struct {
        tdm_interval every;
        tdm_progress_mode progress;
        bool tensorboard;
    } log;
    tdm_origin weights_at; /* where the file has `weights`, for messages */
    tdm_weights_section match;
    tdm_texts freeze; /* patterns of parameters that are not trained */
    tdm_origin freeze_at;
    tdm_burnin_section burnin;
    tdm_host_section host;
} tdm_job;

/* Sets a step's kind and the defaults of that kind. TDM_E_USAGE if there is no such kind. */
TDM_API tdm_status tdm_transform_init(tdm_transform_step *step, tdm_transform_kind kind);
/* Sets every field to its default, except the run directory: there is none unless the program names one. Texts point to
 * constants. */
TDM_API tdm_status tdm_job_init(tdm_job *job);
/* Checks that all values are in their ranges, and that exactly one of each exclusive pair is given. TDM_E_CONFIG names
 * the first fault. Every function that opens or prints a job calls this first. */
TDM_API tdm_status tdm_job_check(const tdm_job *job);
/* Prints every value, one `section.key: value` per line in the order of `tandem show`, into *out; free it with
 * tdm_free. */
TDM_API tdm_status tdm_job_print(const tdm_job *job, char **out);
/* Whether the job's loss compares the outputs with a label per sample, and so counts hits; else its targets are floats.
 * False if loss.type names no loss. */
TDM_API bool tdm_job_has_labels(const tdm_job *job);
/* Whether an output is the logit of a target of 0 to 1, whose sigmoid is a probability. */
TDM_API bool tdm_job_has_logits(const tdm_job *job);
/* Turns the job into one that only predicts, in this process: mode single, one device, its part of train.batch.global
 * as batch, no run directory, nothing resumed. The data stays. NULL and a job of another size are left alone. */
TDM_API void tdm_job_predicts(tdm_job *job);
/* Returns the flags (TDM_FIELD_...) of the key in the first `length` bytes of `key`; 0 if it is not a key. */
TDM_API unsigned tdm_job_key_flags(const char *key, size_t length);

TDM_END_DECLS
#endif
