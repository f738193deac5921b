/* tandem/sys/op.h - what an op is, and how it runs somewhere. For writers of ops and of modules.
 *
 * The definition is device-free: attributes, shapes, parameters. Kernels come per device and variant; the plan takes
 * the first that fits, "ref" last. A kernel always WRITES its results; where a gradient has several writers, or several
 * micro-batches are accumulated, the executor adds, so no kernel knows about accumulation. */
#ifndef TANDEM_SYS_OP_H
#define TANDEM_SYS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>
#include <tandem/job.h>
#include <tandem/sys/field.h>

TDM_BEGIN_DECLS

enum { TDM_MAX_DIMS = 6, TDM_MAX_INPUTS = 8, TDM_MAX_PARAMS = 16, TDM_MAX_BUFFERS = 3 };

/* Row-major. In graphs without the batch dimension; in plans and kernels dim[0] is the number of rows. */
typedef struct tdm_shape {
    int ndim;
    int64_t dim[TDM_MAX_DIMS];
} tdm_shape;

/* How a 4-dimensional value lies in memory; C16 and C8 need channels divisible by the block. Values of other ranks are
 * always PLAIN, and so are checkpoints. */
typedef enum tdm_layout {
    TDM_LAYOUT_PLAIN, /* N C H W */
    TDM_LAYOUT_NHWC,
    TDM_LAYOUT_C8,  /* N C/8 H W 8 */
    TDM_LAYOUT_C16, /* N C/16 H W 16 */
    TDM_LAYOUT_COUNT
} tdm_layout;

/* ---- definition ---- */

typedef enum tdm_init_kind {
    TDM_INIT_ZEROS,
    TDM_INIT_ONES,
    TDM_INIT_UNIFORM_FAN_IN, /* uniform in +-1/sqrt(fan_in): torch.nn.Linear and Conv2d, weight and bias */
    TDM_INIT_NORMAL          /* mean 0, standard deviation `std` */
} tdm_init_kind;

typedef struct tdm_param_def {
    const char *suffix; /* "weight", "bias", "running_mean" */
    tdm_shape shape;
    tdm_init_kind init;
    int64_t fan_in;
    /* Set anew when all parameters have their first values, in the same order: networks of torchvision do so with
     * torch.nn.init. */
    bool is_set_again;
    tdm_init_kind again;
    double std;
    bool is_counter;   /* buffers only: an int64 scalar (num_batches_tracked) */
    bool has_zero_row; /* row `zero_row` of the first dimension is 0 at first (padding_idx of torch.nn.Embedding) */
    int64_t zero_row;
    bool is_bias; /* added to each channel of y: its gradient is the sum of dy over rows and points */
} tdm_param_def;

/* In: attributes and input shapes (no batch dimension). Out: the output shape, parameters in PyTorch's construction
 * order, buffers in PyTorch's registration order. */
typedef struct tdm_infer {
    const void *attrs;
    int input_count;
    tdm_shape input[TDM_MAX_INPUTS];
    const char *layer; /* for messages: "conv2d 'features.0'" */
    tdm_origin origin; /* of the layer in the user's file */
    tdm_shape output;
    int param_count, buffer_count;
    tdm_param_def param[TDM_MAX_PARAMS], buffer[TDM_MAX_BUFFERS];
    double flops;                                 /* of one forward pass over one row, multiply and add counted apart */
    int64_t least_rows, least_rows_in_evaluation; /* the fewest of a pass, in training and not; 0: any number */
    /* Doubles that a replica tells the others about its rows, before forward and before backward, if statistics are
     * those of all replicas (parallel.sync_batchnorm); 0: the op has none. */
    int64_t statistics;
    int64_t index_below; /* x holds whole numbers from 0 to below this, which must not be rounded; 0: it does not */
    bool picks;          /* y is the numbers of x from picks_first on, unchanged */
    int64_t picks_first;
} tdm_infer;

enum {
    TDM_OP_READS_X = 1,          /* backward reads the inputs */
    TDM_OP_READS_Y = 2,          /* backward reads the output */
    TDM_OP_IN_PLACE = 4,         /* y may lie on x, and dx on dy */
    TDM_OP_ALIAS = 8,            /* the same bytes under another shape: no kernel runs */
    TDM_OP_WEIGHS_FEATURES = 16, /* y = x param[0]^T: x may have its features in any order if param[0] has the same */
    TDM_OP_ROUNDS_PARAMS = 32    /* the parameters are factors of products: in bf16 their rounded copies count */
};

struct tdm_onnx;
struct tdm_onnx_layer;
struct tdm_onnx_reader;
struct tdm_onnx_node;
struct tdm_onnx_found;
typedef struct tdm_op_def {
    const char *name, *doc, *doc_zh;
    const char *also_called; /* names that others give it, with spaces between, for hints; NULL: none */
    int min_inputs, max_inputs;
    const tdm_field *attrs; /* ends with a NULL key; NULL if none */
    size_t attrs_bytes;
    unsigned flags;
    tdm_status (*infer)(tdm_infer *infer); /* fails with TDM_E_CONFIG at infer->origin */
    /* Writes a layer as nodes of an ONNX file (tandem/sys/onnx.h); TDM_E_UNSUPPORTED, with the layer's name, if ONNX
     * does not have it with these attributes. NULL: it never has. */
    tdm_status (*onnx)(struct tdm_onnx *to, const struct tdm_onnx_layer *layer);
    /* Is output `output` of the node such a layer? Fills in *out, and sets its attributes. NULL: none ever is. Asked of
     * tandem's own ops alone. */
    bool (*from_onnx)(struct tdm_onnx_reader *from, const struct tdm_onnx_node *node, int output,
                      struct tdm_onnx_found *out);
} tdm_op_def;

/* ---- kernels ---- */

typedef struct tdm_device tdm_device; /* tandem/sys/device.h */

/* What a kernel does beside its op in the same call: a set of these. They are applied in the order of the lines here;
 * their numbers say nothing but are in a plan's hash, so they stay. The plan's rewrites ask for them. Bits are those of
 * the kernels one after another, with two exceptions: see runtime/docs/decisions/009-rewrites-are-rows.md. */
typedef enum tdm_epilogue {
    /* y += the last parameter, one number a channel. In plans for predictions only. */
    TDM_EPILOGUE_BIAS = 8,
    /* y += the last input; backward: its dx is the gradient of the sum, and may share dy's memory. */
    TDM_EPILOGUE_ADD = 4,
    /* y = max(0, y), NaN stays. backward: dy counts unless y <= 0. y is kept for that; dy may not be changed unless
     * scratch was booked to hold the masked copy. */
    TDM_EPILOGUE_RELU = 1,
    /* backward also writes channel_sums. */
    TDM_EPILOGUE_SUM_DX = 2,
    /* A kernel only offers it, and not in training; no plan requests it. The kernel adds its own bias to the finished
     * sum as y holds it, so another kernel may add it later with the same bits. */
    TDM_EPILOGUE_GIVES_BIAS = 16
} tdm_epilogue;
/* Those that a kernel for floats may apply in a plan of bf16, because no number has to be rounded in front of them. */
enum { TDM_EPILOGUES_OF_FLOATS = TDM_EPILOGUE_RELU | TDM_EPILOGUE_SUM_DX };

/* What a kernel is asked to run: decided once, at plan time, constant afterwards. */
typedef struct tdm_kernel_desc {
    const char *op;
    const void *attrs;
    int input_count, param_count, buffer_count; /* those of the epilogue included */
    tdm_shape x[TDM_MAX_INPUTS], y;             /* dim[0]: the most rows there will ever be */
    tdm_layout x_layout[TDM_MAX_INPUTS], y_layout;
    tdm_shape param[TDM_MAX_PARAMS];
    unsigned epilogue; /* of tdm_epilogue */
    bool may_fill; /* the channels of x[0] may be filled up with zeros: it is the batch, and no other layer reads it */
    /* Channels of x[0] in memory: 0: as many as it has; more: zeros behind them, because the kernel asked for it. */
    int64_t x_channels;
    /* 0: param[0] lies as PyTorch has it, [out][channels][taps]. Else it, its gradient and its copy in bf16 lie as
     * [out][taps][weight_channels], with zeros behind the channels, because the kernel asked for it. */
    int64_t weight_channels;
    bool needs_dx[TDM_MAX_INPUTS]; /* false where nothing upstream has parameters */
    bool training;                 /* false: forward alone will run */
    int replicas;                  /* above 1: statistics are those of so many replicas */
    int threads;                   /* CPU threads the kernel may use */
    bool fast;                     /* algorithms with larger rounding errors are welcome (Winograd) */
    /* What products may round their factors to. bf16: x, y and their gradients are kept in 16 bits too; parameters,
     * their gradients and buffers are floats always. A kernel without takes_bf16 is always asked for floats. */
    tdm_precision precision;
} tdm_kernel_desc;

/* What the kernel answers. On entry desc->x_layout holds the layouts that the producers offer. */
typedef struct tdm_kernel_fit {
    tdm_layout x_layout[TDM_MAX_INPUTS], y_layout; /* read and written; the plan inserts reorders */
    unsigned epilogue;                             /* all that it is able to do beside its op */
    int64_t x_channels, weight_channels; /* needed; 0: as they are. x_channels only where desc->may_fill; both only on
                                            devices that ingest batches */
    bool no_memory;                      /* `fits` ran out of memory: the plan fails, no other kernel is tried */
    size_t saved_bytes;                  /* kept from forward to backward; not given in plans for predictions */
    size_t scratch_bytes;                /* used within one call */
    size_t call_bytes; /* what a library of others takes for itself during one call, all threads together */
    size_t kept_bytes; /* at most what it keeps for itself of what `open` prepares; only in plans for predictions */
    char why[96];      /* why it does not fit: "groups > 1", "no AVX2" */
} tdm_kernel_fit;

static inline bool tdm_has_epilogue(const tdm_kernel_desc *desc, unsigned what) {
    return (desc->epilogue & what) == what;
}

enum { TDM_OPTIM_BYTES = 64 }; /* of an optimizer's scalars */

/* What changes from step to step. It lies in the device's memory: the same queued work can be run again with other
 * values. */
typedef struct tdm_step_values {
    uint64_t step;   /* of the counter-based generator */
    float loss_seed; /* 1 / denominator of the mean over the whole step; 0 if that is 0 */
    float clip_norm; /* largest norm of the gradients; NaN: any */
    /* How far the average of the parameters moves towards them after this step, 0 to 1; 0: it stays. */
    float average_weight;
    float clip_value; /* largest absolute value of a gradient; NaN: any */
    /* The optimizer's own: its `prepare` writes them, its kernels read them, nobody else looks (tandem/sys/optim.h). */
    uint64_t optim[TDM_OPTIM_BYTES / sizeof(uint64_t)];
} tdm_step_values;

typedef struct tdm_kernel_args {
    const tdm_kernel_desc *desc;
    tdm_device *device; /* whose memory the pointers below are in, and on whose queue the work goes */
    void *state;        /* from `open`, for exactly `rows` rows */
    int64_t rows;       /* 1 .. desc->y.dim[0] */
    /* These four: floats. Where desc->precision is bf16 they point to 16-bit numbers instead. */
    const float *x[TDM_MAX_INPUTS];
    float *y;
    const float *dy;
    float *dx[TDM_MAX_INPUTS]; /* NULL where not needed */
    const float *param[TDM_MAX_PARAMS];
    const void *param_bf16[TDM_MAX_PARAMS]; /* the parameters in bf16; NULL where desc->precision is another */
    /* NULL where another kernel writes it (TDM_EPILOGUE_SUM_DX), and all of them where every parameter is frozen: then
     * the kernel does no work for them. Of a node with some frozen parameters all are written. */
    float *dparam[TDM_MAX_PARAMS];
    float *channel_sums;            /* of dx[0], over rows and points, before it is rounded to bf16 */
    float *buffer[TDM_MAX_BUFFERS]; /* float buffers */
    int64_t *counter;               /* the is_counter buffer, or NULL */
    void *saved;                    /* NULL in plans for predictions */
    void *packed;                   /* param[0] as `pack` wrote it; NULL: it has not been packed */
    void *scratch;
    /* false: the rules of evaluation. Backward, too, meets false, and then nothing was saved: in training a node with
     * buffers has these rules if all its parameters are frozen. */
    bool training;
    uint64_t seed;   /* of the counter-based generator */
    uint32_t stream; /* the node's own stream in it */
    /* Where desc->replicas is above 1: a block of tdm_infer.statistics doubles for each replica, in their order. */
    double *statistics;
    int replica;      /* whose block is this replica's own */
    uint64_t present; /* the replicas that have rows in this pass, a bit each; blocks of others are not written */
    const tdm_step_values *values;
    const int64_t *position; /* of each row in the order of samples of this step: same in every mode */
} tdm_kernel_args;

/* What a kernel's library has chosen for one of its passes, and why the kernel is slower than it should be; for people.
 */
typedef struct tdm_algorithm {
    const char *pass; /* "forward", "dw", "dx" */
    char name[96];    /* the library, and its own name for it: "cuDNN implicit_precomp_gemm" */
    const char *math; /* what factors are rounded to: "f32", "tf32", "bf16" */
    size_t workspace_bytes;
    const char *fused; /* what is fused into the call: "bias", "relu", "bias and relu", ""; NULL: there is nothing
                          that could */
} tdm_algorithm;
enum { TDM_MAX_ALGORITHMS = 3 };
typedef struct tdm_algorithms {
    int count;
    tdm_algorithm of[TDM_MAX_ALGORITHMS];
    char slow[256]; /* a warning; "": none */
} tdm_algorithms;

typedef struct tdm_kernel {
    const char *op, *variant; /* "conv2d", "ref" */
    /* NULL: always fits, all layouts PLAIN, nothing saved, no scratch, no epilogue. It is asked only
     * for epilogues that it offered, and looks at desc->epilogue to say how much memory they need. */
    bool (*fits)(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
    /* Optional: prepare for `rows` rows; called once per replica, node and number of rows, perhaps from another thread
     * than the one that runs. */
    tdm_status (*open)(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training, void **state);
    void (*close)(void *state);
    tdm_status (*forward)(const tdm_kernel_args *args);
    tdm_status (*backward)(const tdm_kernel_args *args);
    /* Writes this replica's block of args->statistics: called before forward, and, with args->dy, before backward. Then
     * the replicas exchange their blocks. In front of backward it may also write the gradient of what TDM_EPILOGUE_ADD
     * adds; where that lies on dy, backward then reads it as dy. NULL: the kernel is not asked for more than one
     * replica. */
    tdm_status (*statistics)(const tdm_kernel_args *args);
    /* Optional: writes the y that forward wrote, to the bit, from x, saved, parameters and buffers, into other memory.
     * It writes nothing else. The plan may then give the memory of y away between forward and backward. Only asked if
     * backward reads all of x, so without TDM_EPILOGUE_ADD. */
    tdm_status (*recompute)(const tdm_kernel_args *args);
    /* Optional: what `open` has chosen. */
    void (*algorithms)(const void *state, tdm_algorithms *out);
    /* In bf16 it reads and writes 16-bit numbers. For other kernels the executor widens what they read to floats and
     * rounds what they write: the numbers are the same, at the cost of more passes over memory. */
    bool takes_bf16;
    /* Optional, both or neither, for models whose parameters do not change any more: forward of this state brings
     * param[0] into another layout, which takes so many bytes; 0: it reads it as it lies. `pack` does that once, into
     * args->packed, which begins on a line of 64 bytes; forward then reads args->packed and not param[0], with the same
     * bits. It has the args of forward, and reads none of x. */
    size_t (*packed_bytes)(const void *state);
    tdm_status (*pack)(const tdm_kernel_args *args);
    bool keeps_param; /* forward reads param[0], too: what `pack` writes only says something of it */
} tdm_kernel;

/* ---- losses ---- */

typedef enum tdm_target_kind {
    TDM_TARGET_CLASS, /* int64_t label per row */
    TDM_TARGET_VALUES /* floats of the output's shape */
} tdm_target_kind;

typedef struct tdm_loss_args {
    const tdm_loss_section *section; /* of the job */
    /* The numbers of section->weight or pos_weight, whichever the loss has, in the memory of a device that has its own;
     * NULL on the CPU, and if there are none. */
    const double *weight;
    tdm_device *device;      /* as in tdm_kernel_args */
    tdm_precision precision; /* bf16: y and dy point to 16-bit numbers; the loss is taken in float all the same */
    int64_t first_row;       /* which row of the batch the first one is, for messages */
    int64_t rows, width;     /* y is [rows, width] */
    const float *y;
    const void *target; /* int64_t[rows], labels as in tandem/sys/label.h; or float[rows * width] */
    const tdm_step_values *values;
    float *dy;        /* [rows, width]: d(mean loss)/dy, or NULL */
    double *loss_sum; /* the sum of the rows' losses, in row order in double, not divided, is added to it; the CPU's
                       * kernels leave that to their caller */
    int64_t *correct; /* rows whose largest output is the label are added, of a mixed label the heavier class; untouched
                       * for TDM_TARGET_VALUES */
} tdm_loss_args;

enum { TDM_MAX_LOSS_KEYS = 8 };

typedef struct tdm_loss_def {
    const char *name, *doc, *doc_zh;
    const char *also_called; /* as in tdm_op_def */
    tdm_target_kind target;
    bool is_logit;                           /* TDM_TARGET_VALUES: y is the logit of a target of 0 to 1 */
    bool takes_mixed;                        /* TDM_TARGET_CLASS: its kernels know mixed labels (tandem/sys/label.h) */
    const char *keys[TDM_MAX_LOSS_KEYS + 1]; /* the keys of section `loss` that are its own; NULL behind the last */
    /* Checks the output's shape (no batch dimension) and the settings that depend on it; for TDM_TARGET_CLASS sets
     * *classes. NULL: any shape will do. */
    tdm_status (*infer)(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes);
    /* What the mean divides by for these targets: counted rows (ignore_index), the sum of their classes' weights, or
     * rows * width. target NULL: all rows count, and weigh 1. */
    double (*denominator)(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target);
    /* The CPU's kernel, forward and backward in one pass. Writes each row's loss, not divided, to row_loss[rows]; a row
     * that does not count costs 0. Rows are computed alone, so that threads may share them. */
    tdm_status (*run)(const tdm_loss_args *args, double *row_loss);
} tdm_loss_def;

/* A loss on a device other than the CPU. */
typedef struct tdm_loss_kernel {
    const char *loss, *variant; /* "cross_entropy", "cuda" */
    tdm_status (*run)(const tdm_loss_args *args);
} tdm_loss_kernel;

/* ---- passes over flat arenas on the CPU: sums, norms ---- */

/* Instruction sets that such passes and optimizers are compiled for, with the same results. ref: any processor. */
typedef enum tdm_isa { TDM_ISA_REF, TDM_ISA_AVX2, TDM_ISA_AVX512, TDM_ISA_COUNT } tdm_isa;

typedef struct tdm_flat_kernels {
    const char *variant; /* "ref", "avx2", "avx512" */
    /* out = the sum of the sources as the canonical tree, (s0 + s1) + (s2 + s3) of four; out may
     * be any of the sources. */
    void (*sum)(float *out, const float *const *source, int source_count, size_t count);
    void (*scale)(float *x, float factor, size_t count);
    void (*clamp)(float *x, float most, size_t count);   /* torch.clamp(x, -most, most): a NaN stays one */
    double (*sum_squares)(const float *x, size_t count); /* lanes of double, fixed order */
    /* torch.lerp(x, end, weight) into x: fmaf from the nearer end. */
    void (*lerp)(float *x, const float *end, float weight, size_t count);
    /* bf16, as tdm_arena_ops says */
    void (*to_bf16)(uint16_t *out, const float *x, size_t count);
    void (*from_bf16)(float *out, const uint16_t *x, size_t count);
    void (*add_bf16)(uint16_t *out, const uint16_t *what, size_t count);
    /* IEEE half precision, in the same way. */
    void (*to_f16)(uint16_t *out, const float *x, size_t count);
    void (*from_f16)(float *out, const uint16_t *x, size_t count);
} tdm_flat_kernels;

/* ---- how kernels and ops report: modules need no symbols of ours ---- */

struct tdm_comm;
struct tdm_comm_call;
typedef struct tdm_host_calls {
    tdm_status (*fail)(tdm_status status, const char *file, int line, const tdm_origin *origin, const char *format, ...)
        TDM_PRINTF(5, 6);
    tdm_status (*frame)(tdm_status status, const char *file, int line);
    /* The value of a variable that `tandem help env` lists, NULL if unset: modules read no others. */
    const char *(*environment)(const char *name);
    /* A checked call of a communicator of this build, as tandem/comm.h makes them. */
    tdm_status (*comm_call)(struct tdm_comm *comm, const struct tdm_comm_call *call);
    /* Calls work(data, begin, end) over [0, count), cut into one range for each of the device's threads, of which the
     * caller is one, and returns when all are done. TDM_E_MEMORY if they cannot be started. */
    tdm_status (*share)(tdm_device *device, int64_t count, void (*work)(void *data, int64_t begin, int64_t end),
                        void *data);
    /* Memory from the embedding program: `bytes` zeroed bytes that begin on a line of 64, NULL if there are none; and
     * their end, with the same host. Modules and ops take memory from nowhere else. Any thread. */
    void *(*allocate)(const struct tdm_host *host, size_t bytes);
    void (*release)(const struct tdm_host *host, void *pointer); /* NULL is fine */
} tdm_host_calls;

TDM_END_DECLS
#endif
