/* Weights from a file that may be another model's: which of its tensors become which of ours, and how their numbers
 * become floats. What the job says about it: tdm_weights_section. */
#ifndef TDM_TRAIN_WEIGHTS_WEIGHTS_H
#define TDM_TRAIN_WEIGHTS_WEIGHTS_H

#include "runtime/train/run.h"

typedef enum tdm_weights_outcome {
    TDM_WEIGHTS_LOADED,
    TDM_WEIGHTS_SKIPPED,     /* a pattern of model.skip names it */
    TDM_WEIGHTS_MISSING,     /* the file has no such tensor */
    TDM_WEIGHTS_OTHER_SHAPE, /* the file's has another shape */
    TDM_WEIGHTS_OUTCOMES
} tdm_weights_outcome;

/* What becomes of the model's tensors, and which of the file's belong to none of them. */
typedef struct tdm_weights_match {
    const tdm_weights_section *how;
    const tdm_tensor **of;        /* for each tensor of the model the file's; NULL: none */
    tdm_weights_outcome *outcome; /* for each tensor of the model */
    const char **unexpected;      /* names in the file, as they stand there */
    int count, unexpected_count;  /* tensors of the model */
    int total[TDM_WEIGHTS_OUTCOMES];
} tdm_weights_match;

/* Everything lives in run->zone. TDM_E_CHECKPOINT if two tensors of the file get one name. */
tdm_status tdm__weights_match(tdm_run *run, const tdm_tensor_file *file, const tdm_weights_section *how,
                              tdm_weights_match *out);
/* TDM_E_CHECKPOINT if `how` does not take such a match: the first fault and how many there are. */
tdm_status tdm__weights_check(const tdm_run *run, const tdm_weights_match *match);
/* For people, "120 of 122 tensors loaded, 2 missing"; and as JSON with every name. */
void tdm__weights_print(const tdm_weights_match *match, tdm_text *out);
void tdm__weights_print_json(const tdm_run *run, const tdm_weights_match *match, tdm_text *out);

/* Reads a tensor of the file into floats, or into int64_t for a counter. F16 and BF16 are exact; F64 is rounded to
 * the nearest float, ties to even. TDM_E_CHECKPOINT for other types, for numbers that are not finite and for those that
 * no float can hold. */
tdm_status tdm__weights_read(const tdm_run *run, const tdm_tensor_file *file, const tdm_tensor *tensor,
                             const tdm_named *named, void *to);

#endif
