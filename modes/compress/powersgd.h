/* PowerSGD (Vogels, Karimireddy, Jaggi 2019), as PyTorch's powerSGD_hook: of a gradient that is a matrix, ranks
 * exchange two thin factors. In host memory, for the reducers that sum there. single and dp compute the same for all
 * replicas in one process: nothing is sent there, and the bits are ddp's. */
#ifndef TDM_MODES_POWERSGD_H
#define TDM_MODES_POWERSGD_H

#include "runtime/exec/mode.h"

typedef struct tdm_powersgd tdm_powersgd;

/* Floats of a stage's parameters that a rank contributes to the sums of a step. */
size_t tdm__powersgd_floats(const tdm_plan *plan, const tdm_compress_section *settings, int stage);
/* Bytes that a replica keeps for them. */
size_t tdm__powersgd_bytes(const tdm_plan *plan, const tdm_compress_section *settings, int stage);

/* Opens PowerSGD for this rank. Collective. After a failure, close *out unless it is NULL. */
tdm_status tdm__powersgd_open(tdm_powersgd **out, const tdm_mode_params *params);
void tdm__powersgd_close(tdm_powersgd *power);                     /* NULL is fine */
bool tdm__powersgd_is_on(const tdm_powersgd *power, int64_t step); /* is this step approximated? NULL: no */
/* Replaces the gradients of a bucket by their sum over ranks, approximately. Buckets one after another. */
tdm_status tdm__powersgd_reduce(tdm_powersgd *power, float *grad, int bucket, int64_t step);

/* ---- for all replicas of this process: powersgd_here.c ---- */

/* *out is NULL if the job does not want it. `take_turns`: replicas share one memory for gradients. */
tdm_status tdm__powersgd_open_here(tdm_powersgd **out, const tdm_mode_params *params, bool take_turns);
/* Bytes that it takes of one replica's device: 0 on a GPU, and 0 if the job has one replica. */
size_t tdm__powersgd_here_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int stage);
/* A step that is approximated: begin; take of every replica; sum_p; approximate of every one; sum_q; give of every one.
 * take, approximate and give may run at the same time for different replicas. */
void tdm__powersgd_begin(tdm_powersgd *power, int64_t step);
/* Takes the gradients that `replica` has now; NULL: replica `index` has no rows. */
tdm_status tdm__powersgd_take(tdm_powersgd *power, int index, tdm_replica *replica);
void tdm__powersgd_sum_p(tdm_powersgd *power);
void tdm__powersgd_approximate(tdm_powersgd *power, int index);
void tdm__powersgd_sum_q(tdm_powersgd *power);
/* Writes the sum to the gradients of `replica`, and computes the error of replica `index`: what was not sent. */
tdm_status tdm__powersgd_give(tdm_powersgd *power, int index, tdm_replica *replica);
/* All calls of the step that follow the takes, where replicas take turns. Writes the sum to the gradients of `replica`.
 */
tdm_status tdm__powersgd_sum_in_turn(tdm_powersgd *power, tdm_replica *replica);

/* ---- its state in a checkpoint: list_state, gather_state and share_state of every mode ---- */

tdm_status tdm__powersgd_list(tdm_mode *mode, tdm_zone *zone, bool saves, tdm_mode_tensor **out, int *count);
tdm_status tdm__powersgd_gather(tdm_mode *mode);
tdm_status tdm__powersgd_share(tdm_mode *mode, bool found);

/* ---- for these files ---- */

/* A parameter's gradient as a matrix; its rows lie one after another in the arena. */
typedef struct tdm_power_matrix {
    int param;        /* in the plan */
    size_t rows;      /* of the gradient: PyTorch's first dimension */
    size_t columns;   /* of a row in the arena, filled up as the plan says */
    size_t plain;     /* columns of PyTorch's matrix */
    size_t rank;      /* of the approximation; 0: it is summed as it is */
    size_t at;        /* of the gradient, in its bucket */
    size_t p, q, sum; /* where its factors are in `wire` and `q`; where its numbers are if it is not compressed */
} tdm_power_matrix;

/* What one bucket sends: matrices that are not compressed, factors P, factors Q. */
typedef struct tdm_power_bucket {
    size_t sum, p, q;                   /* where they begin in `wire` */
    size_t sum_count, p_count, q_count; /* floats */
} tdm_power_bucket;

/* A replica's gradients are approximated in this process. */
typedef struct tdm_power_member {
    float *wire; /* what is summed, all buckets; after a sum the first member's is the sum */
    float *kept; /* with the arena's offsets: in a step the matrices, between steps what they have kept back */
    float *grad; /* gradients of a device in host memory; NULL: they are there already */
} tdm_power_member;

struct tdm_powersgd {
    const tdm_mode_params *params;
    const tdm_compress_section *settings;
    tdm_power_matrix *matrix; /* of each trained parameter */
    tdm_power_bucket *bucket;
    size_t wire_floats;
    int count; /* 1: this rank; else all replicas */
    tdm_power_member *member;
    bool lends_wire; /* the only member's is memory of the communicator's */
    bool is_warm;    /* the first member's wire holds the factors Q of a step before */
    float *gathered; /* rank 0: the errors of all ranks and Q, as a checkpoint has them; NULL until it needs them */
    size_t q_floats; /* floats of Q in a checkpoint */
};

tdm_power_matrix tdm__power_matrix(const tdm_plan *plan, const tdm_compress_section *settings, int param);
/* `count` members, without their memory. */
tdm_status tdm__power_new(tdm_powersgd **out, const tdm_mode_params *params, int count);
/* Allocates the memory of a member; its wire, too, if `wire` is NULL. */
tdm_status tdm__power_open_member(tdm_powersgd *power, int index, float *wire);
/* Of one bucket. draw: Q for this step. take: a member's matrices, from its gradients (NULL: -0), and P. turn: the sum
 * of P is made orthonormal. approximate: a member's Q. give: the sum of the gradients, and what the member keeps back. */
void tdm__power_draw(tdm_powersgd *power, int bucket, int64_t step);
void tdm__power_take(tdm_powersgd *power, tdm_power_member *member, int bucket, const float *grad);
void tdm__power_turn(tdm_powersgd *power, int bucket);
void tdm__power_approximate(tdm_powersgd *power, tdm_power_member *member, int bucket);
void tdm__power_give(tdm_powersgd *power, tdm_power_member *member, int bucket, float *grad);

#endif
