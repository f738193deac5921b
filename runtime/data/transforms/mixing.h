/* mixup and cutmix: a sample of the training data is mixed with another, its partner, and so are their labels
 * (tandem/sys/label.h). torchvision's MixUp and CutMix (0.2x, transforms.v2), but for each sample on its own: its
 * partner is any sample of the data, so that what is drawn does not depend on the batch. */
#ifndef TDM_DATA_TRANSFORMS_MIXING_H
#define TDM_DATA_TRANSFORMS_MIXING_H

#include "runtime/data/data.h"
#include "runtime/data/transforms/draws.h"

typedef struct tdm_mixing {
    const tdm_transform_step *step[2]; /* borrowed; with two, each is as likely */
    int count;                         /* 0: samples are not mixed */
    int position;                      /* of the first one in the list of steps */
    uint64_t seed;
    int64_t samples, ignore_index;
    int64_t planes, height, width; /* of a sample */
} tdm_mixing;

/* What happens to a sample. */
typedef struct tdm_mix {
    int64_t partner;                  /* the index of the other sample; -1: the sample stays as it is */
    int64_t parts;                    /* the partner's weight, in 1 / TDM_LABEL_PARTS */
    bool cuts;                        /* the partner's points are taken in a box; else all points are weighted */
    int64_t left, top, right, bottom; /* the box; right and bottom are outside */
} tdm_mix;

/* Does the list have mixup or cutmix? */
bool tdm__transform_mixes(const tdm_transform_spec *spec);
/* A clause about mixup and cutmix in this list, or NULL: each may be there once, after all steps that draw pictures. */
const char *tdm__mixing_fault(const tdm_transform_spec *spec);
/* TDM_E_CONFIG if such samples cannot be mixed. A list without mixup and cutmix makes count 0. The spec is borrowed. */
tdm_status tdm__mixing_init(tdm_mixing *mixing, const tdm_transform_spec *spec, const tdm_dataset *dataset,
                            uint64_t seed, int64_t ignore_index);
/* Depends only on the arguments. */
tdm_mix tdm__mixing_draw(const tdm_mixing *mixing, int64_t epoch, int64_t sample);
/* Mixes the partner into x; both are transformed. */
void tdm__mix_samples(const tdm_mixing *mixing, const tdm_mix *mix, float *x, const float *partner);
/* A number of the distribution Beta(alpha, alpha), from 0 to 1. */
double tdm__draw_beta(tdm_draws *draws, double alpha);

#endif
