/* tandem/source.h - samples that the embedding program provides itself. */
#ifndef TANDEM_SOURCE_H
#define TANDEM_SOURCE_H

#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

/* What a program's samples are, and with that what data.transform does to them. It is one rule, for the samples of a
 * tdm_source in training and in evaluation, for tdm_run_predict and tdm_run_predict_as, and for tdm_model_predict:
 *
 *                       to_float (/ 255)   normalize
 *   TDM_INPUT_FLOATS    no                 yes
 *   TDM_INPUT_BYTES     yes                yes
 *   TDM_INPUT_READY     no                 no
 *
 * Steps for pictures (resize, random_crop, ...) apply to none of them: they belong to pictures that tandem itself reads
 * or decodes. mixup and cutmix mix samples of all kinds, in training only. */
typedef enum tdm_input {
    TDM_INPUT_FLOATS, /* float[rows][width], before data.transform */
    TDM_INPUT_BYTES,  /* unsigned char[rows][width], before data.transform; of pictures: [channels][height][width] */
    TDM_INPUT_READY   /* float[rows][width] that the model takes, as after data.transform */
} tdm_input;

/* `read` writes sample `index` into `x` and `target`. x: as many floats as the model's input has numbers. target: one
 * int64_t label, or as many floats as the model has outputs. It returns 0, or any other number to stop the run with
 * TDM_E_DATA and a message that names the index.
 *
 * Threads: several threads call `read` at the same time, with any index in [0, count), in any order. The same index
 * must always give the same sample. */
typedef struct tdm_source {
    uint32_t size;  /* sizeof(tdm_source) */
    int64_t count;  /* samples */
    int has_labels; /* 1: the target is an int64_t label; 0: floats */
    int (*read)(void *user, int64_t index, float *x, void *target);
    void *user; /* passed to `read` */
} tdm_source;

TDM_END_DECLS
#endif
