/* The plan under construction. Each pass is a function over this struct. */
#ifndef TDM_PLAN_BUILD_H
#define TDM_PLAN_BUILD_H

#include "runtime/plan/plan.h"

/* What the passes know of a plan value beside what the plan keeps. */
typedef struct tdm_build_value {
    bool needs_gradient;
    bool shared;                /* several layers read it */
    int producer;               /* plan node; -1: the batch */
    int gradient;               /* plan value; -1: none yet */
    int copy[TDM_LAYOUT_COUNT]; /* the same value in another layout; -1 */
    int64_t channels, points;   /* a row of features that lie [points][channels]; 0: as PyTorch has them */
} tdm_build_value;

typedef struct tdm_build {
    const tdm_host *host;
    const tdm_graph *graph;
    tdm_plan *plan;
    tdm_build_value *extra; /* parallel to plan->values */
    int *value_of;          /* graph value -> plan value */
    bool *needs_gradient;   /* of graph values */
    bool *fused;            /* graph nodes (relus) that run inside their producer, or inside what follows them */
    bool *takes_relu;       /* graph nodes that run the relu in front of them */
    size_t value_room, extra_room, node_room, step_room, bucket_room;
} tdm_build;

tdm_status tdm__build_value(tdm_build *build, int *out, const char *name, const tdm_shape *shape, tdm_layout layout,
                            size_t bytes);
tdm_status tdm__build_step(tdm_build *build, tdm_step_kind kind, int index);
int tdm__plan_root(const tdm_plan *plan, int value); /* the owner of a value's bytes */

tdm_status tdm__build_lower(tdm_build *build);    /* graph nodes -> plan nodes, forward */
tdm_status tdm__build_params(tdm_build *build);   /* arenas in order of readiness */
tdm_status tdm__build_backward(tdm_build *build); /* gradients and their writers */
tdm_status tdm__build_steps(tdm_build *build);    /* the order of everything, buckets included */
void tdm__build_liveness(tdm_plan *plan);         /* first and last step of every owner */
tdm_status tdm__build_places(tdm_build *build);   /* offsets in the activation arena */
tdm_status tdm__build_hash(tdm_build *build);

#endif
