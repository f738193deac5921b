/* What an evaluation finds beside its numbers: which classes are taken for which, and the samples with the highest
 * losses. Counts are sums over all ranks, so they are the same in every mode. */
#ifndef TDM_TRAIN_DETAILS_H
#define TDM_TRAIN_DETAILS_H

#include "runtime/train/run.h"

enum { TDM_WORST = 32, TDM_CONFUSION_CLASSES = 256 };

typedef struct tdm_worst_sample {
    int64_t index; /* in the evaluation data, from 0 */
    int64_t label, predicted;
    double loss; /* NaN is worse than every number */
} tdm_worst_sample;

struct tdm_details {
    int64_t step;               /* that was evaluated; -1: no evaluation is complete */
    tdm_scores scores;          /* of it */
    int64_t classes;            /* 0: samples have no labels */
    const tdm_dataset *samples; /* that were evaluated, borrowed from the run */
    tdm_classes names;          /* of the classes, borrowed from the run; count 0: they have none */
    int64_t *correct;           /* [classes] */
    int64_t *count;             /* [classes], samples by label */
    int64_t *confusion;         /* [label][predicted]; NULL: there are more than TDM_CONFUSION_CLASSES */
    size_t number;              /* of counts: all of the above, in one block that begins with `correct` */
    int worst_count;
    tdm_worst_sample worst[TDM_WORST]; /* the worst first; of equal ones the lower index */
};

/* Before an evaluation: makes run->details if needed, and empties it. */
tdm_status tdm__details_begin(tdm_run *run);
/* Adds the rows of a shard with outputs y[rows, width]; the first row is sample `first`. */
tdm_status tdm__details_add(tdm_run *run, const tdm_shard *shard, const float *y, int64_t first);
/* Brings the ranks' parts together. Collective. */
tdm_status tdm__details_end(tdm_run *run, const tdm_scores *scores);
/* As JSON, a whole file. */
void tdm__details_print(const tdm_details *details, tdm_text *out);

#endif
