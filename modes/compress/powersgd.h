/* PowerSGD (Vogels, Karimireddy, Jaggi 2019), as PyTorch's powerSGD_hook: of a gradient that is a matrix, ranks
 * exchange two thin factors. In host memory, for the reducers that sum there. */
#ifndef TDM_MODES_POWERSGD_H
#define TDM_MODES_POWERSGD_H

#include "runtime/exec/mode.h"

typedef struct tdm_powersgd tdm_powersgd;

/* Floats of a stage's parameters that a rank contributes to the sums of a step. */
size_t tdm__powersgd_floats(const tdm_plan *plan, const tdm_compress_section *settings, int stage);
/* Bytes that a rank keeps for them. */
size_t tdm__powersgd_bytes(const tdm_plan *plan, const tdm_compress_section *settings, int stage);

/* Collective. After a failure, close *out unless it is NULL. */
tdm_status tdm__powersgd_open(tdm_powersgd **out, const tdm_mode_params *params);
void tdm__powersgd_close(tdm_powersgd *power); /* NULL is fine */
/* Replaces the gradients of a bucket by their sum over ranks, approximately. Buckets one after another. */
tdm_status tdm__powersgd_reduce(tdm_powersgd *power, float *grad, int bucket, int64_t step);

/* ---- its state in a checkpoint: as tdm_mode_ops.list_state, gather_state and share_state ---- */

tdm_status tdm__powersgd_list(tdm_powersgd *power, tdm_zone *zone, tdm_mode_tensor **out, int *count);
tdm_status tdm__powersgd_gather(tdm_powersgd *power);
tdm_status tdm__powersgd_share(tdm_powersgd *power, bool found);

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

struct tdm_powersgd {
    const tdm_mode_params *params;
    const tdm_compress_section *settings;
    tdm_power_matrix *matrix; /* of each trained parameter */
    tdm_power_bucket *bucket;
    float *wire; /* what is summed, all buckets; memory of the communicator's if it has any */
    bool owns_wire;
    size_t wire_floats;
    float *error;   /* what compression has kept back, with the arena's offsets; NULL: without error feedback */
    bool is_warm;   /* `wire` holds the factors Q of a step before */
    float *all;     /* rank 0: the errors of all ranks and Q, as a checkpoint has them; NULL until it needs them */
    size_t q_plain; /* floats of Q in a checkpoint */
};

tdm_power_matrix tdm__power_matrix(const tdm_plan *plan, const tdm_compress_section *settings, int param);

#endif
