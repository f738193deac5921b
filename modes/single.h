/* What single's files share. single.c: the mode. single_stretches.c: parts that exchange statistics. */
#ifndef TDM_MODES_SINGLE_H
#define TDM_MODES_SINGLE_H

#include "modes/compress/powersgd.h"
#include "modes/exchange.h"
#include "modes/pipeline.h"
#include "runtime/base/tree.h"

/* What a part has of its own. While it runs, the replica's members of the same names point to it. */
typedef struct single_part {
    char *activation, *buffer;
    float *grad;
    char *batch_bf16;
} single_part;

/* What a device keeps of the parts so far. */
typedef struct single_kept {
    float *sum[TDM_TREE_ROOM]; /* gradients of subtrees of parts (base/tree.h), added up; in the order of the parts */
    int sums;                  /* how many of `sum` are in use */
    char *buffer;              /* part 0's batch-norm statistics */
} single_kept;

typedef struct single {
    tdm_mode base;
    tdm_replica *replica;
    tdm_pipeline *pipeline;
    single_kept *kept; /* of each stage; NULL with one part, and with `part` */
    single_part *part; /* of each part and stage, where parts go in stretches: the first part has the replica's own
                          memory; else NULL */
} single;

/* A step while it is submitted. */
typedef struct single_step {
    single *single;
    const tdm_update *update;
    int parts;
    const tdm_rows *rows; /* of each part, where the first stage sees them */
    bool approximates;    /* PowerSGD, in this step */
} single_step;

tdm_status tdm__single_open_stretches(single *s);
void tdm__single_close_stretches(single *s); /* also of a mode that has none */
/* Forward, loss and backward of all parts. Afterwards the replica has the sum of their gradients and part 0's buffers.
 */
tdm_status tdm__single_stretches(const single_step *step);

#endif
