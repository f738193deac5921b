/* The plan under construction. Each pass is a function over this struct: plan in, plan out. */
#ifndef TDM_PLAN_BUILD_H
#define TDM_PLAN_BUILD_H

#include "runtime/plan/plan.h"

/* What only the passes need to know of a plan value. */
typedef struct tdm_build_value {
    bool needs_gradient;
    int producer;             /* plan node; -1: the batch */
    int gradient;             /* plan value; -1: none yet */
    int readers;              /* inputs of nodes that are this value */
    int64_t reader_sum;       /* of the readers' node numbers: with one reader, its number */
    int64_t channels, points; /* of a flattened image stored [points][channels]; 0: in PyTorch's order */
    bool is_free;             /* nothing reads it, or the value whose memory it shares, after its one reader */
} tdm_build_value;

/* And of a plan node. */
typedef struct tdm_build_node {
    tdm_kernel_fit fit;  /* the kernel's answer to desc */
    int before;          /* of a reorder or transfer that was appended: the node in front of which it runs */
    bool removed;        /* by a rewrite; it leaves the list at the end of that pass */
    bool has_step_again; /* steps: what makes its y again stands in front of the backward that reads it first */
} tdm_build_node;

typedef struct tdm_build {
    const tdm_host *host;
    const tdm_graph *graph;
    tdm_plan *plan;
    tdm_build_value *of_value; /* parallel to plan->values */
    tdm_build_node *of_node;   /* parallel to plan->nodes */
    int statistics_count;      /* of the steps that take statistics */
    size_t value_room, of_value_room, node_room, of_node_room, step_room, bucket_room;
} tdm_build;

/* Appends; pointers into the arrays are not valid afterwards. */
tdm_status tdm__build_value(tdm_build *build, int *out, const char *name, const tdm_shape *shape, tdm_layout layout,
                            size_t bytes);
tdm_status tdm__build_node(tdm_build *build, int *out, const char *name, int graph_node, const tdm_op_def *op);
/* Keeps the nodes that `order` lists, in that order; removes all others. */
tdm_status tdm__build_keep_nodes(tdm_build *build, const int *order, int count);
/* The nodes behind the first `count` were appended in the order of `before`. Each moves in front of that node. */
tdm_status tdm__build_move_appended(tdm_build *build, int count);

/* Sets input k of a node to a value, or to -1. Inputs are set here only, so that the readers of values are known. */
void tdm__build_set_x(tdm_build *build, int node, int k, int value);
/* The only reader of the value; -1 if there are several or none, or if it is the output. */
int tdm__build_sole_reader(const tdm_build *build, int value);
/* Is this the batch, with one reader, on a device that ingests batches into any layout? */
bool tdm__build_is_free_batch(const tdm_build *build, int value);
/* Can the kernel run this, epilogue included? A kernel of floats in a plan of bf16 offers TDM_EPILOGUES_OF_FLOATS
 * alone. TDM_E_MEMORY if it ran out of memory while finding out. */
tdm_status tdm__build_ask(const tdm_build *build, const tdm_kernel *kernel, const tdm_kernel_desc *desc,
                          tdm_kernel_fit *fit, bool *fits);
int tdm__plan_root(const tdm_plan *plan, int value); /* the owner of a value's bytes */

/* Before the passes: which parameters are frozen or have no gradient, and checks that each pattern of the job matches a
 * parameter. */
tdm_status tdm__build_frozen(tdm_build *build);

/* The passes, in this order. */
tdm_status tdm__build_lower(tdm_build *build);     /* graph -> nodes and values, one to one, all PLAIN */
tdm_status tdm__build_layout(tdm_build *build);    /* a kernel for each node, layouts, reorders between */
tdm_status tdm__build_rewrite(tdm_build *build);   /* the table of ops/rewrites.c */
tdm_status tdm__build_stages(tdm_build *build);    /* which stage runs each node, what crosses between stages */
tdm_status tdm__build_values(tdm_build *build);    /* what shares memory, what kernels save, scratch */
tdm_status tdm__build_params(tdm_build *build);    /* arenas in order of readiness */
tdm_status tdm__build_backward(tdm_build *build);  /* gradients and their writers */
tdm_status tdm__build_recompute(tdm_build *build); /* which outputs are made again for backward */
tdm_status tdm__build_steps(tdm_build *build);     /* the order of everything, buckets included */
tdm_status tdm__build_places(tdm_build *build);    /* first and last step of every value, offsets in the arena */
tdm_status tdm__build_hash(tdm_build *build);

#endif
