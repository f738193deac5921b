/* The plan: what one replica does in one pass, as data: forward, loss and backward of one micro-batch. Nothing here
 * touches a device or another process.
 *
 *   graph --lower--> nodes --layout--> kernels, reorders --rewrite--> fewer kernels --stages--> what devices hand on
 *         --values--> what shares memory --params, backward--> gradients --recompute--> what is made twice
 *         --steps--> the order of everything --places--> offsets in the arenas
 *
 * Each pass changes the plan in place. The plan can be printed after each (tdm_plan_options.after).
 *
 * Four flat arenas per replica: parameters, gradients, optimizer state (floats), activations (bytes); parameters,
 * gradients and state share their offsets. Frozen parameters lie behind all others and have neither gradients nor
 * state. Parameters lie in the order in which gradients become ready (last layer first), so a gradient bucket is a
 * range.
 *
 * A replica of several stages (parallel.stages) has a device for each. The plan stays one: a stage is a range of its
 * nodes, of its steps forward and backward, and of each arena, which lies on the stage's device. Activations are the
 * exception: each stage has an arena of its own for them. */
#ifndef TDM_PLAN_PLAN_H
#define TDM_PLAN_PLAN_H

#include <tandem/job.h>
#include <tandem/sys/op.h>

#include "runtime/base/hash.h"
#include "runtime/base/round.h"
#include "runtime/base/text/json_write.h"
#include "runtime/graph/graph.h"

typedef enum tdm_place_kind {
    TDM_PLACE_EXTERNAL, /* the batch, set before each step */
    TDM_PLACE_ARENA     /* activation arena at `offset` */
} tdm_place_kind;

/* A tensor of the step: an activation, or the gradient of one. */
typedef struct tdm_plan_value {
    char name[40];   /* "v3", "dv3", "saved 4" */
    tdm_shape shape; /* dim[0]: most rows */
    tdm_layout layout;
    int64_t channels; /* in memory: those of the shape, then zeros; 0: as the shape has them */
    tdm_place_kind kind;
    int stage;        /* in whose arena it lies */
    bool is_received; /* another stage writes it */
    bool is_shared;   /* in the part of that arena which micro-batches use one after another */
    int alias_of;     /* lies in the bytes of this value, which owns them; -1: it owns its bytes */
    int again;        /* the value with the same numbers that backward reads instead; -1: backward reads this one */
    int first, last;  /* steps that touch it; owners include their aliases */
    size_t bytes, offset;
} tdm_plan_value;

/* How a parameter is stored in the arenas: PyTorch's [outer][a][b] as [outer][b][filled], with zeros after the a.
 * filled 0: as in PyTorch. */
typedef struct tdm_param_form {
    int64_t outer, a, b, filled;
} tdm_param_form;

typedef struct tdm_plan_node {
    char name[48];            /* of the layer; of an inserted reorder: its op's */
    int graph_node;           /* -1 for an inserted reorder or transfer, and for one of several inputs */
    int stage;                /* that runs it */
    bool transfers;           /* no op: y, in the next stage, is a copy of x; backward: dx is a copy of dy */
    const tdm_op_def *op;     /* of the layer, or of the first of those that run together */
    const tdm_kernel *kernel; /* NULL for an alias or a transfer */
    tdm_kernel_desc desc;
    char also[40];      /* ", relu": what the epilogue does, for people */
    char declined[160]; /* which variants did not fit, and why */
    unsigned reads;     /* in backward: TDM_OP_READS_X, TDM_OP_READS_Y; of all ops that run together */
    bool needs_backward;
    bool evaluates;    /* runs by evaluation rules in training too: it has buffers, and all its parameters are frozen */
    unsigned unwanted; /* parameters, one bit each, whose gradients its kernel writes and nobody reads */
    int x[TDM_MAX_INPUTS], y;                           /* plan values */
    int dx[TDM_MAX_INPUTS], dy;                         /* plan values; -1: none */
    bool dx_adds[TDM_MAX_INPUTS];                       /* a later writer: the executor adds to what is there */
    int dx_temp[TDM_MAX_INPUTS];                        /* where the kernel writes first when dx_adds; -1 */
    int graph_param[TDM_MAX_PARAMS];                    /* indices in the graph; -1: none */
    int param[TDM_MAX_PARAMS], buffer[TDM_MAX_BUFFERS]; /* indices in the plan; -1: none */
    int dparam[TDM_MAX_PARAMS]; /* parameters whose gradients this node writes; -1: none, or another node does */
    int summed_bias;            /* index in the graph: another node's bias whose gradient is summed here; -1: none */
    tdm_param_form weight;      /* how param 0 lies */
    int saved, scratch_forward, scratch_backward; /* plan values of raw bytes; -1: none */
    size_t statistics_bytes;                      /* of a replica's block; 0: replicas exchange nothing here */
    /* Where the blocks of all replicas begin, before forward and before backward. */
    size_t statistics_forward, statistics_backward;
    size_t call_bytes, kept_bytes; /* as tdm_kernel_fit's */
    size_t own_scratch;            /* bytes of scratch that the kernel itself uses; behind them: widened.h */
} tdm_plan_node;

typedef enum tdm_step_kind {
    TDM_STEP_STATISTICS, /* in front of the node's forward or backward; then the replicas exchange them */
    TDM_STEP_FORWARD,
    TDM_STEP_LOSS,
    TDM_STEP_RECOMPUTE, /* the node's y is made again, for backward */
    TDM_STEP_BACKWARD,
    TDM_STEP_READY
} tdm_step_kind;
typedef struct tdm_plan_step {
    tdm_step_kind kind;
    int index; /* node, or bucket for READY */
} tdm_plan_step;

typedef struct tdm_plan_param {
    const char *name;
    tdm_param_def def;
    int64_t count;
    tdm_param_form form;
    int64_t stored;  /* floats in an arena; count, or more */
    size_t offset;   /* floats, in the arenas of parameters, gradients and state; 16-float aligned */
    int graph_param; /* index in the graph: PyTorch's order */
    int node;        /* plan node that owns it */
    int group;       /* of the optimizer's settings: 0: the common ones; k: item k - 1 of options.groups */
} tdm_plan_param;

typedef struct tdm_plan_buffer {
    const char *name;
    tdm_param_def def;
    int64_t count;
    size_t offset; /* bytes, in the buffer arena */
} tdm_plan_buffer;

static inline size_t tdm__plan_buffer_bytes(const tdm_plan_buffer *buffer) {
    return (size_t)buffer->count * (buffer->def.is_counter ? sizeof(int64_t) : sizeof(float));
}

/* Parameters in a row whose optimizer settings are the same. */
typedef struct tdm_plan_run {
    size_t offset, count; /* floats, in the arenas, padding included */
    int group;
} tdm_plan_run;

typedef struct tdm_plan_bucket {
    size_t offset, count; /* floats, in the gradient arena, padding included */
    int first_param, param_count;
    int ready_after; /* step index of the last writer */
} tdm_plan_bucket;

/* What a stage's device does and holds; with one stage, everything. */
typedef struct tdm_plan_stage {
    int forward, send, forward_end;        /* steps: its nodes, then its transfers */
    int backward, give_back, backward_end; /* the same: transfers of gradients are those to it */
    int in_flight;                         /* micro-batches between their forward and backward */
    size_t activation_bytes;               /* of each micro-batch in flight */
    size_t shared_bytes;                   /* behind them: of what micro-batches use one after another */
    size_t trained_at, trained_floats, frozen_at, frozen_floats; /* parameters: two ranges of the arena */
    int trained_count;                                           /* of those parameters */
    size_t buffer_at, buffer_bytes;
    int unwanted; /* plan value: where kernels write gradients that nobody reads; -1 */
    int temp;     /* plan value: where a node writes parameter gradients before they are added; -1 */
    size_t sent_bytes, returned_bytes; /* of the most rows: to the next stage, and what comes back as gradients */
    double flops;                      /* of a step, of one row: forward and backward */
} tdm_plan_stage;

static inline size_t tdm__stage_activation_bytes(const tdm_plan_stage *stage) {
    return stage->activation_bytes * (size_t)stage->in_flight + stage->shared_bytes;
}

typedef struct tdm_plan_options {
    int64_t rows; /* most rows of one pass through a replica */
    int threads;
    bool training;           /* false: forward only */
    bool fast;               /* kernels may trade accuracy for speed */
    bool ingests;            /* the device has memory of its own, and brings batches there in any layout */
    tdm_precision precision; /* what products may round their factors to */
    bool widens;             /* in bf16 kernels may be asked for floats: the device has tdm_arena_ops.from_bf16 */
    int replicas;            /* above 1: statistics are of the batches of so many replicas (parallel.sync_batchnorm) */
    int stages;              /* devices that the replica is split over; 0 is 1 */
    int64_t micro_batches;   /* of a step, at most; 0 is 1 */
    bool accumulates;        /* several micro-batches a step: parameter gradients may need adding */
    bool repeats;            /* layers run again and again (exec/repeats.h): none writes over its input */
    size_t recompute; /* outputs of so many bytes or more are made again for backward where a kernel can; SIZE_MAX: none
                       */
    double first_bucket_mb, bucket_cap_mb;
    bool allows_unused; /* layers that the output does not depend on are no fault: their parameters are not trained */
    const tdm_kernel *const *kernels; /* NULL-terminated, best first; "ref" last */
    int loss;                         /* index in tdm_builtin_losses */
    const tdm_texts *freeze;          /* patterns of parameters that are not trained; NULL: none */
    const tdm_param_groups *groups;   /* NULL: none */
    const char *after;                /* the pass to stop after, to print the plan; NULL: all passes run */
} tdm_plan_options;

typedef struct tdm_plan {
    tdm_zone zone;
    const tdm_graph *graph;
    tdm_plan_options options;
    tdm_plan_value *values;
    tdm_plan_node *nodes;
    tdm_plan_step *steps;
    tdm_plan_param *params; /* in arena order: those that are trained, then the frozen ones */
    tdm_plan_buffer *buffers;
    tdm_plan_bucket *buckets;
    int value_count, node_count, step_count, param_count, buffer_count, bucket_count;
    int *rewrites;       /* how often each row of tdm_builtin_rewrites was applied */
    bool has_offsets;    /* the pass "places" has run */
    bool has_forms;      /* some parameter is not stored as in PyTorch */
    int *param_of_graph; /* graph param index -> plan param index */
    bool *frozen;        /* by graph param index; unused ones, too */
    bool *used;          /* by graph node: the output depends on it */
    int trained_count;   /* of the parameters */
    tdm_plan_run *runs;  /* of those, by the optimizer's settings */
    int run_count;
    tdm_plan_stage *stages;
    int stage_count;
    int forward_steps;           /* steps before TDM_STEP_LOSS */
    int input, output, d_output; /* plan values; d_output -1 without training */
    int64_t output_width;        /* numbers per row of the output */
    size_t input_row_bytes;      /* of a row of the batch, as kernels read it */
    size_t element_bytes;        /* of a number of the batch, an activation or its gradient: 2 in bf16, else 4 */
    size_t param_floats, buffer_bytes;
    size_t activation_bytes; /* of all stages and their micro-batches in flight */
    size_t trained_floats;   /* the first of param_floats; gradients and optimizer state have so many */
    size_t statistics_bytes; /* memory for blocks: of two steps that follow each other; 0: replicas exchange none */
    tdm_hash128 hash;        /* of everything above that another rank must agree on */
} tdm_plan;

/* Floats that so many take in an arena, where parameters begin on a cache line. */
static inline size_t tdm__plan_floats(size_t count) {
    return tdm__round_up(count, 16);
}

/* The parameter, by its index in the plan, whose gradient the node sums for another; -1: none. */
static inline int tdm__plan_dsum(const tdm_plan *plan, const tdm_plan_node *node) {
    return node->summed_bias >= 0 ? plan->param_of_graph[node->summed_bias] : -1;
}

/* In 16 bits on a device that takes floats: batches, outputs and losses, which are floats, are converted on their way,
 * and parameters after each update. */
static inline bool tdm__plan_converts(const tdm_plan *plan) {
    return plan->options.widens && plan->options.precision == TDM_BF16;
}

/* Of a row of the batch as it comes, which kernels may read in fewer bytes. */
static inline size_t tdm__plan_batch_row_bytes(const tdm_plan *plan) {
    return tdm__plan_converts(plan) ? plan->input_row_bytes / plan->element_bytes * sizeof(float)
                                    : plan->input_row_bytes;
}

int64_t tdm__plan_trained_numbers(const tdm_plan *plan); /* numbers that are trained, padding not counted */

/* Bytes of so many rows of a value. */
static inline size_t tdm__plan_value_bytes(const tdm_plan *plan, int value, int64_t rows) {
    return plan->values[value].bytes / (size_t)plan->options.rows * (size_t)rows;
}

/* Where backward finds the numbers of a value: where forward left them, or where they are made again. */
static inline int tdm__plan_in_backward(const tdm_plan *plan, int value) {
    return value >= 0 && plan->values[value].again >= 0 ? plan->values[value].again : value;
}

/* Does an epilogue add this input? Backward does not read it, and its gradient may share the memory of dy. */
static inline bool tdm__plan_is_added(const tdm_plan_node *node, int input) {
    return tdm_has_epilogue(&node->desc, TDM_EPILOGUE_ADD) && input == node->desc.input_count - 1;
}

/* Does the node's backward read this input? */
static inline bool tdm__plan_backward_reads(const tdm_plan_node *node, int input) {
    return node->needs_backward && (node->reads & TDM_OP_READS_X) != 0 && !tdm__plan_is_added(node, input);
}

int64_t tdm__plan_crossing(const tdm_plan *plan, int64_t rows); /* bytes between stages for so many rows, trained */
const char *tdm__plan_pass(int index);                          /* the name of a pass; NULL behind the last */
tdm_status tdm__plan_build(tdm_plan **out, const tdm_host *host, const tdm_graph *graph,
                           const tdm_plan_options *options);
void tdm__plan_free(tdm_plan *plan);
/* Prints the steps as a table of fixed columns, so that plans can be compared; after an earlier pass, the nodes. */
void tdm__plan_print(const tdm_plan *plan, tdm_text *out);
/* As an entry of a larger JSON text. */
void tdm__plan_print_json(const tdm_plan *plan, tdm_json_out *to, const char *key);
/* Their stages, and how busy they are; nothing if there is one. */
void tdm__stages_print(const tdm_plan *plan, tdm_text *out);
void tdm__stages_print_json(const tdm_plan *plan, tdm_json_out *to);

#endif
